# SPDX-License-Identifier: Apache-2.0

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import contention

SECOND_NS = 1_000_000_000
THRESHOLDS = contention.Thresholds()

USES = st.builds(
    contention.VcpuUse,
    st.integers(0, SECOND_NS),
    st.integers(0, SECOND_NS),
    st.integers(0, 1000),
)


def window(*shares, samples=3, yields=None):
    """A full window of vCPUs that (run, wait) such parts of the time."""
    found = contention.Window(samples)
    for _ in range(samples):
        found.add(
            SECOND_NS,
            {
                index: contention.VcpuUse(
                    int(run * SECOND_NS), int(wait * SECOND_NS), 100, yields
                )
                for index, (run, wait) in enumerate(shares)
            },
        )
    return found


class WindowTestCase(base.BaseTestCase):
    def test_work_is_per_second(self):
        self.assertEqual(
            contention.Work(1.0, 0.5, 40.0),
            window((0.5, 0.25), (0.5, 0.25), yields=20).work(),
        )
        self.assertEqual(
            contention.Work(0.0, 0.0), contention.Window(3).work()
        )

    def test_other_vcpus_begin_anew(self):
        found = window((0.5, 0.5), (0.5, 0.5))
        self.assertTrue(found.full)
        found.add(SECOND_NS, {0: contention.VcpuUse(SECOND_NS, 0)})
        self.assertFalse(found.full)
        self.assertEqual(SECOND_NS, found.interval_ns)

    def test_an_interval_of_nothing_is_passed_over(self):
        found = contention.Window(1)
        found.add(0, {0: contention.VcpuUse(1, 1)})
        self.assertFalse(found.full)

    @hypothesis.given(
        st.lists(
            st.fixed_dictionaries({0: USES, 1: USES}), min_size=1, max_size=8
        )
    )
    def test_only_the_last_samples_count(self, samples):
        found, last = contention.Window(3), contention.Window(3)
        for uses in samples:
            found.add(SECOND_NS, uses)
        for uses in samples[-3:]:
            last.add(SECOND_NS, uses)
        self.assertEqual(last.vcpus(), found.vcpus())


class RuleTestCase(base.BaseTestCase):
    def test_more_than_half(self):
        waiting, running = (0.4, 0.6), (1.0, 0.0)
        for shares, expected in (
            ([waiting] * 4, True),
            ([waiting] * 3 + [running], True),
            ([waiting] * 2 + [running] * 2, False),
            ([running] * 4, False),
            ([waiting], False),
        ):
            self.assertEqual(
                expected,
                contention.contended(window(*shares), THRESHOLDS),
                shares,
            )

    def test_idle_vcpus_are_not_contended(self):
        self.assertEqual(
            frozenset({0}),
            contention.contended_vcpus(
                window((0.3, 0.6), (0.01, 0.05)), THRESHOLDS
            ),
        )

    def test_yields_count_by_themselves(self):
        self.assertTrue(
            contention.contended(
                window((0.9, 0.0), (0.9, 0.0), yields=1001), THRESHOLDS
            )
        )
        self.assertFalse(
            contention.contended(
                window((0.9, 0.0), (0.9, 0.0), yields=1000), THRESHOLDS
            )
        )

    def test_a_window_that_is_not_full_says_nothing(self):
        found = contention.Window(3)
        found.add(
            SECOND_NS,
            {index: contention.VcpuUse(1, SECOND_NS) for index in range(2)},
        )
        self.assertFalse(contention.contended(found, THRESHOLDS))

    def test_overcommitted(self):
        work = window((0.5, 0.5), (0.5, 0.5)).work()
        self.assertFalse(contention.overcommitted([work], 2))
        self.assertTrue(contention.overcommitted([work, work], 2))
        self.assertEqual(0.5, work.wait_share)
        self.assertEqual(0.0, contention.Work(0.0, 0.0).wait_share)
