# SPDX-License-Identifier: Apache-2.0

"""Columns: text for people, raw values for programs."""

from oslotest import base

from vsched_client.osc import tables

Column = tables.Column

COLUMNS = (
    Column('name', 'Host'),
    Column('capacity_mcpu', 'Capacity', tables.mcpu),
    Column('twice_mcpu', 'Twice', value=lambda one: 2 * one['capacity_mcpu']),
    Column('detail', 'Detail', extra=True),
)
OBJECT = {
    'name': 'a\x1b',
    'capacity_mcpu': 1800,
    'detail': {'a': [1, '\x1b']},
    'links': [],
    'newer': True,
}


class ListTestCase(base.BaseTestCase):
    def rows(self, formatter, asked=()):
        shown = tables.visible(formatter, COLUMNS, asked)
        names, rows = tables.of_list(formatter, shown, [OBJECT])
        return list(names), [list(row) for row in rows]

    def test_table(self):
        names, ((name, capacity, twice),) = self.rows('table')
        self.assertEqual(['Host', 'Capacity', 'Twice'], names)
        self.assertEqual(r'a\x1b', str(name))
        self.assertEqual('1.8 CPU', str(capacity))
        self.assertEqual('3600', str(twice))

    def test_a_table_has_more_when_it_is_asked_for(self):
        names, _ = self.rows('table', ['Detail'])
        self.assertEqual(['Host', 'Capacity', 'Twice', 'Detail'], names)

    def test_json(self):
        names, ((name, capacity, twice, detail),) = self.rows('json')
        self.assertEqual(
            ['name', 'capacity_mcpu', 'twice_mcpu', 'detail'], names
        )
        self.assertEqual(('a\x1b', 1800, 3600), (name, capacity, twice))
        self.assertEqual({'a': [1, '\x1b']}, detail)

    def test_formats_of_lines(self):
        for formatter in ('csv', 'value', 'shell', 'html'):
            _, ((name, capacity, _, detail),) = self.rows(formatter)
            # A backslash of an escape is one for a shell as well.
            self.assertIn('x1b', name)
            self.assertNotIn('\x1b', name)
            self.assertEqual(1800, capacity)
            self.assertIn('u001b', detail)


class OneTestCase(base.BaseTestCase):
    def test_programs_get_every_field_but_links(self):
        names, values = tables.of_one('json', COLUMNS, OBJECT)
        found = dict(zip(names, values, strict=True))
        self.assertEqual(
            {
                **{k: v for k, v in OBJECT.items() if k != 'links'},
                'twice_mcpu': 3600,
            },
            found,
        )

    def test_table(self):
        names, values = tables.of_one('table', COLUMNS[:2], OBJECT)
        self.assertEqual(['Host', 'Capacity'], list(names))
        self.assertEqual(['a\\x1b', '1.8 CPU'], list(map(str, values)))


class NamesTestCase(base.BaseTestCase):
    def test_titles_and_fields_are_accepted(self):
        for formatter, name in (
            ('table', 'Capacity'),
            ('json', 'capacity_mcpu'),
        ):
            for asked in (
                'Capacity',
                'capacity',
                'capacity_mcpu',
                ' CAPACITY_MCPU ',
            ):
                self.assertEqual(
                    [name], tables.translated(formatter, COLUMNS, [asked])
                )
        # cliff reports those that nothing has.
        self.assertEqual(
            ['other'], tables.translated('json', COLUMNS, ['other'])
        )


class CellTestCase(base.BaseTestCase):
    def test_order(self):
        cells = [
            tables.Cell(value, tables.plain) for value in (None, 10, 9, None)
        ]
        self.assertEqual(
            ['9', '10', '-', '-'], [str(one) for one in sorted(cells)]
        )
        self.assertEqual(cells[0], cells[3])
        self.assertRaises(TypeError, lambda: cells[0] < 7)


class TextTestCase(base.BaseTestCase):
    def test_plain(self):
        for value, text in (
            (None, '-'),
            (True, 'yes'),
            (False, 'no'),
            (7, '7'),
            (0.25, '0.25'),
            ([], ''),
            (['a', None], 'a, -'),
            ({'a': 1, 'b': None}, 'a: 1\nb: -'),
            ('x', 'x'),
        ):
            self.assertEqual(text, tables.plain(value))

    def test_numbers_of_an_object_have_their_units(self):
        for name, value, text in (
            ('offered_mcpu', 1800, 'offered: 1.8 CPU'),
            ('max_margin_ppm', 250_000, 'max_margin: 25 %'),
            ('period_us', 10_000, 'period: 10 ms'),
            ('cost_ns', 12_000.0, 'cost: 12 us'),
            ('skew_s', 0.5, 'skew: 0.5 s'),
            ('claimed_mcpu', None, 'claimed: -'),
            # No number, or no unit.
            ('quick_s', True, 'quick_s: yes'),
            ('attempts', 2, 'attempts: 2'),
            ('vsched:cpu_runtime_us', '5000', 'vsched:cpu_runtime_us: 5000'),
        ):
            self.assertEqual(text, tables.plain({name: value}))

    def test_units(self):
        for text in (
            tables.mcpu,
            tables.us,
            tables.ppm,
            tables.error_ppm,
            tables.seconds,
            tables.ns,
            tables.time,
        ):
            self.assertEqual('-', text(None))
        self.assertEqual('12 us', tables.ns(12_000))
        self.assertEqual(
            '2027-01-15T08:00:01Z', tables.time('2027-01-15T08:00:01.000002Z')
        )
        self.assertEqual(
            '2027-01-15T08:00:01Z', tables.time('2027-01-15T08:00:01Z')
        )
