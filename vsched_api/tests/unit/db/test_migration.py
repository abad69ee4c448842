# SPDX-License-Identifier: Apache-2.0

"""Migrations, on SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import migrations


class TestMigrations(migrations.Migrations, base.TestCase):
    """The suite, on a file."""
