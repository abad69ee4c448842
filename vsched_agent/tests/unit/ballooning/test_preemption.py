# SPDX-License-Identifier: Apache-2.0

import ddt
import fixtures
from oslotest import base

from vsched_agent.ballooning import preemption
from vsched_agent.privileged import preemption as privileged


@ddt.ddt
class ForcedPreemptionTest(base.BaseTestCase):
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
        one = preemption.ForcedPreemption(400)
        one.prepare()
        with one.enabled((5, 6), 9.0):
            self.assertEqual(
                [('ready',), ('begin', [5, 6], 400, 9.0)], self.calls
            )
        self.assertEqual(('end', 7), self.calls[-1])

    def test_ends_after_a_failure_as_well(self):
        def fail():
            with preemption.ForcedPreemption(400).enabled([5], 9.0):
                raise KeyError

        self.assertRaises(KeyError, fail)
        self.assertEqual(('end', 7), self.calls[-1])

    def test_off(self):
        one = preemption.ForcedPreemption(0)
        one.prepare()
        with one.enabled([5], 9.0):
            pass
        self.assertEqual([], self.calls)

    @ddt.data('ready', 'begin', 'end')
    def test_a_helper_that_fails_is_warned_of_once(self, name):
        self.failing = name
        one = preemption.ForcedPreemption(400)
        for _ in range(2):
            one.prepare()
            with one.enabled([5], 9.0):
                pass
        self.assertEqual(1, sum(call[0] == name for call in self.calls))
        self.assertEqual(1, self.log.output.count('nobody there'))
        self.assertIn('vsched_turns_privileged', self.log.output)
