# SPDX-License-Identifier: Apache-2.0

"""Where in an order markers are."""

from vsched_api.operations import errors
from vsched_api.operations import markers
from vsched_api.tests import base


class TestPosition(base.TestCase):
    """Of three events by their names."""

    def position(self, marker):
        """Return the position of an event."""
        names = {'first': 0, 'second': 1, 'third': 2}
        return markers.position(marker, names.get, 'no event has it')

    def test_of_a_marker(self):
        self.assertEqual(1, self.position('second'))
        # It is a position, though it counts as false.
        self.assertEqual(0, self.position('first'))

    def test_without_a_marker(self):
        self.assertIsNone(self.position(None))

    def test_a_marker_that_nothing_has(self):
        problem = self.assertRaises(errors.Invalid, self.position, 'fourth')
        self.assertEqual('marker: no event has it', str(problem))
