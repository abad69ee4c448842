# SPDX-License-Identifier: Apache-2.0

"""Lists in an order of choice, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import lists


class TestLists(lists.Lists, base.TestCase):
    """The suite, on a file."""
