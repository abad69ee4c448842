# SPDX-License-Identifier: Apache-2.0

"""Changing reservations, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import reservations


class TestReservations(reservations.Reservations, base.TestCase):
    """The suite, on a file."""
