# SPDX-License-Identifier: Apache-2.0

"""Sums of samples, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import rollups


class TestRollups(rollups.Rollups, base.TestCase):
    """The suite, on a file."""
