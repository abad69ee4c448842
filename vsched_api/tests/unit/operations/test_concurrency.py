# SPDX-License-Identifier: Apache-2.0

"""Changes and reports at the same moment, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import concurrency


class TestConcurrency(concurrency.Concurrency, base.TestCase):
    """The suite, on a file."""
