# SPDX-License-Identifier: Apache-2.0

"""Mixes are none of the loads that prices are made from."""

import json
import pathlib
import tempfile

from matplotlib import figure as figures
from oslotest import base

from benchmarks import frame
from benchmarks import overhead
from vsched_agent.profiling.overhead import loads


class TestMixes(base.BaseTestCase):
    def test_prices_never_saw_them(self):
        used = {
            key
            for plan in (loads.FULL, loads.QUICK)
            for key, _ in loads.points(plan)
        }
        self.assertGreaterEqual(len(overhead.MIXES), 6)
        for name, mix in overhead.MIXES.items():
            self.assertGreaterEqual(len(mix), 2, name)
            for _, load in mix:
                self.assertNotIn(load.key, used)

    def test_what_they_cover(self):
        every = [one for mix in overhead.MIXES.values() for one in mix]
        self.assertEqual({0, 1}, {guest for guest, _ in every})
        self.assertEqual(
            set(loads.Experiment) - {loads.Experiment.IDLE},
            {load.experiment for _, load in every},
        )

    def test_mixes_are_spread_over_the_run(self):
        for plan in (loads.FULL, loads.QUICK):
            found = overhead.order(plan, 2)
            names = [one for one in found if isinstance(one, str)]
            self.assertEqual(list(overhead.MIXES) * 2, names)
            self.assertEqual(
                [load for _, load in loads.points(plan)],
                [one for one in found if not isinstance(one, str)],
            )
            self.assertIsInstance(found[-1], str)
            half = found[: len(found) // 2]
            self.assertGreater(
                sum(isinstance(one, str) for one in half), len(names) // 3
            )

    def test_repeats_give_a_median_and_a_spread(self):
        def repeat(ours, naive, r2):
            return overhead.Repeat(
                {'a': (ours, naive), 'b': (-ours, -naive)}, r2, {}
            )

        self.assertEqual(
            {
                'heldout_median_error_pct': 9.0,
                'heldout_least_error_pct': 7.8,
                'heldout_greatest_error_pct': 14.6,
                'naive_heldout_median_error_pct': 31.0,
                'worst_mix_error_pct': 14.6,
                'least_r2': 0.92,
                'mixes': 2,
                'repeats': 3,
            },
            overhead.metrics(
                [
                    repeat(7.8, 30.0, 0.97),
                    repeat(-14.6, 31.0, 0.92),
                    repeat(9.0, 40.0, 0.95),
                ]
            ),
        )

    def test_picture(self):
        record = frame.Record(
            'overhead',
            'c',
            'm',
            'w',
            True,
            {
                'one': {
                    'measured_ms': 10.0,
                    'predicted_ms': 11.0,
                    'naive_ms': 20.0,
                },
                'prices': {'r2': 0.9},
            },
            {},
        )
        figure = figures.Figure()
        overhead.draw(record, figure)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'picture.svg'
            figure.savefig(path)
            self.assertIn('measured, ms of CPU', path.read_text())
        self.assertEqual(json.loads(record.dump())['bench'], 'overhead')
