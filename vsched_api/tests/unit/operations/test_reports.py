# SPDX-License-Identifier: Apache-2.0

"""Storing reports, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import reports


class TestReports(reports.Reports, base.TestCase):
    """The suite, on a file."""
