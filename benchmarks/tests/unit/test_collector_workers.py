# SPDX-License-Identifier: Apache-2.0

"""The rounds of collectors with one and two workers, and their figures."""

import collections
from unittest import mock

import fixtures
from matplotlib import figure as figures
from oslotest import base

from benchmarks import collector_workers
from benchmarks import frame


def some(workers, number, **changes):
    """Return the figures of a round."""
    return {
        'p50_ms': 100.0 / workers + number,
        'p99_ms': 400.0 / workers + number,
        'collector_cpus': 0.5 * workers,
        'collector_mib': 100.0 + 50 * workers,
        'failed': 0,
        'timeouts': number,
        **changes,
    }


class RoundsTestCase(base.BaseTestCase):
    def test_each_round_has_all_in_a_shuffled_order(self):
        found = list(collector_workers.plan(collector_workers.REPEATS))
        self.assertEqual(found, list(collector_workers.plan(4)))
        by_round = collections.defaultdict(list)
        for number, workers in found:
            by_round[number].append(workers)
        self.assertEqual([0, 1, 2, 3], list(by_round))
        self.assertEqual(
            {(1, 2): 2, (2, 1): 2},
            collections.Counter(map(tuple, by_round.values())),
        )

    def test_a_run(self):
        self.useFixture(
            fixtures.MockPatchObject(
                collector_workers,
                'measure',
                side_effect=lambda workers, size: some(workers, 1),
            )
        )
        for quick, rounds in ((True, 1), (False, 4)):
            steps = collector_workers.run(quick)
            variants = []
            while True:
                try:
                    variants.append(next(steps))
                except StopIteration as end:
                    found = end.value
                    break
            self.assertEqual(2 * rounds, len({one.name for one in variants}))
            self.assertEqual(set(collector_workers.ABOUT.units), set(found))

    def test_headline_figures_are_medians(self):
        found = collector_workers.metrics(
            [
                collector_workers.Round(
                    workers, number, some(workers, number, failed=number)
                )
                for workers in collector_workers.WORKERS
                for number in (0, 1, 9)
            ]
        )
        self.assertEqual(
            (101.0, 401.0), (found['p50_ms_1'], found['p99_ms_1'])
        )
        self.assertEqual((51.0, 201.0), (found['p50_ms_2'], found['p99_ms_2']))
        self.assertEqual(
            (0.5, 1.0),
            tuple(found['collector_cpus_%d' % one] for one in (1, 2)),
        )
        self.assertEqual((20, 20), (found['failed'], found['timeouts']))

    def test_picture(self):
        rounds = [
            collector_workers.Round(workers, number, some(workers, number))
            for workers in collector_workers.WORKERS
            for number in (0, 1)
        ]
        record = mock.create_autospec(frame.Record, instance=True)
        record.variants = {
            collector_workers.name(one): one.figures for one in rounds
        }
        figure = figures.Figure()
        collector_workers.draw(record, figure)
        (axes,) = figure.axes
        self.assertEqual(
            [[1, 1, 2, 2]] * 2, [list(line.get_xdata()) for line in axes.lines]
        )
