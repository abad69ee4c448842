# SPDX-License-Identifier: Apache-2.0

"""The check of outputs finds what is wrong; columns have the right units."""

from oslotest import base

from vsched_client.osc import tables
from vsched_client.tests import entry_points
from vsched_client.tests import outputs

#: How people see a value, by the end of its field's name.
_TEXTS = {
    'us': (tables.us,),
    'ns': (tables.ns,),
    's': (tables.seconds,),
    'mcpu': (tables.mcpu,),
    'ppm': (tables.ppm, tables.error_ppm),
    'at': (tables.time,),
}

#: Arguments by which commands have other columns.
_VARIANTS = {
    'cpu usage show': (('--of', 'instances'), ('--of', 'hosts')),
    'cpu profile show': (
        ('node1', '--kind', 'error'),
        ('node1', '--kind', 'overhead'),
    ),
}


def columns():
    """Yield each command and its columns."""
    for command in entry_points.commands():
        kind = entry_points.load(command)
        if not outputs.is_list(command):
            yield command, getattr(kind, 'columns', ())
            continue
        for arguments in _VARIANTS.get(command, (None,)):
            made = kind(None, None)
            options = arguments and made.get_parser('openstack').parse_args(
                arguments
            )
            yield command, made.columns_of(options)


class OutputTestCase(base.BaseTestCase):
    output = outputs.Output('cpu job list', (), 'json')
    row = {
        'uuid': '6f1c0e5a-2b7d-4c39-9a41-0d8e5f7b6c12',
        'host': 'node1',
        'kind': 'profile-error',
        'state': 'running',
        'progress_ppm': 250_000,
        'detail': '3 of 12 points',
        'eta_s': 90.5,
        'attempt': 1,
        'created_at': '2027-01-15T08:00:00.000000Z',
        'started_at': None,
        'updated_at': '2027-01-15T08:00:00.000000Z',
    }

    def test_what_is_right(self):
        self.output.check([self.row, self.row])
        self.output.check([])

    def test_what_is_wrong(self):
        for changes in (
            {'progress_ppm': '250000'},
            {'progress_ppm': 0.25},
            {'eta_s': '1 min 30 s'},
            {'state': 'started'},
            {'created_at': None},
            {'created_at': '2027-01-15T08:00:00Z'},
            {'uuid': 'x'},
            {'Time left': 90.5},
        ):
            self.assertRaises(
                AssertionError, self.output.check, [self.row | changes]
            )
        for name in self.row:
            part = {key: one for key, one in self.row.items() if key != name}
            self.assertRaises(AssertionError, self.output.check, [part])

    def test_text_is_read_with_types(self):
        output = outputs.Output('cpu host list', (), 'csv')
        (found,) = output.read(
            '"name","cpus","capacity_mcpu","backends","problem"\n'
            '"node1",2,"","[""cfs""]",""\n'
        )
        self.assertEqual(
            {
                'name': 'node1',
                'cpus': 2,
                'capacity_mcpu': None,
                'backends': ['cfs'],
                'problem': None,
            },
            found,
        )

    def test_one_object_is_one_row(self):
        output = outputs.Output('cpu job show', (self.row['uuid'],), 'csv')
        header = '"uuid","eta_s","parameters"\n'
        row = '"a","","{""quick"": true}"\n'
        self.assertEqual(
            {'uuid': 'a', 'eta_s': None, 'parameters': {'quick': True}},
            output.read(header + row),
        )
        for text in (header, header + row + row):
            self.assertRaises(AssertionError, output.read, text)


class ColumnsTestCase(base.BaseTestCase):
    def test_units(self):
        for command, shown in columns():
            for column in shown:
                expected = _TEXTS.get(column.field.rpartition('_')[2])
                if expected is not None:
                    self.assertIn(
                        column.text, expected, (command, column.field)
                    )
                elif column.field.endswith('_ms'):
                    self.assertIn('(ms)', column.title)
                elif column.field.endswith('_pct'):
                    self.assertIn('(%)', column.title)

    def test_names(self):
        for command, shown in columns():
            for names in (
                [column.field for column in shown],
                [column.title for column in shown],
            ):
                self.assertEqual(len(set(names)), len(names), command)
