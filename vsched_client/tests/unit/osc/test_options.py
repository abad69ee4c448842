# SPDX-License-Identifier: Apache-2.0

"""Types of options, and their messages with what is accepted."""

import argparse

from oslotest import base

from vsched_client.osc import options
from vsched_client import units


class TypesTestCase(base.BaseTestCase):
    def accepts(self, read, text, value):
        self.assertEqual(value, read(text))

    def refuses(self, read, *texts):
        for text in texts:
            error = self.assertRaises(argparse.ArgumentTypeError, read, text)
            self.assertIn('accepted', str(error))
            self.assertNotIn('\x1b', str(error))

    def test_uuid(self):
        uuid = '6F1C0E5A-2B7D-4C39-9A41-0D8E5F7B6C12'
        self.accepts(options.uuid, uuid, uuid.lower())
        self.refuses(options.uuid, '', 'server', uuid + 'a', '\x1b')

    def test_integer(self):
        read = options.integer(1, 10)
        self.accepts(read, '10', 10)
        self.refuses(read, '0', '11', '-1', '1.5', '', '٣', '1' * 30, '\x1b')

    def test_decimal(self):
        read = options.decimal(0.1, 100)
        self.accepts(read, '0.5', 0.5)
        self.refuses(read, '0', '100.1', 'nan', '1e1', '-1', '\x1b')

    def test_time(self):
        self.accepts(
            options.time, '2027-01-15T08:00:00Z', '2027-01-15T08:00:00+00:00'
        )
        self.accepts(options.time, '2027-01-15', '2027-01-15T00:00:00+00:00')
        self.refuses(options.time, 'yesterday', '', '\x1b')

    def test_quantity(self):
        self.accepts(options.quantity(units.duration_us), '10ms', 10_000)
        self.refuses(options.quantity(units.duration_us), '10', '\x1b')
