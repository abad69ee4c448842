# SPDX-License-Identifier: Apache-2.0

"""What instances got in the newest part of the time, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import usage_totals


class TestUsageTotals(usage_totals.UsageTotals, base.TestCase):
    """The suite, on a file."""
