# SPDX-License-Identifier: Apache-2.0

"""The table of an error profile."""

import csv
import dataclasses
import io

from oslotest import base

from vsched_lib.contract import profiles
from vsched_lib.presentation import error_csv
from vsched_lib.tests import error_profiles


def rows(profile):
    return list(csv.DictReader(io.StringIO(error_csv.render(profile))))


class RenderTestCase(base.BaseTestCase):
    def test_one_row_a_point(self):
        profile = error_profiles.full(windows=20)
        found = rows(profile)
        self.assertEqual(len(profile.points), len(found))
        for row, point in zip(found, profile.points, strict=True):
            self.assertEqual(
                [
                    point.backend,
                    str(point.period_us),
                    str(point.contenders),
                    str(point.n),
                    str(point.mean_ppm),
                    str(point.window_us),
                ],
                [
                    row[name]
                    for name in (
                        'backend',
                        'period_us',
                        'contenders',
                        'n',
                        'mean_ppm',
                        'window_us',
                    )
                ],
            )
            self.assertEqual(point.share_ppm, float(row['share_pct']) * 1e4)

    def test_columns(self):
        text = error_csv.render(
            error_profiles.profile(
                [
                    error_profiles.point(
                        range(-100, 400),
                        backend='cfs',
                        period_us=100_000,
                        share_ppm=15_000,
                        contenders=4,
                        probe=profiles.Probe.VCPU,
                    )
                ]
            )
        )
        self.assertEqual(
            'backend,period_us,share_pct,contenders,probe,n,mean_ppm,min_ppm,'
            'max_ppm,p1_ppm,p5_ppm,p10_ppm,p25_ppm,p50_ppm,p75_ppm,p90_ppm,'
            'p95_ppm,p99_ppm,abs_p50_ppm,abs_p95_ppm,abs_p99_ppm,'
            'long_mean_ppm,size_bound_80_ppm,size_bound_95_ppm,window_us\n'
            'cfs,100000,1.5,4,vcpu,500,150,-100,399,-96,-76,-51,24,149,274,'
            '349,374,394,149,374,394,150,397,398,1000000\n',
            text,
        )

    def test_bound_only_when_the_samples_allow(self):
        for windows, given in (
            (160, ''),
            (161, '80'),
            (298, '80'),
            (299, '80 95'),
        ):
            (row,) = rows(
                error_profiles.profile([error_profiles.point(range(windows))])
            )
            self.assertEqual(
                given,
                ' '.join(
                    one
                    for one in ('80', '95')
                    if row['size_bound_%s_ppm' % one]
                ),
                windows,
            )

    def test_no_points(self):
        text = error_csv.render(error_profiles.profile([]))
        self.assertEqual(','.join(error_csv.COLUMNS) + '\n', text)

    def test_lists_of_another_length_leave_cells_empty(self):
        point = dataclasses.replace(
            error_profiles.point(range(400)),
            quantiles_ppm=(7,),
            largest_ppm=(),
        )
        (row,) = rows(error_profiles.profile([point]))
        self.assertEqual('7', row['p1_ppm'])
        self.assertEqual('', row['p5_ppm'])
        self.assertEqual('', row['size_bound_80_ppm'])
