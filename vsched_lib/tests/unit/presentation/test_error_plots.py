# SPDX-License-Identifier: Apache-2.0

"""The pictures of an error profile."""

import dataclasses
import sys
from unittest import mock
from xml.etree import ElementTree

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.presentation import error_page
from vsched_lib.presentation import error_plots
from vsched_lib.tests import error_profiles


def texts(profile, figure, **host):
    """What is written in a picture."""
    root = ElementTree.fromstring(
        error_plots.render(profile, figure, 'svg', **host)
    )
    return [
        ''.join(one.itertext()).strip()
        for one in root.iter('{http://www.w3.org/2000/svg}text')
    ]


class RenderTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.profile = error_profiles.full(
            windows=20, shares_ppm=(10_000, 50_000, 100_000, 500_000)
        )

    def _assert_says(self, wanted, found):
        for text in wanted:
            self.assertTrue(any(text in one for one in found), (text, found))

    def test_png(self):
        for figure in error_plots.FIGURES:
            self.assertTrue(
                error_plots.render(self.profile, figure, 'png').startswith(
                    b'\x89PNG\r\n\x1a\n'
                )
            )

    def test_heading_says_where_the_data_come_from(self):
        for figure in error_plots.FIGURES:
            found = texts(self.profile, figure, host='compute-1')
            self._assert_says(
                (
                    'compute-1',
                    'Linux 6.1.0-18-amd64',
                    'tick 4 ms',
                    '2 CPUs',
                    'benchmark no. 3 of 2025-10-09',
                    'backends deadline, cfs',
                    'period 10 ms',
                    'host threads',
                    '20 windows of 1 s at each of 16 points, 320 in all',
                ),
                found,
            )
            self.assertFalse(any('quick' in one for one in found))

    def test_quick_and_incomplete_are_said(self):
        profile = dataclasses.replace(self.profile, quick=True, complete=False)
        for figure in error_plots.FIGURES:
            self._assert_says(
                ('quick run: wide bounds', '161 windows', 'incomplete'),
                texts(profile, figure),
            )

    def test_live(self):
        profile = dataclasses.replace(
            self.profile, source=profiles.ProfileSource.LIVE
        )
        self._assert_says(('free samples no. 3',), texts(profile, 'mean'))

    def test_error(self):
        found = texts(self.profile, 'error')
        self._assert_says(
            (
                'deadline alone, period 10 ms',
                'deadline beside 4 hogs, period 10 ms',
                'cfs alone, period 10 ms',
                'cfs beside 4 hogs, period 10 ms',
                'promised share of a CPU, %',
                'error, % of the promise',
                'Xen SEDF: max 9.52 %',
                'Xen Credit: 10 % beyond 36.3 %',
                '\N{MINUS SIGN}100',
            ),
            found,
        )
        self.assertNotIn('not measured', found)

    def test_error_of_what_was_not_measured(self):
        points = [
            one
            for one in self.profile.points
            if one.backend != 'cfs' or one.contenders
        ]
        self.assertIn(
            'not measured',
            texts(
                dataclasses.replace(self.profile, points=tuple(points)),
                'error',
            ),
        )

    def test_cdf(self):
        found = texts(self.profile, 'cdf')
        self._assert_says(
            (
                'deadline alone: ',
                'deadline beside 4 hogs: ',
                'cfs alone: ',
                'cfs beside 4 hogs: ',
                'windows beyond, %',
                'error of a window, % of the promise',
            ),
            found,
        )
        low, high = (
            find(
                getattr(one, name)
                for one in self.profile.points
                if one.backend == 'cfs' and one.contenders
            )
            / 10_000
            for find, name in ((min, 'min_ppm'), (max, 'max_ppm'))
        )
        self._assert_says(('%.2g %% to %.2g %%' % (-low, high),), found)

    def test_mean(self):
        found = texts(self.profile, 'mean')
        for name in (
            'deadline alone',
            'deadline beside 4 hogs',
            'cfs alone',
            'cfs beside 4 hogs',
            'mean error, % of the promise',
        ):
            self.assertEqual(1, found.count(name), found)

    def test_a_panel_for_each_period(self):
        profile = error_profiles.full(
            windows=5, shares_ppm=(200_000,), periods_us=(10_000, 500)
        )
        for figure in ('cdf', 'mean'):
            found = texts(profile, figure)
            self.assertEqual(1, found.count('period 10 ms'))
            self.assertEqual(1, found.count('period 0.5 ms'))

    def test_long_lines_are_broken_between_facts(self):
        profile = error_profiles.profile(
            [error_profiles.point([1])], kernel='a b' * 16
        )
        found = texts(profile, 'mean', host='h' * 48)
        facts = (
            'h' * 48,
            'Linux ' + 'a b' * 16,
            'tick 4 ms',
            '2 CPUs',
            'load 0.3',
            'benchmark no. 3 of 2025-10-09',
        )
        self.assertNotIn(' · '.join(facts), found)
        self._assert_says(facts, found)

    def test_probes_are_told_apart(self):
        profile = error_profiles.profile(
            [
                error_profiles.point(range(9), probe=probe)
                for probe in profiles.Probe
            ]
        )
        found = texts(profile, 'mean')
        self._assert_says(
            ('host threads and vCPUs of a VM', 'thin: in a VM'), found
        )
        self.assertFalse(any('dashed: alone' in one for one in found))
        self.assertIn('deadline alone', found)
        self.assertIn('deadline alone in a VM', found)

    def test_same_profile_same_file(self):
        for figure in error_plots.FIGURES:
            first = error_plots.render(self.profile, figure, 'svg')
            self.assertEqual(
                first, error_plots.render(self.profile, figure, 'svg')
            )
            self.assertNotIn(b'dc:date', first)

    def test_settings_of_the_process_are_left_alone(self):
        import matplotlib

        # Who looks at the backend chooses one.
        names = set(matplotlib.rcParams) - {'backend'}
        before = {name: matplotlib.rcParams[name] for name in names}
        error_plots.render(self.profile, 'mean', 'svg')
        self.assertEqual(
            before, {name: matplotlib.rcParams[name] for name in names}
        )

    def test_no_such_picture(self):
        self.assertRaises(
            ValueError, error_plots.render, self.profile, 'pdf', 'svg'
        )
        self.assertRaises(
            ValueError, error_plots.render, self.profile, 'cdf', 'pdf'
        )

    def test_without_matplotlib(self):
        with mock.patch.dict(
            sys.modules, {'matplotlib': None, 'matplotlib.style': None}
        ):
            missing = self.assertRaises(
                error_plots.Unavailable,
                error_plots.render,
                self.profile,
                'cdf',
                'svg',
            )
        self.assertIn('vsched[plot]', str(missing))


