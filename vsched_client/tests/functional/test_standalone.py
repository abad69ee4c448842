# SPDX-License-Identifier: Apache-2.0

"""Commands against vsched-standalone, whose agent decides by its own rules.

Its kernel and hypervisor are simulated: nothing of this host is changed.
"""

from fractions import Fraction
import time

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import service as agents
from vsched_agent.tests import agent_parts
from vsched_agent.tests import fakes
from vsched_client.tests import shell
from vsched_lib.model import reservation
from vsched_standalone import conf as standalone_conf
from vsched_standalone import service

#: How many CPUs the host can reserve.
_CAPACITY = Fraction(18, 10)
#: Only a hang takes longer.
_PATIENCE_S = 60


class TestStandalone(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        hypervisor = fakes.FakeHypervisor()
        self.domain = fakes.domain(1, vcpus=2)
        hypervisor.running[self.domain.uuid] = self.domain
        self.backend = fakes.FakeBackend(reservation.Backend.DEADLINE)
        for owner, name, new in (
            (
                agents.backends,
                'Ladder',
                lambda conf: agent_parts.Ladder(self.backend),
            ),
            (
                agents.capacity,
                'KernelCapacity',
                lambda reserve_mcpu: agent_parts.Capacity(_CAPACITY),
            ),
            (agents.usage, 'meter_of', lambda *_: agent_parts.Meter()),
            (agents.privileged, 'use', lambda conf: None),
            (
                service.agents,
                'Agent',
                lambda conf, transport, make=agents.Agent: make(
                    conf, transport, hypervisor
                ),
            ),
        ):
            self.useFixture(fixtures.MockPatchObject(owner, name, new))
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
        ):
            conf.set_override(name, value, group)
            # Groups are shared by all that register them.
            self.addCleanup(conf.clear_override, name, group)
        self.standalone = service.Standalone(conf)
        self.standalone.start()
        self.addCleanup(self.standalone.stop)

    def openstack(self, *words, code=0):
        found = shell.run(*words, url=self.standalone.url)
        self.assertEqual(code, found.code, found)
        return found

    def reservation(self, verb, *words, code=0):
        return self.openstack(
            *('cpu', 'reservation', verb, self.domain.uuid),
            *(*words, '--wait', '-f', 'json'),
            code=code,
        )

    def held(self):
        return {
            tid: (one.runtime_us, one.period_us)
            for tid, one in self.backend.held.items()
        }

    def await_report(self):
        give_up = time.monotonic() + _PATIENCE_S
        while not self.openstack('cpu', 'host', 'list', '-f', 'json').json:
            if time.monotonic() > give_up:
                self.fail('the agent has not reported')
            time.sleep(0.05)

    def test_the_agent_applies_or_refuses(self):
        self.await_report()
        found = self.reservation(
            'create', '--share', '60%', '--period', '10ms'
        ).json
        self.assertEqual(
            ('applied', 'deadline'),
            (found['state'], found['enforced']['backend']),
        )
        self.assertEqual({(6_000, 10_000)}, set(self.held().values()))
        # Two vCPUs of 95 % are more than 1.8 CPUs.
        found = self.reservation('set', '--share', '95%', code=3)
        self.assertEqual('refused', found.json['state'])
        self.assertIn('vsched.reservation.does_not_fit', found.err)
        self.assertIn('1800', found.err)
        # It keeps what it had.
        self.assertEqual({(6_000, 10_000)}, set(self.held().values()))
        (host,) = self.openstack('cpu', 'host', 'list', '-f', 'json').json
        self.assertEqual(1800, host['capacity_mcpu'])
        found = self.reservation('unset').json
        self.assertEqual('released', found['state'])
        self.assertEqual({}, self.held())
