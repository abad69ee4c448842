# SPDX-License-Identifier: Apache-2.0

"""The snapshot, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import snapshot


class TestSnapshot(snapshot.Snapshot, base.TestCase):
    """The suite, on a file."""
