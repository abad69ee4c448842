# SPDX-License-Identifier: Apache-2.0

"""Rows one by one, in each format."""

import csv
import io
import json

from oslotest import base
import yaml

from vsched_client.osc import follow
from vsched_client.osc import tables

COLUMNS = (
    tables.Column('at', 'Time', tables.time),
    tables.Column('detail', 'Detail'),
    tables.Column('figures', 'Figures'),
)
OBJECTS = [
    {'at': '2027-01-15T08:00:00.5Z', 'detail': 'a\x1b', 'figures': {'b': 1}},
    {'at': '2027-01-15T08:00:01Z', 'detail': 'c, "d"', 'figures': {}},
]


class WriteTestCase(base.BaseTestCase):
    def write(self, formatter):
        stream = io.StringIO()
        follow.write(stream, formatter, COLUMNS, iter(OBJECTS))
        return stream.getvalue()

    def test_json(self):
        self.assertEqual(
            OBJECTS,
            [json.loads(one) for one in self.write('json').split('\n') if one],
        )

    def test_yaml(self):
        self.assertEqual(OBJECTS, yaml.safe_load(self.write('yaml')))

    def test_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.write('csv'))))
        self.assertEqual('c, "d"', rows[1]['detail'])
        self.assertEqual(r'a\x1b', rows[0]['detail'])
        self.assertEqual('{"b": 1}', rows[0]['figures'])

    def test_table(self):
        self.assertEqual(
            '2027-01-15T08:00:00Z  a\\x1b  b: 1\n'
            '2027-01-15T08:00:01Z  c, "d"  \n',
            self.write('table'),
        )

    def test_value(self):
        self.assertIn('a\\x1b  {"b": 1}\n', self.write('value'))

    def test_each_row_is_written_at_once(self):
        stream = io.StringIO()
        seen = []

        def objects():
            for one in OBJECTS:
                seen.append(stream.getvalue().count('\n'))
                yield one

        follow.write(stream, 'json', COLUMNS, objects())
        self.assertEqual([0, 1], seen)
