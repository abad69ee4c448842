# SPDX-License-Identifier: Apache-2.0

"""A collector of tests on the bus."""

from vsched_lib.contract import collector_rpc


class Endpoint(collector_rpc.CollectorEndpoint):
    """Passes requests to a collector in memory."""

    def __init__(self, collector):
        self._collector = collector

    def on_report(self, report):
        return self._collector.report(report)

    def on_overrides(self, host):
        return self._collector.overrides(host)

    def on_jobs(self, host):
        return self._collector.jobs(host)
