# SPDX-License-Identifier: Apache-2.0

"""Whatever passes inspection can be stored, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import inspection


class TestInspection(inspection.Inspection, base.TestCase):
    """The suite, on a file."""
