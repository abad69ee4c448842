# SPDX-License-Identifier: Apache-2.0

"""Claims of flavors, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import claims


class TestClaims(claims.Claims, base.TestCase):
    """The suite, on a file."""
