# SPDX-License-Identifier: Apache-2.0

"""What accounting costs, tried on two processes."""

from oslotest import base

from benchmarks import agent_cost
from benchmarks import frame


class AccountingProcessTestCase(base.BaseTestCase):
    def test_processes_like_qemu(self):
        found = agent_cost._process(
            'benchmarks.accounting_process',
            {'kind': 'trees', 'vms': 2, 'seconds': 1},
        )
        self.assertEqual({'vms', 'core_pct', 'us_per_vm'}, found.keys())
        self.assertGreater(found['core_pct'], 0)

    def test_what_fails_says_why(self):
        failed = self.assertRaises(
            frame.Unavailable,
            agent_cost._process,
            'benchmarks.accounting_process',
            {'kind': 'none', 'vms': 2, 'seconds': 1},
        )
        self.assertIn("KeyError: 'none'", str(failed))
