# SPDX-License-Identifier: Apache-2.0

"""On SQLite."""

from vsched_api.tests import base
from vsched_api.tests.suites import metrics


class TestMetrics(metrics.Metrics, base.TestCase):
    """What is read for metrics."""
