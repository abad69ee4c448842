# SPDX-License-Identifier: Apache-2.0

"""Ordering jobs, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import jobs


class TestJobs(jobs.Jobs, base.TestCase):
    """The suite, on a file."""
