# SPDX-License-Identifier: Apache-2.0

"""What requests cost the servers of databases."""

from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_api.tests.suites import costs


class TestPostgreSQL(costs.Costs, base.TestCase):
    """What requests cost."""

    kind = databases.PostgreSQL


class TestMariaDB(costs.Costs, base.TestCase):
    """What requests cost."""

    kind = databases.MariaDB
