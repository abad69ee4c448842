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

"""What accounting costs, tried on two processes."""

from oslotest import base

from benchmarks import agent_cost
from benchmarks import frame


class AccountingProcessTestCase(base.BaseTestCase):
    def test_processes_like_qemu(self):
        found = agent_cost._process('benchmarks.accounting_process', {
            'kind': 'trees', 'vms': 2, 'seconds': 1})
        self.assertEqual({'vms', 'core_pct', 'us_per_vm'}, found.keys())
        self.assertGreater(found['core_pct'], 0)

    def test_what_fails_says_why(self):
        failed = self.assertRaises(
            frame.Unavailable, agent_cost._process,
            'benchmarks.accounting_process',
            {'kind': 'none', 'vms': 2, 'seconds': 1})
        self.assertIn("KeyError: 'none'", str(failed))
