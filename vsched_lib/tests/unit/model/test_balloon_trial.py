# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import balloon_trial as trial
from vsched_lib.model import contention

PACE = trial.Pace()
BAR = trial.Bar()
BEFORE = contention.Work(1.0, 3.0)


PAYS, LOSES, UNKNOWN = trial.Decision


def verdict(before=BEFORE, online=1, **after):
    return trial.judge(before, contention.Work(**after), BAR, online).decision


class Trace:
    """What one instance of four vCPUs does, made up from what is done to it.

    :param gain: by what its work per second of CPU time is multiplied with
        one vCPU instead of four.
    :param before: CPUs that it gets with four vCPUs beside other load.
    :param after: CPUs that it gets with one; it waits for the rest.
    """

    def __init__(self, gain, before, after, counter=True):
        self.gain, self.counter = gain, counter
        self.before = contention.Work(
            before, 4.0 - before, progress=100 * before if counter else None
        )
        self.after = contention.Work(
            after,
            max(0.0, 1.0 - after),
            progress=100 * gain * after if counter else None,
        )

    @property
    def decision(self):
        return trial.judge(self.before, self.after, BAR, 1).decision


#: CPUs before and after, beside other load that stays, comes, or goes: the
#: old rule reverted whoever is in five of these.
BESIDE_LOAD = (
    (1.0, 0.97),
    (1.0, 0.75),
    (1.0, 0.6),
    (0.9, 0.5),
    (1.0, 0.4),
    (1.3, 0.7),
    (0.6, 0.9),
    (0.9, 0.95),
)


class JudgeTestCase(base.BaseTestCase):
    def test_by_what_the_host_sees(self):
        # Time to spare.
        self.assertEqual(PAYS, verdict(run=0.5, wait=0.1))
        # Busy all the time, with work or with waiting.
        self.assertEqual(UNKNOWN, verdict(run=1.0, wait=0.0))
        # Others take what it had.
        self.assertEqual(UNKNOWN, verdict(run=0.5, wait=0.5))
        # It had two CPUs for itself, and uses all of the one it has now.
        two = contention.Work(2.0, 2.0)
        self.assertEqual(LOSES, verdict(two, run=1.0, wait=0.0))

    def test_by_yields(self):
        before = contention.Work(1.0, 3.0, yields=1000.0)
        self.assertEqual(
            UNKNOWN, verdict(before, run=1.0, wait=3.0, yields=500.0)
        )
        self.assertEqual(
            LOSES, verdict(before, run=1.0, wait=0.0, yields=600.0)
        )
        # Fewer a second, as it runs less; the same per second of CPU time.
        self.assertEqual(
            LOSES, verdict(before, run=0.5, wait=0.5, yields=400.0)
        )

    def test_the_tenants_word_goes_first(self):
        before = contention.Work(1.0, 3.0, progress=100.0)
        self.assertEqual(
            LOSES, verdict(before, run=1.0, wait=0.0, progress=104.0)
        )
        self.assertEqual(
            PAYS, verdict(before, run=0.1, wait=3.0, progress=105.0)
        )
        # Not held up by anybody but the balloon.
        self.assertEqual(
            LOSES,
            verdict(
                contention.Work(2.0, 2.0, progress=100.0),
                run=1.0,
                wait=0.0,
                progress=70.0,
            ),
        )

    def test_the_best_gainer_is_kept_whatever_the_load_beside_it(self):
        for before, after in BESIDE_LOAD:
            self.assertEqual(PAYS, Trace(6.0, before, after).decision)

    def test_a_gainer_is_never_called_a_loser_beside_load(self):
        for gain in (1.3, 2.0, 6.0):
            for before, after in BESIDE_LOAD:
                one = Trace(gain, before, after)
                # Unknown only where it is slower, with less CPU time.
                slower = gain * after < 1.05 * before
                self.assertEqual(
                    UNKNOWN if slower else PAYS,
                    one.decision,
                    (gain, before, after),
                )

    def test_a_loser_is_reverted_whatever_the_load_beside_it(self):
        for gain in (0.48, 0.7, 0.9):
            for before, after in BESIDE_LOAD:
                one = Trace(gain, before, after)
                self.assertEqual(LOSES, one.decision, (gain, before, after))

    def test_without_a_counter_nothing_is_claimed_beside_load(self):
        for before, after in BESIDE_LOAD:
            self.assertEqual(
                UNKNOWN, Trace(6.0, before, after, counter=False).decision
            )

    def test_a_counter_that_went_or_stood_says_nothing(self):
        gone = contention.Work(1.0, 3.0, progress=100.0)
        self.assertEqual(UNKNOWN, verdict(gone, run=1.0, wait=0.1))
        stood = contention.Work(1.0, 3.0, progress=0.0)
        self.assertEqual(
            UNKNOWN, verdict(stood, run=1.0, wait=0.1, progress=5.0)
        )

    @hypothesis.given(
        *[st.floats(0, 8)] * 4,
        *[st.none() | st.floats(0, 1e12)] * 4,
        st.integers(1, 64),
    )
    def test_any_figures(
        self, run, wait, ran, waited, one, two, three, four, online
    ):
        found = trial.judge(
            contention.Work(run, wait, one, two),
            contention.Work(ran, waited, three, four),
            BAR,
            online,
        )
        self.assertIn(found.decision, tuple(trial.Decision))
        self.assertLess(len(found.reason), 500)

    def test_reasons_have_figures(self):
        self.assertIn(
            '3.00',
            trial.judge(BEFORE, contention.Work(1.0, 0.1), BAR, 1).reason,
        )
        self.assertIn(
            '+50.0 %',
            trial.judge(
                contention.Work(1, 1, progress=2.0),
                contention.Work(1, 1, progress=3.0),
                BAR,
                1,
            ).reason,
        )


