# SPDX-License-Identifier: Apache-2.0

"""Instances that Nova has elsewhere, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import foreign_instances


class TestForeignInstances(foreign_instances.ForeignInstances, base.TestCase):
    """The suite, on a file."""
