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

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import balloon_trial as trial
from vsched_lib.model import contention

PACE = trial.Pace()
BAR = trial.Bar()
BEFORE = contention.Work(1.0, 3.0)


def verdict(before=BEFORE, **after):
    return trial.judge(before, contention.Work(**after), BAR).pays


class JudgeTestCase(base.BaseTestCase):

    def test_by_what_the_host_sees(self):
        self.assertTrue(verdict(run=1.0, wait=0.1))
        self.assertFalse(verdict(run=1.0, wait=2.0))
        self.assertFalse(verdict(run=0.5, wait=0.1))

    def test_by_yields(self):
        before = contention.Work(1.0, 3.0, yields=1000.0)
        self.assertTrue(verdict(before, run=1.0, wait=3.0, yields=500.0))
        self.assertFalse(verdict(before, run=1.0, wait=0.0, yields=600.0))

    def test_the_tenants_word_goes_first(self):
        before = contention.Work(1.0, 3.0, progress=100.0)
        self.assertFalse(verdict(before, run=1.0, wait=0.0, progress=104.0))
        self.assertTrue(verdict(before, run=0.1, wait=3.0, progress=105.0))

    def test_a_counter_that_went_or_stood_says_nothing(self):
        gone = contention.Work(1.0, 3.0, progress=100.0)
        self.assertTrue(verdict(gone, run=1.0, wait=0.1))
        stood = contention.Work(1.0, 3.0, progress=0.0)
        self.assertTrue(verdict(stood, run=1.0, wait=0.1, progress=5.0))

    def test_reasons_have_figures(self):
        self.assertIn('3.00', trial.judge(
            BEFORE, contention.Work(1.0, 0.1), BAR).reason)
        self.assertIn('+50.0 %', trial.judge(
            contention.Work(1, 1, progress=2.0),
            contention.Work(1, 1, progress=3.0), BAR).reason)


class StandingTestCase(base.BaseTestCase):

    def test_a_balloon_that_pays(self):
        standing = trial.Standing()
        self.assertTrue(standing.may_shrink(0))
        standing = standing.shrunk(100, BEFORE, PACE)
        self.assertTrue(standing.ballooned)
        self.assertFalse(standing.settled(101, PACE))
        self.assertTrue(standing.settled(102, PACE))
        self.assertFalse(standing.due(109, PACE))
        self.assertTrue(standing.due(110, PACE))
        standing = standing.kept(110)
        self.assertFalse(standing.due(200, PACE))
        standing = standing.watched(200, True).watched(205, True)
        self.assertFalse(standing.may_grow(209, PACE))
        self.assertTrue(standing.may_grow(210, PACE))
        self.assertFalse(
            standing.watched(209, False).watched(210, True).may_grow(
                219, PACE))
        standing = standing.full(210, trial.Outcome.CALM, PACE)
        self.assertFalse(standing.ballooned)
        self.assertFalse(standing.may_shrink(239))
        self.assertTrue(standing.may_shrink(240))

    def test_back_off_doubles_and_is_bounded(self):
        standing, now, waits = trial.Standing(), 0.0, []
        for _ in range(9):
            standing = standing.shrunk(now, BEFORE, PACE).full(
                now, trial.Outcome.REVERTED, PACE)
            waits.append(standing.not_before_s - now)
            now = standing.not_before_s
        self.assertEqual([300, 600, 1200, 2400, 4800, 9600, 14400, 14400,
                          14400], waits)
        standing = standing.shrunk(now, BEFORE, PACE).kept(now)
        self.assertEqual(0, standing.failures)

    @hypothesis.given(st.lists(st.booleans(), min_size=1, max_size=400))
    def test_flapping_is_bounded_by_the_cooldown(self, needed):
        standing, actions = trial.Standing(), []
        for now, need in enumerate(needed):
            if standing.due(now, PACE):
                standing = standing.kept(now)
            if standing.ballooned:
                standing = standing.watched(now, not need)
                if standing.may_grow(now, PACE):
                    standing = standing.full(now, trial.Outcome.CALM, PACE)
                    actions.append(now)
            elif need and standing.may_shrink(now):
                standing = standing.shrunk(now, BEFORE, PACE)
                actions.append(now)
        for first, third in zip(actions, actions[2:], strict=False):
            self.assertGreaterEqual(third - first, PACE.cooldown_s)