class StandingTestCase(base.BaseTestCase):
    def test_a_balloon_that_pays(self):
        status = trial.BalloonStatus()
        self.assertTrue(status.may_shrink(0))
        status = status.shrunk(100, BEFORE, PACE)
        self.assertTrue(status.ballooned)
        self.assertFalse(status.settled(101, PACE))
        self.assertTrue(status.settled(102, PACE))
        self.assertFalse(status.due(109, PACE))
        self.assertTrue(status.due(110, PACE))
        status = status.kept(110)
        self.assertFalse(status.due(200, PACE))
        status = status.watched(200, True).watched(205, True)
        self.assertFalse(status.may_grow(209, PACE))
        self.assertTrue(status.may_grow(210, PACE))
        self.assertFalse(
            status.watched(209, False).watched(210, True).may_grow(219, PACE)
        )
        status = status.full(210, trial.Outcome.CALM, PACE)
        self.assertFalse(status.ballooned)
        self.assertFalse(status.may_shrink(239))
        self.assertTrue(status.may_shrink(240))

    def test_back_off_doubles_and_is_bounded(self):
        status, now, waits = trial.BalloonStatus(), 0.0, []
        for _ in range(9):
            status = status.shrunk(now, BEFORE, PACE).full(
                now, trial.Outcome.REVERTED, PACE
            )
            waits.append(status.not_before_s - now)
            now = status.not_before_s
        self.assertEqual(
            [300, 600, 1200, 2400, 4800, 9600, 14400, 14400, 14400], waits
        )
        status = status.shrunk(now, BEFORE, PACE).kept(now)
        self.assertEqual(0, status.failures)

    @hypothesis.given(st.lists(st.booleans(), min_size=1, max_size=400))
    def test_flapping_is_bounded_by_the_cooldown(self, needed):
        status, actions = trial.BalloonStatus(), []
        for now, need in enumerate(needed):
            if status.due(now, PACE):
                status = status.kept(now)
            if status.ballooned:
                status = status.watched(now, not need)
                if status.may_grow(now, PACE):
                    status = status.full(now, trial.Outcome.CALM, PACE)
                    actions.append(now)
            elif need and status.may_shrink(now):
                status = status.shrunk(now, BEFORE, PACE)
                actions.append(now)
        for first, third in zip(actions, actions[2:], strict=False):
            self.assertGreaterEqual(third - first, PACE.cooldown_s)
