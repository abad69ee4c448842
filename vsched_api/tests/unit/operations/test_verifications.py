# SPDX-License-Identifier: Apache-2.0

"""Comparisons with Nova and placement, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import verifications


class TestVerifications(verifications.Verifications, base.TestCase):
    """The suite, on a file."""
