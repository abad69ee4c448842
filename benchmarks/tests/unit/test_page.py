# SPDX-License-Identifier: Apache-2.0

"""What the page's benchmark makes of what it saw."""

import re
import time
from unittest import mock

from oslotest import base

from benchmarks import page


class FiguresTestCase(base.BaseTestCase):
    def test_repeats_keep_their_spread(self):
        found = page.figures(
            [
                page.Seen(0.5, 1.25, 400.04, 7, 90.0),
                page.Seen(0.75, 1.0, 400.0, 9, 80.0),
                page.Seen(0.25, 3.0, 400.0, 8, 85.0),
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

    def test_numbers_as_the_page_writes_them(self):
        for number, texts in ((100, ['100']), (1_000, ['1000', '1,000'])):
            for text in texts:
                self.assertRegex(text, '^%s$' % page._grouped(number))
        self.assertIsNone(re.fullmatch(page._grouped(1_000), '100'))


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
