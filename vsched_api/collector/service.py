# SPDX-License-Identifier: Apache-2.0

"""The collector as it runs: a server on the bus, sums, and retention."""

from collections.abc import Callable
import functools
import threading
import time
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

from vsched_api.collector import endpoint
from vsched_api.db import errors
from vsched_api.db import session
from vsched_api.operations import retention
from vsched_api.operations import rollups
from vsched_api.operations import slowdowns
from vsched_api.operations import snapshot
from vsched_api.operations import verifications
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_lib.metrics import server as metrics_server

LOG = logging.getLogger(__name__)

#: The part of an interval over which the folding of all hosts is spread.
_FOLD_PART = 0.8


def _unless_database_away(
    act: Callable[['Service'], None],
) -> Callable[['Service'], None]:
    name = act.__name__.strip('_')

    @functools.wraps(act)
    def guarded(self: 'Service') -> None:
        try:
            with self._collector.metrics.task(name):
                act(self)
        except errors.DatabaseUnavailable as problem:
            LOG.warning('Skipped %s: %s', name, problem)

    return guarded


class Service:
    """Takes reports off the bus, sums samples, deletes what is too old.

    Any number may run against one bus and one database.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param transport: the bus.
    :param server: this process's name on it.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, transport: ty.Any, server: str
    ) -> None:
        self._conf = conf
        self._name = server
        self._collector = endpoint.Collector(conf, transport=transport)
        self._maintained = session.Database(conf, session.Purpose.MAINTENANCE)
        self._server = rpc.get_server(
            transport, collector_rpc.TOPIC, server, [self._collector]
        )
        self._stopped = threading.Event()
        # Of its own: it waits for a broker that is away.
        self._starting = threading.Thread(
            target=self._start, name='vsched-collector', daemon=True
        )
        self._rounds = (
            (conf.collector.usage_fold_interval_s, self._fold_usage),
            (slowdowns.LENGTH_S, self._learn_slowdowns),
            (conf.snapshot.tend_interval_s, self._tend_snapshot),
            (conf.collector.purge_interval_s, self._purge_old_rows),
            (verifications.ROUND_S, self._verify_hosts),
        )
        for _, act in self._rounds:
            self._collector.metrics.add_task(act.__name__.strip('_'))
        self._metrics_server = metrics_server.Server(
            metrics_server.Settings.of(conf, 'collector'),
            self._collector.metrics.exposed(),
        )
        # Not by import: that settles for a backend before rpc chooses one.
        self._loops = backend.get_component('ThreadGroup')()

    @property
    def metrics_port(self) -> int:
        """The port on which metrics are served; 0 when they are not."""
        return self._metrics_server.port

    def start(self) -> None:
        """Begin; comes back at once, even while the broker is away.

        :raises vsched_lib.metrics.server.UnusableEndpoint: when the metrics
            cannot be served.
        """
        self._metrics_server.start()
        self._starting.start()
        for interval_s, act in self._rounds:
            self._loops.add_timer_args(
                interval_s,
                act,
                initial_delay=interval_s,
                stop_on_exception=False,
            )

    def stop(self) -> None:
        """Answer what was taken off the bus, take no more, and end."""
        self._stopped.set()
        if not self._starting.is_alive():
            self._server.stop()
            self._server.wait()
        self._loops.stop(graceful=True)
        self._metrics_server.stop()
        self._collector.database.dispose()
        self._maintained.dispose()

    def _start(self) -> None:
        self._server.start()
        LOG.info('Collector %s takes reports', self._name)

    @_unless_database_away
    def _fold_usage(self) -> None:
        rollups.fold(
            self._maintained,
            self._conf.collector.usage_fold_chunk_rows,
            self._stopped.is_set,
            spread_s=_FOLD_PART * self._conf.collector.usage_fold_interval_s,
            pause=self._stopped.wait,
        )

    @_unless_database_away
    def _purge_old_rows(self) -> None:
        self._collector.metrics.delete(
            retention.purge(
                self._maintained, self._conf, time.time(), self._stopped.is_set
            )
        )

    @_unless_database_away
    def _verify_hosts(self) -> None:
        verifications.verify(
            self._maintained, self._conf, time.time(), self._stopped.is_set
        )

    @_unless_database_away
    def _learn_slowdowns(self) -> None:
        slowdowns.learn(
            self._maintained,
            time.time(),
            self._conf.collector.usage_fold_interval_s,
        )

    @_unless_database_away
    def _tend_snapshot(self) -> None:
        snapshot.tend(
            self._collector.database,
            self._conf,
            time.time(),
            self._stopped.is_set,
        )
