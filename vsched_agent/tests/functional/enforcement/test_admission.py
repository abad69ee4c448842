# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction

import hypothesis
from hypothesis import strategies

from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional.enforcement import kernel_case
from vsched_lib.model import admission
from vsched_lib.model import reservation

#: How far above our bound the kernel may admit: the last 1 %.
SLACK = Fraction(101, 100)
MOST_THREADS = 12


@strategies.composite
def promises(draw):
    """Sets that add up to something around two CPUs."""
    periods = draw(
        strategies.lists(
            strategies.integers(100, 1_000_000),
            min_size=2,
            max_size=MOST_THREADS,
        )
    )
    weights = [draw(strategies.integers(1, 100)) for _ in periods]
    total = draw(
        strategies.fractions(Fraction(3, 2), Fraction(2))
        | strategies.fractions(Fraction(179, 100), Fraction(181, 100))
    )
    found = []
    for period_us, weight in zip(periods, weights, strict=True):
        share = min(Fraction(1), total * weight / sum(weights))
        found.append(
            reservation.Reservation(
                min(period_us, max(2, int(share * period_us))), period_us
            )
        )
    return found


class TestAdmission(kernel_case.KernelCase):
    """The core agrees with the kernel, and is never more generous."""

    def setUp(self):
        super().setUp()
        self.tids = self.farm.add(MOST_THREADS)
        self.capacity = self.books.current()

    def kernel_admits(self, found):
        tids = self.tids[: len(found)]
        failure = sched.set_deadline(
            [
                (tid, one.runtime_us * 1000, one.period_us * 1000, 0)
                for tid, one in zip(tids, found, strict=True)
            ]
        )
        if not failure:
            self.assertEqual(
                (),
                tuple(
                    sched.leave_deadline(
                        [(tid, syscalls.SCHED_OTHER, 0, 0, 0) for tid in tids]
                    )
                ),
            )
        return not failure

    def test_it_agrees_with_the_kernel(self):
        seen = {True: 0, False: 0}

        @hypothesis.settings(
            max_examples=250,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(promises())
        def compare(found):
            verdict = admission.admit(
                [admission.Claim(one, (None,)) for one in found], self.capacity
            )
            admits = self.kernel_admits(found)
            seen[admits] += 1
            if verdict.fits:
                self.assertTrue(admits, '%s: %s' % (verdict.reason, found))
            elif admits:
                self.assertLessEqual(verdict.needed, verdict.bound * SLACK)

        compare()
        # Sets on one side only would prove nothing.
        self.assertGreater(seen[True], 10)
        self.assertGreater(seen[False], 10)
