# SPDX-License-Identifier: Apache-2.0

"""The service takes any request, with SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import fuzzing


class TestFuzzing(fuzzing.Fuzzing, base.TestCase):
    """Requests made from routes and schemas."""
