# SPDX-License-Identifier: Apache-2.0

"""The collector's side of the bus."""

from collections.abc import Callable
import functools
import time
import typing as ty

from oslo_config import cfg

from vsched_api.collector import authenticator
from vsched_api.collector import metrics
from vsched_api.conf import bus as bus_conf
from vsched_api.db import session as db
from vsched_api.operations import jobs
from vsched_api.operations import overrides
from vsched_api.operations import report_groups
from vsched_api.operations import reports
from vsched_lib.contract import bus
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import wire


class Collector(collector_rpc.CollectorEndpoint):
    """Stores what agents report, and returns to them what operators set.

    Answers only what is stored for good. An unavailable database raises:
    to the agent the collector is unreachable; it keeps the batch.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param now: seconds since the epoch.
    :param transport: the bus it is served on. How callers are authenticated
        depends on it; without a bus they are not.
    :ivar metrics: counts what it does.
    :raises signing.KeyFileError: when callers must sign and the keys cannot
        be read.
    :raises bus.UnsafeBus: when nobody would have to sign, on a broker.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        now: Callable[[], float] = time.time,
        transport: ty.Any = None,
    ) -> None:
        self.database = db.Database(conf)
        self.metrics = metrics.Metrics()
        if transport is not None:
            mode = bus.mode(conf, rpc.in_memory(transport))
            if mode is not signing.Mode.NONE:
                masters = bus_conf.master_keys(conf)
                masters.read()
                self.authenticator = made = authenticator.Authenticator(
                    mode, self.database, masters, conf.bus.key_overlap_s, now
                )
                self.metrics.watch(made)
        self._now = now
        super().__init__(
            reports.Storage(
                self.database,
                report_groups.Limits(
                    conf.collector.clock_skew_warning_s,
                    conf.collector.max_host_cpus,
                ),
                now,
                self.metrics,
            ).store,
            functools.partial(overrides.of_host, self.database),
            functools.partial(jobs.orders, self.database),
        )

    def on_malformed_report(
        self, report: object, problem: wire.MalformedMessage
    ) -> collector_replies.ReportReply:
        """Answer a batch that can not be read, so that the next one comes.

        See :func:`vsched_api.operations.reports.reject`.
        """
        self.metrics.refuse(metrics.INVALID)
        return reports.reject(self.database, report, problem, self._now())