class OddProfileTestCase(base.BaseTestCase):
    """Whatever the collector may have stored is drawn, or said."""

    def _drawn(self, points, **changes):
        profile = error_profiles.profile(points, **changes)
        return [texts(profile, figure) for figure in error_plots.FIGURES]

    def test_no_points(self):
        for found in self._drawn([]):
            self.assertIn('This profile has no points to draw.', found)

    def test_one_sample(self):
        self._drawn([error_profiles.point([-300])])

    def test_one_backend_and_share(self):
        self._drawn(
            [
                error_profiles.point(
                    error_profiles.samples(error_profiles.STARVED, 10_000, 20),
                    backend='cfs',
                    contenders=1,
                )
            ]
        )

    def test_no_error_at_all(self):
        self._drawn([error_profiles.point([0] * 20)])

    def test_nothing_was_got(self):
        self._drawn([error_profiles.point([-error.PPM] * 20)])

    def test_far_too_much_was_got(self):
        point = error_profiles.point([10**7, 10**9])
        self._drawn(
            [
                dataclasses.replace(
                    point, max_ppm=10**400, long_mean_ppm=10**400
                )
            ]
        )

    def test_shares_out_of_order_and_twice(self):
        self._drawn(
            [
                error_profiles.point([5, 7], share_ppm=share_ppm)
                for share_ppm in (1, 900_000, 123_456, 900_000, 10**400)
            ]
        )

    def test_text_that_means_something_to_others(self):
        *_, found = self._drawn(
            [error_profiles.point([5, 7], backend='$x^{$\x00<&')],
            kernel='6.1 $\\frac$\n' + 'y' * 500,
        )
        self.assertIn('$x^{$?<& alone', found)

    def test_no_such_day(self):
        for finished_at in (-1e300, 1e12):
            self._drawn([error_profiles.point([1])], finished_at=finished_at)

    def test_points_of_another_release_are_left_out(self):
        point = error_profiles.point([1, 2, 3])
        for found in self._drawn(
            [
                point,
                dataclasses.replace(point, counts=(1, 2)),
                dataclasses.replace(point, quantiles_ppm=()),
                dataclasses.replace(point, n=0),
                dataclasses.replace(point, share_ppm=0),
            ]
        ):
            self.assertIn('4 of 5 points are not drawn', found)

    def test_empty_histogram(self):
        point = error_profiles.point([1, 2, 3])
        self._drawn(
            [dataclasses.replace(point, counts=(0,) * len(point.counts))]
        )

    def test_more_than_fits_a_picture(self):
        points = [
            error_profiles.point(
                [1, 2, 3],
                backend='b%d' % number,
                period_us=number,
                contenders=number % 7,
            )
            for number in range(100)
        ]
        for found in self._drawn(points):
            self.assertTrue(
                any(
                    one.endswith('of 100 points are not drawn')
                    for one in found
                )
            )

    @hypothesis.settings(max_examples=10)
    @hypothesis.given(
        st.lists(
            st.builds(
                error_profiles.point,
                st.lists(
                    st.integers(-error.PPM, 10**8), min_size=1, max_size=30
                ),
                backend=st.sampled_from(('deadline', 'cfs', 'credit', '')),
                period_us=st.sampled_from((10_000, 100_000)),
                share_ppm=st.integers(1, error.PPM),
                contenders=st.integers(0, 2),
                probe=st.sampled_from(profiles.Probe),
            ),
            max_size=8,
        ),
        st.booleans(),
        st.sampled_from(error_plots.FIGURES),
    )
    def test_any(self, points, quick, figure):
        texts(error_profiles.profile(points, quick=quick), figure)


class SpreadTestCase(base.BaseTestCase):
    @hypothesis.given(st.lists(st.floats(0, 1), max_size=12).map(sorted))
    def test_a_gap_apart_and_no_farther_than_it_takes(self, places):
        found = error_page.spread(places, 0.1)
        self.assertEqual(len(places), len(found))
        for one, other in zip(found, found[1:], strict=False):
            self.assertGreaterEqual(other - one, 0.1 - 1e-9)
        self.assertAlmostEqual(sum(places), sum(found))

    def test_what_is_far_apart_stays(self):
        self.assertEqual([0.1, 0.5], error_page.spread([0.1, 0.5], 0.4))
