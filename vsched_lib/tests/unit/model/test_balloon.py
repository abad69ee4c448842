# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import balloon
from vsched_lib.model import reservation
from vsched_lib.tests import strategies


@st.composite
def shares(draw, cpus, confined=True):
    count = draw(st.integers(1, 6))
    return [
        balloon.Share(
            'vm-%d' % number,
            draw(st.integers(1, 16)),
            draw(st.integers(1, 1000)),
            draw(st.integers(1, 4)),
            draw(
                st.none()
                | st.sets(st.integers(0, cpus - 1), min_size=1).map(frozenset)
            )
            if confined
            else None,
            draw(st.none() | st.none() | st.integers(0, 4)),
        )
        for number in range(count)
    ]


class KnownTestCase(base.BaseTestCase):
    def divide(self, cpus, *expected):
        parts = balloon.divide(expected, range(cpus))
        return {uuid: part.vcpus for uuid, part in parts.items()}

    def test_the_papers_example(self):
        parts = balloon.divide(
            [balloon.Share('a', 12, 512), balloon.Share('b', 12, 256)],
            range(12),
        )
        self.assertEqual((8, 4), (parts['a'].vcpus, parts['b'].vcpus))
        self.assertEqual(tuple(range(8)), parts['a'].cpus)
        self.assertEqual(tuple(range(8, 12)), parts['b'].cpus)

    def test_largest_remainder(self):
        # 10/3 each: the first gets the rest.
        self.assertEqual(
            {'a': 4, 'b': 3, 'c': 3},
            self.divide(10, *(balloon.Share(name, 10) for name in 'abc')),
        )

    def test_those_that_take_no_part_take_their_cpus(self):
        self.assertEqual(
            {'a': 5, 'b': 3},
            self.divide(
                12,
                balloon.Share('a', 12, 512),
                balloon.Share('b', 12, 256),
                balloon.Share('off', 4, taken=4),
            ),
        )

    def test_a_pinned_one_keeps_its_own_cpus(self):
        parts = balloon.divide(
            [
                balloon.Share('a', 4),
                balloon.Share('b', 4),
                balloon.Share('pinned', 1, cpus=frozenset({0}), taken=1),
            ],
            range(3),
        )
        self.assertEqual(
            {1, 2}, {cpu for part in parts.values() for cpu in part.cpus}
        )

    def test_floor_and_ceiling(self):
        self.assertEqual(
            {'a': 1, 'b': 7},
            self.divide(8, balloon.Share('a', 1, 1000), balloon.Share('b', 8)),
        )
        self.assertEqual(
            {'a': 3, 'b': 5},
            self.divide(
                8,
                balloon.Share('a', 8, 1, min_vcpus=3),
                balloon.Share('b', 8, 1000),
            ),
        )

    def test_more_instances_than_cpus(self):
        parts = balloon.divide(
            [balloon.Share(name, 4) for name in 'abc'], range(2)
        )
        self.assertEqual([1, 1, 1], [part.vcpus for part in parts.values()])
        self.assertEqual(2, sum(len(part.cpus) for part in parts.values()))

    def test_what_one_cannot_reach_others_get(self):
        # Each would get two; a may use one CPU only.
        parts = balloon.divide(
            [
                balloon.Share('a', 4, cpus=frozenset({0})),
                balloon.Share('b', 4),
            ],
            range(4),
        )
        self.assertEqual(((0,), (1, 2, 3)), (parts['a'].cpus, parts['b'].cpus))

    def test_groups_that_share_nothing(self):
        self.assertEqual(
            {'a': 1, 'b': 1, 'c': 2},
            self.divide(
                4,
                balloon.Share('a', 4, cpus=frozenset({0, 1})),
                balloon.Share('b', 4, cpus=frozenset({0, 1})),
                balloon.Share('c', 4, cpus=frozenset({2, 3})),
            ),
        )

    def test_nobody(self):
        self.assertEqual({}, balloon.divide([], range(4)))

    def test_figures_that_make_no_sense(self):
        for fields in (
            {'configured': 0},
            {'weight': 0},
            {'min_vcpus': 0},
            {'taken': -1},
        ):
            self.assertRaises(
                ValueError, balloon.Share, 'a', **{'configured': 1, **fields}
            )

    def test_the_highest_go_first(self):
        self.assertEqual({0, 1}, balloon.kept_online([3, 1, 0, 2], 2))
        self.assertEqual({0}, balloon.kept_online(range(4), 0))


