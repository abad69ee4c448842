# SPDX-License-Identifier: Apache-2.0

"""How long overrides last, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import overrides


class TestOverrides(overrides.Overrides, base.TestCase):
    """The suite, on a file."""
