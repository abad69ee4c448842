# SPDX-License-Identifier: Apache-2.0

"""Executions in samples and sums, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import executions


class TestExecutions(executions.Executions, base.TestCase):
    """The suite, on a file."""
