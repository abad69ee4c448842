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

import ddt
import fixtures
from oslotest import base

from vsched_agent.ballooning import turns
from vsched_agent.privileged import turns as privileged


@ddt.ddt
class TurnsTest(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.calls = []
        self.failing = None
        for name in ('ready', 'begin', 'end'):
            self.patch(privileged, name, self._call(name))
        self.log = self.useFixture(fixtures.FakeLogger())

    def _call(self, name):
        def call(*words):
            self.calls.append((name, *words))
            if self.failing == name:
                raise RuntimeError('nobody there')
            return 7
        return call

    def test_while_it_is_open(self):
        one = turns.Turns(400)
        one.prepare()
        with one.shorter((5, 6), 9.0):
            self.assertEqual(
                [('ready',), ('begin', [5, 6], 400, 9.0)], self.calls)
        self.assertEqual(('end', 7), self.calls[-1])

    def test_ends_after_a_failure_as_well(self):
        def fail():
            with turns.Turns(400).shorter([5], 9.0):
                raise KeyError

        self.assertRaises(KeyError, fail)
        self.assertEqual(('end', 7), self.calls[-1])

    def test_off(self):
        one = turns.Turns(0)
        one.prepare()
        with one.shorter([5], 9.0):
            pass
        self.assertEqual([], self.calls)

    @ddt.data('ready', 'begin', 'end')
    def test_a_helper_that_fails_is_warned_of_once(self, name):
        self.failing = name
        one = turns.Turns(400)
        for _ in range(2):
            one.prepare()
            with one.shorter([5], 9.0):
                pass
        self.assertEqual(1, sum(call[0] == name for call in self.calls))
        self.assertEqual(1, self.log.output.count('nobody there'))
        self.assertIn('vsched_turns_privileged', self.log.output)
