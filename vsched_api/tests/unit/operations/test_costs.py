# SPDX-License-Identifier: Apache-2.0

"""On SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import costs


class TestCosts(costs.Costs, base.TestCase):
    """What requests cost."""
