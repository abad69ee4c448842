# SPDX-License-Identifier: Apache-2.0

"""Batches that share transactions, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import gathering


class TestGathering(gathering.Gathering, base.TestCase):
    """The suite, on a file."""
