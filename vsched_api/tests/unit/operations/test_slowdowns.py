# SPDX-License-Identifier: Apache-2.0

"""Learning what neighbours cost each other, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import slowdowns


class TestSlowdowns(slowdowns.Slowdowns, base.TestCase):
    """The suite, on a file."""
