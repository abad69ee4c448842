# SPDX-License-Identifier: Apache-2.0

"""Error profiles, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import profiles


class TestProfiles(profiles.Profiles, base.TestCase):
    """The suite, on a file."""
