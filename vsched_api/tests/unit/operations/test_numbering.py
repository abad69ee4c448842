# SPDX-License-Identifier: Apache-2.0

"""Numbers of batches, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import numbering


class TestNumbering(numbering.Numbering, base.TestCase):
    """The suite, on a file."""
