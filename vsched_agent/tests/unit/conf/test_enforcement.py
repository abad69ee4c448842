# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Options of enforcement."""

import ddt
from oslo_config import cfg
from oslotest import base

from vsched_agent.conf import enforcement as options
from vsched_agent.enforcement import ladder


@ddt.ddt
class TestBudgetCheck(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        options.register_opts(self.conf)
        self.conf([])
        # Groups are shared by all that register them.
        self.addCleanup(self.conf.clear_override, 'budget_check_us',
                        'enforcement')
        self.addCleanup(self.conf.clear_override, 'backends', 'enforcement')

    def test_off_unless_wanted(self):
        self.assertEqual(0, self.conf.enforcement.budget_check_us)
        self.assertEqual(0, ladder.reserve_mcpu(self.conf))

    @ddt.data(100, 500, 10_000)
    def test_accepted(self, check_us):
        self.conf.set_override('budget_check_us', check_us, 'enforcement')
        self.assertEqual(check_us, ladder.budget_check_us(self.conf))
        self.assertEqual(100, ladder.reserve_mcpu(self.conf))

    @ddt.data(1, 99)
    def test_too_short(self, check_us):
        problem = self.assertRaises(
            ValueError, self.conf.set_override, 'budget_check_us', check_us,
            'enforcement')
        self.assertIn('0 (off) or at least 100', str(problem))

    @ddt.data(-1, 10_001, 'often')
    def test_out_of_range(self, check_us):
        self.assertRaises(
            ValueError, self.conf.set_override, 'budget_check_us', check_us,
            'enforcement')

    def test_nothing_is_taken_where_there_is_no_deadline(self):
        self.conf.set_override('budget_check_us', 500, 'enforcement')
        self.conf.set_override('backends', ['cfs'], 'enforcement')
        self.assertEqual(0, ladder.budget_check_us(self.conf))
        self.assertEqual(0, ladder.reserve_mcpu(self.conf))
