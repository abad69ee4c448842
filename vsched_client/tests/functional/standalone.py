# SPDX-License-Identifier: Apache-2.0

"""vsched-standalone with an agent whose kernel and guests are simulated.

Nothing of this host is changed.
"""

from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import os
import sys
import time
import typing as ty

import fixtures
from oslo_config import cfg

from vsched_agent.profiling import manager as profiling
from vsched_agent import service as agents
from vsched_agent.tests import agent_parts
from vsched_agent.tests import fakes
from vsched_agent.tests import simulated_guests
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles
from vsched_standalone import conf as standalone_conf
from vsched_standalone import service

#: How many CPUs the host can reserve.
CAPACITY = Fraction(18, 10)

#: Reports progress, and ends as a run does that is to stop.
_RUN = """
import json, os, signal, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
print(json.dumps({'progress_ppm': 250_000, 'detail': '3 of 12'}), flush=True)
threading.Thread(
    target=lambda: (os.read(0, 1), stop.set()), daemon=True
).start()
stop.wait()
raise SystemExit(3)
"""


class Meter(agent_parts.Meter):
    """Counts half a CPU of each instance, up to now."""

    def sample(self, *arguments: ty.Any) -> list[messages.UsageSample]:
        """Return a sample of each instance."""
        now = time.time()
        self.host = messages.HostUsage(
            now, 1_000_000, 2, 1_500_000, 0, 0, 500_000, 0, 0, 0
        )
        return [
            dataclasses.replace(one, at=now)
            for one in super().sample(*arguments)
        ]


class Standalone(fixtures.Fixture):
    """API, collector and agent in one process.

    :param domains: what runs on the host.
    :param profiles: whether the host has measured itself.
    :ivar url: of the API.
    :ivar backend: holds what is in force.
    """

    def __init__(
        self, domains: Sequence[ty.Any], profiles: bool = False
    ) -> None:
        super().__init__()
        self._domains = domains
        self._profiles = profiles

    def _setUp(self) -> None:
        # Modules that it imports, which are no part of its interface.
        parts: ty.Any = agents
        hypervisor = fakes.FakeHypervisor()
        guests = simulated_guests.SimulatedGuests()
        for domain in self._domains:
            hypervisor.running[domain.uuid] = domain
            guests.boot(domain.uuid, len(domain.vcpus))
        self.backend = fakes.FakeBackend(reservation.Backend.DEADLINE)
        for owner, name, new in (
            (
                parts.backends,
                'Ladder',
                lambda conf: agent_parts.Ladder(self.backend),
            ),
            (
                parts.backends.capacity,
                'KernelCapacity',
                lambda reserve_mcpu: agent_parts.Capacity(CAPACITY),
            ),
            (parts.usage, 'meter_of', lambda *_: Meter()),
            (parts.privileged, 'use', lambda conf: None),
            (
                parts.job_orders,
                'command',
                lambda conf: (sys.executable, '-c', _RUN),
            ),
            (
                agents,
                'Agent',
                lambda conf, transport, make=agents.Agent: make(
                    conf, transport, hypervisor, guests
                ),
            ),
        ):
            self.useFixture(fixtures.MockPatchObject(owner, name, new))
        conf = self._configuration()
        if self._profiles:
            _measure(conf)
        standalone = service.Standalone(conf)
        standalone.start()
        self.addCleanup(standalone.stop)
        self.url = standalone.url

    def _configuration(self) -> cfg.ConfigOpts:
        conf = cfg.ConfigOpts()
        standalone_conf.register_opts(conf)
        standalone_conf.set_defaults(
            conf, self.useFixture(fixtures.TempDir()).path
        )
        conf([], default_config_files=[], default_config_dirs=[])
        for group, name, value in (
            ('standalone', 'bind_port', 0),
            ('agent', 'host', 'node1'),
            ('agent', 'interval', 0.1),
            ('agent', 'report_interval', 0.1),
            *(
                ('database', name, seconds)
                for name, seconds in base.TIMEOUTS_S.items()
            ),
        ):
            conf.set_override(name, value, group)
            # Groups are shared by all that register them.
            self.addCleanup(conf.clear_override, name, group)
        return conf


def _measure(conf: cfg.ConfigOpts) -> None:
    """Leave profiles where a run leaves them."""
    kernel = os.uname().release
    profiling.error_profiles(conf).keep(
        error_profiles.full(
            windows=180, shares_ppm=(10_000, 500_000), version=1, kernel=kernel
        )
    )
    profiling.overhead_profiles(conf).keep(
        overhead_profiles.profile(version=1, kernel=kernel)
    )
