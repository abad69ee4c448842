# SPDX-License-Identifier: Apache-2.0

"""Targets: met, or missed by how much."""

from oslotest import base

from benchmarks import targets


class TargetTestCase(base.BaseTestCase):
    def test_at_most(self):
        target = targets.at_most('m', 2, '%', 'issue 1')
        self.assertEqual('≤ 2 %', target.text())
        self.assertEqual(0, target.missed_by(2))
        self.assertAlmostEqual(0.71, target.missed_by(2.71))

    def test_at_least(self):
        target = targets.at_least('m', 5, '', 'issue 1')
        self.assertEqual('≥ 5', target.text())
        self.assertEqual(0, target.missed_by(5))
        self.assertEqual(2, target.missed_by(3))

    def test_within(self):
        target = targets.within('m', 2, 0.04, '', 'issue 1')
        self.assertEqual('2 ± 0.04', target.text())
        self.assertEqual(0, target.missed_by(1.97))
        self.assertAlmostEqual(1.0, target.missed_by(0.96))
        self.assertAlmostEqual(1.0, target.missed_by(3.04))

    def test_exactly(self):
        self.assertEqual(
            '= 0', targets.within('m', 0, 0, '', 'issue 1').text()
        )


class VerdictTestCase(base.BaseTestCase):
    target = targets.at_most('m', 10, '%', 'issue 4')

    def test_median_of_the_current_runs_decides(self):
        self.assertEqual('met', targets.verdict(self.target, [5.0], []))
        self.assertEqual(
            'met; 2 of all 3 runs met it',
            targets.verdict(self.target, [5.0, 6.0, 99.0], []),
        )
        self.assertEqual(
            'missed by 6.85 %', targets.verdict(self.target, [16.85], [])
        )

    def test_runs_of_other_sources_are_counted_beside(self):
        self.assertEqual(
            'missed by 6.85 %; 1 of all 2 runs met it',
            targets.verdict(self.target, [16.85], [5.21]),
        )
        self.assertEqual(
            'met; 1 of all 2 runs met it',
            targets.verdict(self.target, [5.21], [16.85]),
        )
        self.assertEqual('met', targets.verdict(self.target, [5.21], [5.0]))

    def test_nothing_current(self):
        self.assertEqual(
            'not measured', targets.verdict(self.target, [], [5.0])
        )

    def test_number(self):
        self.assertEqual(
            ['22203', '2.71', '1.234e-05', '503'],
            [targets.number(one) for one in (22202.6, 2.71, 1.2341e-5, 503)],
        )

    def test_spread(self):
        self.assertEqual('', targets.spread([]))
        self.assertEqual('5.21 (1 run)', targets.spread([5.21]))
        self.assertEqual(
            '5.21 (1.5 to 16.85, 3 runs)', targets.spread([5.21, 16.85, 1.5])
        )
