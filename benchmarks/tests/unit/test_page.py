# SPDX-License-Identifier: Apache-2.0

"""What the page's benchmark makes of what it saw."""

import time
import types
from unittest import mock

from oslotest import base

from benchmarks import frame
from benchmarks import page
from benchmarks import page_views
from benchmarks import published
from benchmarks import targets


class FiguresTestCase(base.BaseTestCase):
    def test_repeats_keep_their_spread(self):
        found = page.figures(
            [
                page_views.Seen(0.5, 1.25, 400.04, 7, 90.0),
                page_views.Seen(0.75, 1.0, 400.0, 9, 80.0),
                page_views.Seen(0.25, 3.0, 400.0, 8, 85.0),
            ]
        )
        self.assertEqual(
            {
                'shown_s': {'min': 0.25, 'median': 0.5, 'max': 0.75},
                'interactive_s': {'min': 1.0, 'median': 1.25, 'max': 3.0},
                'assets_kb': 400.0,
                'requests': 9,
                'answers_kb': 90.0,
            },
            found,
        )


class ChangesTestCase(base.BaseTestCase):
    def sought(self, *counts):
        tab, locator = mock.Mock(), mock.Mock()
        locator.count.side_effect = counts
        return tab, locator

    def test_each_is_seen_in_its_own_time(self):
        began = time.monotonic() - 1
        late, early = page._first_seen(
            began, [self.sought(0, 0, 1), self.sought(1)]
        )
        self.assertLess(1, early)
        self.assertLess(early, late)

    def test_a_change_that_is_never_seen(self):
        self.assertRaises(
            AssertionError, page._first_seen, 0.0, [self.sought(0, 0)]
        )


class VerdictTestCase(base.BaseTestCase):
    """What becomes of the times of changes in a record, and of that."""

    def record(self, *changes):
        """Return the record of a run with changes: (table, view) each."""
        bench = mock.create_autospec(page.Bench, instance=True, errors=[])
        for name in page_views.VIEWS:
            getattr(bench, name).return_value = page_views.Seen(
                0.5, 1, 400, 7, 90
            )
        bench.changes.return_value = [
            {'answered_s': 0.02, 'table_s': table_s, 'view_s': view_s}
            for table_s, view_s in changes
        ]
        bench.accessibility.return_value = [('/hosts', [])]
        measured = types.SimpleNamespace(
            ABOUT=page.ABOUT, run=lambda quick: page._measure(bench, quick)
        )
        return frame.execute('page', measured, True, lambda line: None)

    def verdict(self, *changes):
        """Return the published target of changes, and the verdict."""
        record = self.record(*changes)
        (declared,) = (
            one
            for one in page.ABOUT.targets
            if one.metric == 'patch_to_screen_s'
        )
        (shown,) = (
            one
            for one in published.benchmark('page', page.ABOUT, [record])[
                'targets'
            ]
            if one['metric'] == declared.metric
        )
        self.assertEqual('≤ 3 s', shown['target'])
        return shown, targets.verdict(
            declared, [record.metrics[declared.metric]], []
        )

    def test_the_slower_view_of_the_slowest_change_decides(self):
        for changes, ours_s in (
            (((0.5, 2.75), (1.5, 1.25)), 2.75),
            (((2.5, 0.75), (1.5, 1.25)), 2.5),
        ):
            shown, verdict = self.verdict(*changes)
            self.assertEqual(
                (ours_s, 0, 1),
                (shown['ours'], shown['missed_by'], shown['runs_met']),
            )
            self.assertEqual('met', verdict)

    def test_one_view_that_is_too_slow_once(self):
        for late in ((0.5, 3.25), (3.25, 0.5)):
            shown, verdict = self.verdict((0.5, 0.75), late, (0.25, 0.5))
            self.assertEqual(
                (3.25, 0.25, 0),
                (shown['ours'], shown['missed_by'], shown['runs_met']),
            )
            self.assertIn('missed', verdict)

    def test_the_record_has_each_part(self):
        found = self.record((0.5, 2.75), (1.5, 1.25)).variants['patch']
        self.assertEqual(
            (2, 1.5, 2.75),
            (
                found['changes'],
                found['table_s']['max'],
                found['view_s']['max'],
            ),
        )
