# SPDX-License-Identifier: Apache-2.0

"""What tests of outages count as lost or repeated."""

import datetime
from unittest import mock

from oslotest import base

from vsched_standalone.tests import outages

_AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class SamplesTestCase(base.BaseTestCase):
    def _counted(self, *rows):
        """Count samples, each of which ends then and covers so much.

        :param rows: end and length in seconds.
        :returns: how many are repeated, and the missing seconds.
        """
        services = mock.Mock()
        services.usage.return_value = [
            {
                'at': (_AT + datetime.timedelta(seconds=end_s)).isoformat(),
                'interval_us': round(1e6 * length_s),
            }
            for end_s, length_s in rows
        ]
        found = outages.samples(services, 'an instance')
        self.assertEqual(len(rows), found.stored)
        return found.repeated, found.missing_us / 1e6

    def test_one_after_the_other(self):
        self.assertEqual((0, 0), self._counted((1, 1), (2, 1), (3.01, 1)))

    def test_one_is_missing(self):
        self.assertEqual((0, 1), self._counted((1, 1), (3, 1), (4, 1)))

    def test_one_is_missing_in_the_end(self):
        self.assertEqual((0, 2), self._counted((1, 1), (2, 1), (5, 1)))

    def test_one_is_repeated(self):
        self.assertEqual((1, 0), self._counted((1, 1), (2, 1), (2, 1), (3, 1)))

    def test_one_is_missing_and_the_next_is_repeated(self):
        self.assertEqual((1, 1), self._counted((1, 1), (3, 1), (3, 1), (4, 1)))

    def test_clocks_that_are_read_seconds_apart(self):
        # At the end of the second one, in either order.
        self.assertEqual((0, 0), self._counted((1, 1), (7, 1), (8, 6), (9, 1)))
        self.assertEqual((0, 0), self._counted((1, 1), (2, 6), (8, 1), (9, 1)))

    def test_one_is_missing_before_such_clocks(self):
        self.assertEqual(
            (0, 1), self._counted((1, 1), (3, 1), (9, 1), (10, 6), (11, 1))
        )
