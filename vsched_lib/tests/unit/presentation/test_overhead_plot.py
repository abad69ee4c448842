# SPDX-License-Identifier: Apache-2.0

"""The picture of an overhead profile."""

from oslotest import base

from vsched_lib.presentation import error_plots
from vsched_lib.tests import overhead_profiles


class OverheadPlotTestCase(base.BaseTestCase):
    def draw(self, form='svg', **changes):
        return error_plots.render_overhead(
            overhead_profiles.profile(**changes), form, host='node1'
        )

    def test_experiments_and_axes_are_named(self):
        text = self.draw().decode()
        for word in (
            'node1',
            'net-rx',
            'net-tx',
            'measured, % of a CPU',
            'explains 97.0 %',
        ):
            self.assertIn(word, text)
        self.assertNotIn('poor fit', text)

    def test_a_poor_one_says_so(self):
        self.assertIn('poor fit', self.draw(good=False).decode())

    def test_without_points(self):
        self.assertIn('no points', self.draw(points=()).decode())

    def test_the_same_profile_gives_the_same_file(self):
        self.assertEqual(self.draw(), self.draw())

    def test_png(self):
        self.assertTrue(self.draw('png').startswith(b'\x89PNG'))
        self.assertRaises(ValueError, self.draw, 'pdf')
