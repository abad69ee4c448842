# SPDX-License-Identifier: Apache-2.0

from oslo_config import cfg
from oslotest import base

from vsched_agent.conf import enforcement
from vsched_agent.conf import hypervisor
from vsched_agent.enforcement import backends
from vsched_agent.tests import fake_xl
from vsched_agent.tests import fakes
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class TestLadder(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now = 0.0
        self.deadline = fakes.FakeBackend(DEADLINE)
        self.cfs = fakes.FakeBackend(CFS)
        self.ladder = backends.Ladder(
            backends=[self.deadline, self.cfs], clock=lambda: self.now
        )

    def test_each_backend_answers_for_itself(self):
        self.deadline.usable = False
        self.assertEqual(
            ('the test says so',), self.ladder.support(DEADLINE).reasons
        )
        self.assertTrue(self.ladder.support(CFS).usable)

    def test_a_backend_this_host_type_does_not_have(self):
        found = self.ladder.support(reservation.Backend.RTDS)
        self.assertFalse(found.usable)
        self.assertIn('rtds is not enabled', found.reasons[0])

    def test_hosts_are_asked_once_a_minute(self):
        self.ladder.support(DEADLINE)
        self.deadline.usable = False
        self.now += 59
        self.assertTrue(self.ladder.support(DEADLINE).usable)
        self.now += 1
        self.assertFalse(self.ladder.support(DEADLINE).usable)

    def test_a_host_has_those_of_its_hypervisor(self):
        conf = cfg.ConfigOpts()
        enforcement.register_opts(conf)
        hypervisor.register_opts(conf)
        conf([])
        # Groups are shared by all that register them.
        self.addCleanup(conf.clear_override, 'uri', 'hypervisor')
        self.assertEqual([DEADLINE, CFS], backends.enabled(conf))
        self.assertEqual([DEADLINE, CFS], backends.enabled(None))
        conf.set_override('uri', 'xen:///system', 'hypervisor')
        self.assertEqual(
            [
                reservation.Backend.RTDS,
                reservation.Backend.CREDIT2,
                reservation.Backend.CREDIT,
            ],
            list(backends.Ladder(conf).backends),
        )
        # Nothing of the first domain's Linux is reserved for enforcement.
        self.assertEqual(0, backends.reserve_mcpu(conf))
        self.assertFalse(backends.use_idle_time(conf))

    def test_xen_is_asked_once_for_all_backends(self):
        xl = self.useFixture(fake_xl.FakeXl())
        conf = cfg.ConfigOpts()
        enforcement.register_opts(conf)
        hypervisor.register_opts(conf)
        conf([])
        conf.set_override('uri', 'xen:///system', 'hypervisor')
        self.addCleanup(conf.clear_override, 'uri', 'hypervisor')
        ladder = backends.Ladder(conf)
        usable = [
            name for name in ladder.backends if ladder.support(name).usable
        ]
        self.assertEqual([reservation.Backend.RTDS], usable)
        found = backends.capacity_of(conf, ladder.backends, 0)
        self.assertEqual(2, found.source.current().cpus)
        self.assertEqual(1, xl.commands.count(('info',)))

    def test_the_operator_orders_them(self):
        conf = cfg.ConfigOpts()
        enforcement.register_opts(conf)
        conf([])
        self.assertEqual([DEADLINE, CFS], list(backends.Ladder(conf).backends))
        conf.set_override('backends', ['cfs'], 'enforcement')
        self.assertEqual([CFS], list(backends.Ladder(conf).backends))
        self.assertRaises(
            ValueError, conf.set_override, 'backends', ['magic'], 'enforcement'
        )
