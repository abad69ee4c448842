# SPDX-License-Identifier: Apache-2.0

"""Reports that share transactions, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import report_groups


class TestGroups(report_groups.Groups, base.TestCase):
    """The suite, on a file."""
