# SPDX-License-Identifier: Apache-2.0

"""What is told of servers, and found by them, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import servers as suite


class TestServers(suite.Servers, base.TestCase):
    """The suite, on a file."""
