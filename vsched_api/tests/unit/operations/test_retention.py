# SPDX-License-Identifier: Apache-2.0

"""Retention, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import retention


class TestRetention(retention.Retention, base.TestCase):
    """The suite, on a file."""
