# SPDX-License-Identifier: Apache-2.0

"""Sums of any samples, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import exact_sums


class TestExactSums(exact_sums.ExactSums, base.TestCase):
    """The suite, on a file."""
