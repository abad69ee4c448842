# SPDX-License-Identifier: Apache-2.0

"""How instances slow each other down: the prior, and what is measured."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import extra_specs
from vsched_lib.model import interference

CLASSES = st.sampled_from(interference.CLASSES)
NEIGHBOURS = st.dictionaries(CLASSES, st.integers(0, 9))


class TestInterference(base.BaseTestCase):
    """The model of what neighbours cost."""

    def setUp(self):
        super().setUp()
        self.known = interference.Interference()

    def test_classes_are_those_of_flavors(self):
        self.assertEqual(
            set(map(str, extra_specs.WorkloadClass)), set(interference.CLASSES)
        )

    def test_the_order_of_the_papers_findings(self):
        def one(victim, neighbour):
            return self.known.slowdown(victim, {neighbour: 1})

        self.assertEqual(0, one('disk', 'compute'))
        self.assertLess(one('web', 'disk'), one('web', 'compute'))
        self.assertLess(
            one('transactional', 'disk'), one('transactional', 'compute')
        )
        self.assertGreater(one('bandwidth', 'compute'), 0)
        self.assertGreater(one('transactional', 'web'), 0)
        self.assertGreater(one('web', 'transactional'), 0)

    def test_what_nobody_looked_at_is_neutral(self):
        for victim, neighbour in (
            ('compute', 'compute'),
            ('disk', 'disk'),
            (None, 'compute'),
            ('web', 'unheard of'),
        ):
            self.assertEqual(0, self.known.slowdown(victim, {neighbour: 3}))
        self.assertEqual(0, self.known.cost(None, {'web': 5}))

    def test_both_sides_of_a_pair_count(self):
        self.assertEqual(
            3 * interference.MUCH, self.known.cost('compute', {'web': 3})
        )
        self.assertEqual(
            2 * interference.MUCH, self.known.cost('web', {'compute': 2})
        )

    @given(NEIGHBOURS, NEIGHBOURS, CLASSES)
    def test_more_neighbours_never_cost_less(self, some, more, newcomer):
        together = {
            name: some.get(name, 0) + more.get(name, 0)
            for name in {*some, *more}
        }
        self.assertLessEqual(
            self.known.cost(newcomer, some) - 1e-9,
            self.known.cost(newcomer, together),
        )

    @given(CLASSES, CLASSES, st.floats(0, 5), st.integers(1, 4))
    def test_measurements_win_in_the_end(
        self, victim, neighbour, truth, count
    ):
        found = self.known
        for _ in range(400):
            found = found.after(victim, {neighbour: count}, truth)
        self.assertAlmostEqual(
            truth, found.slowdown(victim, {neighbour: count}), delta=0.3
        )

    def test_one_measurement_says_little_against_the_prior(self):
        before = self.known.slowdown('web', {'compute': 1})
        after = self.known.after('web', {'compute': 1}, 10.0).slowdown(
            'web', {'compute': 1}
        )
        self.assertTrue(before < after < 1.0, after)
        # And all of what is known where there is none.
        self.assertEqual(
            0.3,
            self.known.after('compute', {'compute': 1}, 0.3).slowdown(
                'compute', {'compute': 1}
            ),
        )

    def test_a_measurement_alone_changes_nothing(self):
        self.assertEqual(
            self.known.estimates,
            self.known.after('web', {'compute': 0}, 3.0).estimates,
        )

    @given(
        st.lists(st.tuples(CLASSES, NEIGHBOURS, st.floats(0, 9)), max_size=9)
    )
    def test_no_cost_is_below_nothing(self, measured):
        found = self.known
        for victim, neighbours, slowdown in measured:
            found = found.after(victim, neighbours, slowdown)
        self.assertTrue(
            all(one.slowdown >= 0 for one in found.estimates.values())
        )
