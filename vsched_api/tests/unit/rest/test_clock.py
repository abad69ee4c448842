# SPDX-License-Identifier: Apache-2.0

"""Times, from and to text."""

from oslotest import base

from vsched_api.rest import clock


class TestClock(base.BaseTestCase):
    """ISO 8601."""

    def test_to_text_and_back(self):
        for seconds, text in (
            (0.0, '1970-01-01T00:00:00.000000Z'),
            (1_800_000_000.25, '2027-01-15T08:00:00.250000Z'),
            (253_402_300_799.0, '9999-12-31T23:59:59.000000Z'),
        ):
            self.assertEqual(text, clock.iso(seconds))
            self.assertEqual(seconds, clock.seconds(text))
        self.assertIsNone(clock.iso(None))

    def test_other_forms(self):
        for text in (
            '2027-01-15T08:00:00',
            '2027-01-15 08:00',
            '2027-01-15T09:00:00+01:00',
            '20270115T080000Z',
        ):
            self.assertEqual(1_800_000_000.0, clock.seconds(text))

    def test_no_times(self):
        for text in ('', 'now', '8', '2027-02-30', '2027-01-15T25:00:00'):
            self.assertRaises(ValueError, clock.seconds, text)
