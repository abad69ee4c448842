# SPDX-License-Identifier: Apache-2.0

import dataclasses
from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import unclaimed

Grant = unclaimed.Grant


def demand(least, full, held=0, peak=0, part=0):
    return unclaimed.Demand(
        *(Fraction(one, 100) for one in (least, full, held)),
        peak=Fraction(peak, 100),
        part=Fraction(part, 100),
    )


def has_room(one, grant):
    return one.room and one.amount(grant) > one.full


def divide(free, **demands):
    return {
        uuid: grant.value
        for uuid, grant in unclaimed.divide(
            demands, Fraction(free, 100)
        ).items()
    }


@st.composite
def all_demands(draw):
    found = {}
    for number in range(draw(st.integers(0, 6))):
        least = draw(st.integers(1, 60))
        full = least + draw(st.integers(0, 30))
        peak = draw(st.sampled_from((0, full + draw(st.integers(0, 90)))))
        found['vm%d' % number] = demand(
            least,
            full,
            draw(st.sampled_from((0, least, full, full + 5, peak))),
            peak,
            draw(st.sampled_from((0, (full + peak) // 2, full + 3))),
        )
        if draw(st.booleans()):
            found['vm%d' % number] = dataclasses.replace(
                found['vm%d' % number], idle=True
            )
    return found


class TestDivide(base.BaseTestCase):
    def test_enough_for_all(self):
        self.assertEqual(
            {'a': 'full', 'b': 'full'},
            divide(45, a=demand(10, 15), b=demand(20, 30, 20)),
        )

    def test_head_room_goes_first(self):
        self.assertEqual(
            {'a': 'full', 'b': 'least'},
            divide(36, a=demand(10, 15, 15), b=demand(20, 30, 30)),
        )

    def test_those_that_need_least_come_first(self):
        self.assertEqual(
            {'a': 'full', 'b': 'nothing'},
            divide(25, a=demand(10, 15, 15), b=demand(20, 30, 30)),
        )
        self.assertEqual(
            {'a': 'nothing', 'b': 'nothing'},
            divide(9, a=demand(10, 15, 15), b=demand(20, 30, 30)),
        )

    def test_a_newcomer_needs_its_head_room(self):
        self.assertEqual(
            {'a': 'full', 'b': 'nothing'},
            divide(24, a=demand(10, 15, 12), b=demand(11, 16)),
        )
        self.assertEqual(
            {'a': 'least', 'b': 'full'},
            divide(26, a=demand(10, 15, 12), b=demand(11, 16)),
        )

    def test_a_newcomer_displaces_what_needs_twice_as_much(self):
        for least, granted in ((4, 'full'), (6, 'nothing')):
            self.assertEqual(
                granted,
                divide(13, a=demand(10, 15, 10), b=demand(least, least))['b'],
            )

    def test_those_that_hardly_run_come_last(self):
        idle = unclaimed.Demand(Fraction(2, 100), Fraction(2, 100), idle=True)
        self.assertEqual(
            {'a': 'held', 'b': 'nothing'},
            divide(11, a=demand(10, 15, 11), b=idle),
        )
        self.assertEqual(
            {'a': 'least', 'b': 'full'},
            divide(12, a=demand(10, 15, 11), b=idle),
        )

    def test_room_for_bursts_when_all_have_their_head_room(self):
        bursty = demand(10, 15, 15, peak=35)
        for free, granted in ((59, 'full'), (60, 'peak')):
            # A quarter of the room has to be free beside it.
            self.assertEqual(
                {'a': granted, 'b': 'full'},
                divide(free, a=bursty, b=demand(20, 20, 20)),
            )

    def test_room_for_bursts_is_kept_while_it_is_there(self):
        bursty = demand(10, 15, 35, peak=35)
        for free, granted in ((54, 'full'), (55, 'peak')):
            self.assertEqual(
                granted, divide(free, a=bursty, b=demand(20, 20, 20))['a']
            )

    def test_room_that_would_grow_too_much_is_kept(self):
        self.assertEqual(
            {'a': 'held', 'b': 'full'},
            divide(56, a=demand(10, 15, 35, peak=40), b=demand(20, 20, 20)),
        )

    def test_a_part_of_the_room_where_all_of_it_does_not_fit(self):
        bursty = demand(10, 15, 15, peak=35, part=25)
        for free, granted in (
            (47, 'full'),
            # A quarter of the part has to be free beside it.
            (48, 'part'),
            (59, 'part'),
            (60, 'peak'),
        ):
            self.assertEqual(
                {'a': granted, 'b': 'full'},
                divide(free, a=bursty, b=demand(20, 20, 20)),
            )

    def test_a_part_of_the_room_is_kept_while_it_is_there(self):
        for held in (25, 35):
            bursty = demand(10, 15, held, peak=35, part=25)
            for free, granted in ((44, 'full'), (45, 'part'), (54, 'part')):
                self.assertEqual(
                    granted, divide(free, a=bursty, b=demand(20, 20, 20))['a']
                )

    def test_room_between_a_part_and_all_of_it_is_kept(self):
        bursty = demand(10, 15, 30, peak=35, part=25)
        for free, granted in ((49, 'part'), (50, 'held'), (57, 'peak')):
            self.assertEqual(
                granted, divide(free, a=bursty, b=demand(20, 20, 20))['a']
            )

    def test_each_gets_a_part_before_any_gets_all(self):
        self.assertEqual(
            {'a': 'part', 'b': 'part'},
            divide(
                56,
                a=demand(10, 15, 15, peak=35, part=25),
                b=demand(8, 12, 12, peak=30, part=20),
            ),
        )

    def test_room_for_bursts_is_taken_first(self):
        self.assertEqual(
            {'a': 'full', 'b': 'full'},
            divide(45, a=demand(10, 15, 35, peak=35), b=demand(20, 30, 20)),
        )

    def test_small_needs_get_room_for_bursts_first(self):
        self.assertEqual(
            {'a': 'full', 'b': 'peak'},
            divide(
                60, a=demand(10, 15, 15, peak=35), b=demand(8, 12, 12, peak=30)
            ),
        )

    def test_room_for_bursts_is_displaced_by_half_the_need(self):
        for least, granted in ((6, 'full'), (4, 'peak')):
            self.assertEqual(
                granted,
                divide(
                    50,
                    a=demand(10, 15, 35, peak=35),
                    b=demand(least, 12, 12, peak=30),
                )['b'],
            )

    def test_no_room_for_bursts_below_head_room(self):
        self.assertEqual(
            {'a': 'full'}, divide(90, a=demand(10, 15, 15, peak=12))
        )

    def test_nothing_is_free(self):
        for free in (0, -10):
            self.assertEqual({'a': 'nothing'}, divide(free, a=demand(2, 3, 3)))

    @hypothesis.given(all_demands(), st.integers(-20, 300))
    def test_what_is_granted(self, demands, free):
        free = Fraction(free, 100)
        grants = unclaimed.divide(demands, free)
        self.assertEqual(demands.keys(), grants.keys())
        amounts = {
            uuid: demands[uuid].amount(grant) for uuid, grant in grants.items()
        }
        self.assertLessEqual(sum(amounts.values()), max(free, 0))
        for uuid, one in demands.items():
            if grants[uuid] is not Grant.NOTHING:
                self.assertLessEqual(one.least, amounts[uuid])
        refused = [
            one
            for uuid, one in demands.items()
            if grants[uuid] is Grant.NOTHING
        ]
        # Who got nothing would not fit beside those that come before it.
        for one in refused:
            before = sum(
                other.entry
                for uuid, other in demands.items()
                if grants[uuid] is not Grant.NOTHING and other.rank <= one.rank
            )
            self.assertGreater(before + one.entry, free)

    @hypothesis.given(all_demands(), st.integers(0, 300))
    def test_it_comes_to_rest(self, demands, free):
        seen = []
        for _ in range(2 * len(demands) + 3):
            grants = unclaimed.divide(demands, Fraction(free, 100))
            seen.append(grants)
            demands = {
                uuid: dataclasses.replace(one, held=one.amount(grants[uuid]))
                for uuid, one in demands.items()
            }
        held = [
            {uuid for uuid, grant in one.items() if grant is not Grant.NOTHING}
            for one in seen
        ]
        self.assertEqual(held[-2], held[-1])
        rooms = [
            {
                uuid
                for uuid, grant in one.items()
                if has_room(demands[uuid], grant)
            }
            for one in seen
        ]
        self.assertEqual(rooms[-2], rooms[-1])

    @hypothesis.given(all_demands(), st.integers(0, 300))
    def test_room_for_bursts_takes_nothing(self, demands, free):
        free = Fraction(free, 100)
        without = unclaimed.divide(
            {
                uuid: dataclasses.replace(one, peak=Fraction(0))
                for uuid, one in demands.items()
            },
            free,
        )
        grants = unclaimed.divide(demands, free)
        for uuid, grant in grants.items():
            if has_room(demands[uuid], grant):
                self.assertEqual({Grant.FULL}, set(without.values()))
            else:
                self.assertIs(without[uuid], grant)

    @hypothesis.given(all_demands(), st.integers(0, 300), st.integers(0, 90))
    def test_more_capacity_takes_room_for_smaller_needs_only(
        self, demands, free, more
    ):
        demands = {uuid: one for uuid, one in demands.items() if one.room}
        for _ in range(2 * len(demands) + 3):
            grants = unclaimed.divide(demands, Fraction(free, 100))
            demands = {
                uuid: dataclasses.replace(one, held=one.amount(grants[uuid]))
                for uuid, one in demands.items()
            }
        after = unclaimed.divide(demands, Fraction(free + more, 100))
        for uuid, grant in grants.items():
            if has_room(demands[uuid], grant) and not has_room(
                demands[uuid], after[uuid]
            ):
                self.assertTrue(
                    any(
                        one.amount(after[other]) > one.amount(grants[other])
                        and one.room_rank <= demands[uuid].room_rank
                        for other, one in demands.items()
                    )
                )

    @hypothesis.given(all_demands(), st.integers(0, 300), st.integers(1, 60))
    def test_more_need_displaces_nobody(self, demands, free, more):
        """An instance that does more I/O takes nothing from others."""
        if not demands:
            return
        free = Fraction(free, 100)
        before = unclaimed.divide(demands, free)
        uuid, one = next(iter(demands.items()))
        more = Fraction(more, 100)
        greedy = {
            **demands,
            uuid: dataclasses.replace(
                one, least=one.least + more, full=one.full + more
            ),
        }
        after = unclaimed.divide(greedy, free)
        for other, grant in before.items():
            if (
                demands[other].rank <= one.rank
                and other != uuid
                and grant is not Grant.NOTHING
            ):
                self.assertIsNot(Grant.NOTHING, after[other])
