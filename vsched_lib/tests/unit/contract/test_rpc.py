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

"""The bus in memory, and a bus that hangs."""

import threading

from oslotest import base

from vsched_lib.contract import errors
from vsched_lib.contract import rpc
from vsched_lib.tests import rpc_suite


class MemoryTestCase(rpc_suite.RpcSuite, base.BaseTestCase):
    url = 'fake://'


class BoundedTestCase(base.BaseTestCase):
    def test_result_passes(self):
        bounded = rpc._Bounded('agent', rpc_suite.PATIENCE_S)
        self.assertEqual(3, bounded.run('ask', lambda: 3))
        self.assertIsNone(bounded.run('ask', lambda: None))

    def test_any_failure_is_unreachable_with_its_cause(self):
        bounded = rpc._Bounded('agent', rpc_suite.PATIENCE_S)
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', lambda: 1 / 0)
        self.assertIsInstance(error.__cause__, ZeroDivisionError)
        self.assertIn('agent: ask: ZeroDivisionError', str(error))

    def test_stuck_use_is_not_joined_by_others(self):
        go = threading.Event()
        self.addCleanup(go.set)
        through = threading.Event()

        def connect():
            go.wait()
            through.set()

        bounded = rpc._Bounded('agent', 0.01)
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', connect)
        self.assertIn('no answer in 0.01 s', str(error))
        asked = []
        error = self.assertRaises(
            errors.Unreachable, bounded.run, 'ask', lambda: asked.append(1))
        self.assertIn('still trying', str(error))
        self.assertEqual([], asked)
        # Once the first is through, the next one is tried again.
        go.set()
        self.assertTrue(through.wait(rpc_suite.PATIENCE_S))
        bounded._stuck.join()
        patient = rpc._Bounded('agent', rpc_suite.PATIENCE_S)
        patient._stuck = bounded._stuck
        self.assertEqual(4, patient.run('ask', lambda: 4))