class DivisionTestCase(base.BaseTestCase):
    @hypothesis.given(st.data())
    def test_whatever_the_cpusets(self, data):
        cpus = data.draw(st.integers(1, 12))
        expected = {one.uuid: one for one in data.draw(shares(cpus))}
        parts = balloon.divide(expected.values(), range(cpus))
        self.assertEqual(
            {uuid for uuid, one in expected.items() if one.taken is None},
            parts.keys(),
        )
        seats = [cpu for part in parts.values() for cpu in part.cpus]
        self.assertEqual(len(seats), len(set(seats)))
        for uuid, part in parts.items():
            one = expected[uuid]
            self.assertLessEqual(one.floor, part.vcpus)
            self.assertLessEqual(part.vcpus, one.configured)
            self.assertIn(len(part.cpus), (0, part.vcpus))
            if one.cpus is not None:
                self.assertLessEqual(set(part.cpus), one.cpus)

    @hypothesis.given(st.data())
    def test_all_is_given_by_weight(self, data):
        cpus = data.draw(st.integers(1, 16))
        expected = data.draw(shares(cpus, confined=False))
        total = max(0, cpus - sum(one.taken or 0 for one in expected))
        sharing = [one for one in expected if one.taken is None]
        parts = balloon.divide(expected, range(cpus))
        given = sum(part.vcpus for part in parts.values())
        floors = sum(one.floor for one in sharing)
        if floors > total:
            self.assertTrue(
                all(parts[one.uuid].vcpus == one.floor for one in sharing)
            )
            return
        self.assertEqual(
            given,
            min(total, sum(min(one.configured, cpus) for one in sharing)),
        )
        # Between those that meet no bound only the rounding differs.
        for one in sharing:
            for other in sharing:
                mine, theirs = (
                    parts[each.uuid].vcpus for each in (one, other)
                )
                if mine > one.floor and theirs < min(other.configured, cpus):
                    self.assertLess(
                        Fraction(mine - 1, one.weight),
                        Fraction(theirs + 1, other.weight),
                    )

    @hypothesis.given(st.data())
    def test_without_bounds_it_is_the_quota_rounded(self, data):
        count = data.draw(st.integers(1, 5))
        cpus = data.draw(st.integers(count, 32))
        weights = data.draw(
            st.lists(st.integers(50, 100), min_size=count, max_size=count)
        )
        parts = balloon.divide(
            [
                balloon.Share('vm-%d' % number, 32, weight)
                for number, weight in enumerate(weights)
            ],
            range(cpus),
        )
        for number, weight in enumerate(weights):
            quota = Fraction(weight * cpus, sum(weights))
            if quota >= 1 and all(
                one * cpus >= sum(weights) for one in weights
            ):
                self.assertLess(abs(parts['vm-%d' % number].vcpus - quota), 1)
        self.assertEqual(cpus, sum(part.vcpus for part in parts.values()))


class ConservationTestCase(base.BaseTestCase):
    @hypothesis.given(
        strategies.reservations(), st.integers(1, 64), st.integers(1, 64)
    )
    def test_never_more_and_hardly_less(self, reserved, before, after):
        kept = balloon.conserved(reserved, before, before)
        self.assertEqual(reserved, kept)
        after = min(before, max(after, balloon.fewest(reserved, before)))
        kept = balloon.conserved(reserved, before, after)
        had, has = reserved.bandwidth(before), kept.bandwidth(after)
        self.assertLessEqual(has, had)
        self.assertLess(had - has, Fraction(after, reserved.period_us))
        self.assertEqual(
            (reserved.period_us, reserved.mode, reserved.backend),
            (kept.period_us, kept.mode, kept.backend),
        )

    def test_no_vcpu_gets_more_than_a_cpu(self):
        reserved = reservation.Reservation(15_000, 20_000)
        self.assertEqual(3, balloon.fewest(reserved, 4))
        self.assertEqual(20_000, balloon.conserved(reserved, 4, 2).runtime_us)
