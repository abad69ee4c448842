# SPDX-License-Identifier: Apache-2.0

"""What most tests of this package start from."""

import itertools
import typing as ty
import uuid

import flask.testing
from oslo_config import cfg
from oslotest import base

from vsched_api import app
from vsched_api.collector import endpoint
from vsched_api.db import session
from vsched_api import nouns
from vsched_api import rest
from vsched_api.tests import conformance
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.contract import policy as policies
from vsched_lib.contract import wire

# Imported before a test replaces a part of what they import.
_ROUTES = tuple(nouns.modules(rest.__name__))

HOST = 'node1'
NOW = 1_800_000_000.0

#: Options of [database], longer than a machine that other tests use as well
#: stands still: how long services wait has tests of its own.
TIMEOUTS_S = {'lock_timeout_s': 60.0, 'statement_timeout_s': 120.0}


def patient(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Set the time-outs of :data:`TIMEOUTS_S`; returns the options."""
    for name, seconds in TIMEOUTS_S.items():
        conf.set_override(name, seconds, 'database')
    return conf


BOTH_BACKENDS = (
    messages.BackendInfo('deadline', True),
    messages.BackendInfo('cfs', True),
)


def host_info(**changes: ty.Any) -> messages.HostInfo:
    """What a host may tell of itself."""
    values: dict[str, ty.Any] = {
        'agent_version': '0.1.0',
        'kernel': '6.1.0',
        'boot_id': 'b',
        'hypervisor': 'qemu',
        'cpus': 2,
        'tick_us': 4000,
        'capacity_mcpu': 1800,
        'admitted_mcpu': 600,
        'reserve_mcpu': 0,
        'backends': BOTH_BACKENDS,
        'placement': names.PlacementInfo(
            names.PlacementState.SYNCED,
            '',
            '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f',
            1800,
            600,
        ),
        'policy': policies.HostPolicy(0.8, 250_000, 500_000, False),
    }
    return messages.HostInfo(**{**values, **changes})


def reservation(
    instance_uuid: str, **changes: ty.Any
) -> messages.ReservationReport:
    """60 % of a CPU, from the flavor, applied."""
    values: dict[str, ty.Any] = {
        'source': messages.Source.METADATA,
        'state': messages.State.APPLIED,
        'vcpus': 1,
        'since': NOW,
        'runtime_us': 12_000,
        'period_us': 20_000,
        'mode': 'capped',
        'enforced_backend': 'deadline',
        'enforced_runtime_us': 12_000,
        'enforced_period_us': 20_000,
        'attested_at': NOW,
    }
    return messages.ReservationReport(instance_uuid, **{**values, **changes})


def sample(
    instance_uuid: str, at: float = NOW, **changes: ty.Any
) -> messages.UsageSample:
    """A second in which an instance got 0.6 CPUs."""
    values: dict[str, ty.Any] = {
        'interval_us': 1_000_000,
        'guest_us': 600_000,
        'wait_us': 0,
        'promised_us': 600_000,
    }
    return messages.UsageSample(instance_uuid, at, **{**values, **changes})


def host_usage(at: float = NOW, **changes: ty.Any) -> messages.HostUsage:
    """A second of a host with two CPUs."""
    values: dict[str, ty.Any] = {
        'interval_us': 1_000_000,
        'cpus': 2,
        'idle_us': 1_000_000,
        'steal_us': 100_000,
        'irq_us': 20_000,
        'guest_us': 600_000,
        'direct_us': 150_000,
        'shared_us': 50_000,
        'own_us': 100_000,
    }
    return messages.HostUsage(at, **{**values, **changes})


def event(at: float = NOW, **changes: ty.Any) -> messages.Event:
    """Something that happened."""
    values: dict[str, ty.Any] = {
        'uuid': str(uuid.uuid4()),
        'code': 'vsched.agent.started',
        'severity': messages.Severity.INFO,
        'detail': 'the agent started',
    }
    return messages.Event(at=at, **{**values, **changes})


def deliver(
    collector: endpoint.Collector, report: messages.Report
) -> collector_replies.ReportReply:
    """Give a collector a report as the bus brings it, whatever it says."""
    raw = report.to_dict()
    try:
        return collector.on_report(messages.Report.from_dict(raw))
    except wire.MalformedMessage as problem:
        return collector.on_malformed_report(raw, problem)


class Agent:
    """Numbers and sends the reports of one host."""

    def __init__(
        self, collector: endpoint.Collector, host: str = HOST
    ) -> None:
        self.host = host
        self._collector = collector
        self._numbers = itertools.count(1)
        self.at = NOW

    def send(
        self, *instances: str, listed: bool = True, **parts: ty.Any
    ) -> collector_replies.ReportReply:
        """Send the next batch.

        :param instances: the whole list, unless ``listed`` is false.
        """
        if listed:
            parts['instances'] = tuple(
                messages.InstanceInfo(one, 'vm-' + one[:4], 1)
                for one in instances
            )
        return deliver(
            self._collector,
            messages.Report(self.host, next(self._numbers), self.at, **parts),
        )

    def first(
        self, *instances: str, **parts: ty.Any
    ) -> collector_replies.ReportReply:
        """Send a full report, with a reservation for each instance."""
        parts.setdefault(
            'reservations', tuple(reservation(one) for one in instances)
        )
        return self.send(*instances, host_info=host_info(), **parts)


class TestCase(base.BaseTestCase):
    """A test with a database; which kind, a subclass says."""

    kind: ty.ClassVar[ty.Any] = databases.SQLite

    def setUp(self) -> None:
        super().setUp()
        # Agents tell of what has been.
        self.now = NOW + 100
        self.conf = patient(
            database_options.configuration(self.kind.make(self))
        )

    @property
    def database(self) -> session.Database:
        """A database that is closed when the test ends."""
        found = self.__dict__.get('_database')
        if found is None:
            found = self._database = session.Database(self.conf)
            self.addCleanup(found.dispose)
        return ty.cast(session.Database, found)

    def collector(self) -> endpoint.Collector:
        """A collector of its own, whose clock is ``self.now``."""
        made = endpoint.Collector(self.conf, now=lambda: self.now)
        self.addCleanup(made.database.dispose)
        return made

    def agent(self, host: str = HOST) -> Agent:
        """An agent that talks to a collector of its own."""
        return Agent(self.collector(), host)

    def client(self, transport: ty.Any = None) -> flask.testing.FlaskClient:
        """A client of an application of its own, whose answers are checked.

        See :mod:`vsched_api.tests.conformance`.
        """
        made = conformance.check(
            app.create_app(self.conf, transport, now=lambda: self.now)
        )
        self.addCleanup(made.extensions['vsched'].database.dispose)
        return made.test_client()


def uuids(count: int) -> list[str]:
    """New UUIDs, sorted."""
    return sorted(str(uuid.uuid4()) for _ in range(count))
