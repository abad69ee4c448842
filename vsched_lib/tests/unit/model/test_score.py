# SPDX-License-Identifier: Apache-2.0

"""How good hosts are."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import fit
from vsched_lib.model import score


class TestScore(base.BaseTestCase):
    """The numbers that hosts are compared by."""

    def test_headroom(self):
        need = fit.Need(demand_mcpu=250)
        self.assertEqual(0.25, score.headroom(need, 750, 2_000))
        self.assertEqual(0.0, score.headroom(need, 750, 2_000, taken=2))
        self.assertEqual(-0.125, score.headroom(need, 0, 2_000))
        self.assertEqual(0.0, score.headroom(need, 0, 0))

    def test_errors(self):
        self.assertEqual(
            [None, -500.0, 0.0],
            [
                score.allocation_error(fit.Need(error_ppm=error_ppm))
                for error_ppm in (None, -500, 500)
            ],
        )

    def test_overhead(self):
        self.assertEqual(
            [None, -50.0],
            [
                score.io_overhead(fit.Need(overhead_mcpu=overhead_mcpu))
                for overhead_mcpu in (None, 50)
            ],
        )

    def test_what_is_not_known_is_neither_good_nor_bad(self):
        self.assertEqual([2.0, 4.0, 3.0], score.neutral([2.0, 4.0, None]))
        self.assertEqual([0.0, 0.0], score.neutral([None, None]))

    @given(st.lists(st.integers(-(10**9), 10**9).map(float)))
    def test_normal(self, values):
        found = score.normal(values)
        self.assertEqual(len(values), len(found))
        if len(set(values)) > 1:
            self.assertEqual((0.0, 1.0), (min(found), max(found)))
            self.assertEqual(
                sorted(range(len(values)), key=values.__getitem__),
                sorted(
                    range(len(found)),
                    key=lambda one: (found[one], values[one]),
                ),
            )
        else:
            self.assertEqual({0.0} if values else set(), set(found))
