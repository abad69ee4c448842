# SPDX-License-Identifier: Apache-2.0

"""Which views the page's benchmark opens, and what it does there."""

import contextlib
import re
from unittest import mock

from oslotest import base

from benchmarks import page_views
from vsched_ui.tests import fleet
from vsched_ui.tests import views

HOSTS = 1_000


class Views(page_views.Views):
    """Opens tabs in which each condition holds after a second and a half.

    :ivar opened: paths, and the pages.
    """

    def __init__(self):
        super().__init__(HOSTS, 5)
        self.opened = []

    @contextlib.contextmanager
    def tab(self, path, **options):
        """Open a view."""
        tab = mock.Mock()
        tab.page.evaluate.side_effect = self.evaluate
        self.opened.append((path, tab.page))
        yield tab

    @staticmethod
    def evaluate(script, *arguments):
        if script == page_views._TRANSFERRED:
            return {'assets': 400_000, 'requests': 7, 'answers': 90_000}
        return 1_500


class ViewsTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.views = Views()

    def conditions(self, page):
        """Return the conditions that were waited for, each with its words."""
        return [
            call.args[1][:2]
            for call in page.evaluate.call_args_list
            if call.args[0] == page_views._WHEN
        ]

    def test_each_view_is_opened(self):
        for name in page_views.VIEWS:
            self.assertEqual(
                page_views.Seen(1.5, 1.5, 400, 7, 90),
                getattr(self.views, name)(),
            )
        opened = [path for path, _ in self.views.opened]
        self.assertEqual(len(page_views.VIEWS), len(set(opened)))
        # The tabs of a host are a part of its view.
        self.assertEqual(
            {self.kind(path) for path, _, _ in views.VIEWS},
            {self.kind(path) for path in opened},
        )

    @staticmethod
    def kind(path):
        """Return the part of a path that all hosts, or instances, share."""
        return path.partition('?')[0].strip('/').split('/')[0], path.count('/')

    def test_the_last_host_is_found(self):
        last = fleet.host_name(HOSTS)
        for name, label in (
            ('hosts', 'Hosts'),
            ('evidence', 'Error certificates'),
        ):
            getattr(self.views, name)()
            _, page = self.views.opened[-1]
            self.assertEqual(
                [['rows', label], ['row', [label, last]]],
                self.conditions(page),
            )
            page.get_by_label.assert_called_once_with(
                'Filter ' + label, exact=True
            )
            page.get_by_label.return_value.fill.assert_called_once_with(last)

    def test_what_if_is_asked(self):
        self.views.whatif()
        _, page = self.views.opened[-1]
        page.get_by_role.return_value.click.assert_called_once_with()
        last = fleet.host_name(HOSTS)
        self.assertEqual(
            [
                ['button', 'Evaluate'],
                ['rows', 'Evaluated hosts'],
                ['row', ['Evaluated hosts', last]],
            ],
            self.conditions(page),
        )

    def test_numbers_as_the_page_writes_them(self):
        for number, texts in ((100, ['100']), (1_000, ['1000', '1,000'])):
            for text in texts:
                self.assertRegex(text, '^%s$' % page_views._grouped(number))
        self.assertIsNone(re.fullmatch(page_views._grouped(1_000), '100'))
