# SPDX-License-Identifier: Apache-2.0

"""CSV of one object."""

import argparse
import csv
import io

from cliff import show
from oslotest import base

from vsched_client.osc import command
from vsched_client.osc import formatters
from vsched_client.tests import entry_points
from vsched_client.tests import outputs


class CsvTestCase(base.BaseTestCase):
    def test_a_line_of_names_and_one_of_values(self):
        text = io.StringIO()
        values = ('a "b", c\\d', 3, None, '{"x": [1]}')
        formatters.CsvOfOne().emit_one(
            list('abcd'),
            values,
            text,
            argparse.Namespace(quote_mode='nonnumeric'),
        )
        self.assertEqual(2, len(text.getvalue().splitlines()))
        rows = csv.reader(
            io.StringIO(text.getvalue()),
            escapechar='\\',
            quoting=csv.QUOTE_NONNUMERIC,
        )
        self.assertEqual(
            [list('abcd'), [values[0], 3, '', values[3]]], list(rows)
        )

    def test_each_command_of_one_object_has_it(self):
        found = []
        for name in entry_points.commands():
            kind = entry_points.load(name)
            if issubclass(kind, show.ShowOne):
                self.assertTrue(issubclass(kind, command.Show), name)
                found.append(name)
            parser = kind(None, None).get_parser('openstack')
            (forms,) = (
                one.choices
                for one in parser._actions
                if '-f' in one.option_strings
            )
            self.assertEqual(
                set(), {'table', *outputs.FORMATS} - set(forms), name
            )
        self.assertIn('cpu job show', found)

    def test_other_plugins_do_not(self):
        class Other(show.ShowOne):
            def take_action(self, parsed_args):
                return (), ()

        self.assertNotIn(
            formatters.CSV, Other(None, None)._formatter_plugins.names()
        )
