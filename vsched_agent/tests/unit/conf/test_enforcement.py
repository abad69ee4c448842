# SPDX-License-Identifier: Apache-2.0

"""Options of enforcement."""

import ddt
from oslo_config import cfg
from oslotest import base

from vsched_agent.conf import enforcement as options
from vsched_agent.enforcement import backends
from vsched_agent.privileged.budget_expiry import checking


@ddt.ddt
class TestBudgetCheck(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([])
        # Groups are shared by all that register them.
        self.addCleanup(
            self.conf.clear_override, 'budget_check_us', 'enforcement'
        )
        self.addCleanup(self.conf.clear_override, 'backends', 'enforcement')
        self.addCleanup(
            self.conf.clear_override, 'use_idle_time', 'enforcement'
        )
        self.conf.set_override('use_idle_time', False, 'enforcement')

    def test_off_unless_wanted(self):
        self.assertEqual(0, self.conf.enforcement.budget_check_us)
        self.assertEqual(0, backends.reserve_mcpu(self.conf))

    @ddt.data(100, 500, 10_000)
    def test_accepted(self, check_us):
        self.conf.set_override('budget_check_us', check_us, 'enforcement')
        self.assertEqual(check_us, backends.budget_check_us(self.conf))
        self.assertEqual(100, backends.reserve_mcpu(self.conf))

    def test_it_takes_more_of_large_hosts(self):
        self.assertEqual(
            [100, 100, 200, 500, 500],
            [checking.reserve_mcpu(cpus) for cpus in (1, 2, 4, 10, 128)],
        )

    def test_idle_time_takes_of_the_host(self):
        self.conf.clear_override('use_idle_time', 'enforcement')
        self.assertTrue(backends.use_idle_time(self.conf))
        self.assertEqual(20, backends.reserve_mcpu(self.conf))
        self.conf.set_override('backends', ['cfs'], 'enforcement')
        self.assertFalse(backends.use_idle_time(self.conf))
        self.assertEqual(0, backends.reserve_mcpu(self.conf))

    @ddt.data(1, 99)
    def test_too_short(self, check_us):
        problem = self.assertRaises(
            ValueError,
            self.conf.set_override,
            'budget_check_us',
            check_us,
            'enforcement',
        )
        self.assertIn('0 (off) or at least 100', str(problem))

    @ddt.data(-1, 10_001, 'often')
    def test_out_of_range(self, check_us):
        self.assertRaises(
            ValueError,
            self.conf.set_override,
            'budget_check_us',
            check_us,
            'enforcement',
        )

    def test_nothing_is_taken_where_there_is_no_deadline(self):
        self.conf.set_override('budget_check_us', 500, 'enforcement')
        self.conf.set_override('backends', ['cfs'], 'enforcement')
        self.assertEqual(0, backends.budget_check_us(self.conf))
        self.assertEqual(0, backends.reserve_mcpu(self.conf))
