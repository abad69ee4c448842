# SPDX-License-Identifier: Apache-2.0

"""The collector's periodic tasks: sums, comparisons, retention."""

from collections.abc import Callable
import functools
import threading
import time

from oslo_config import cfg
from oslo_log import log as logging
from oslo_service import backend

from vsched_api.collector import metrics
from vsched_api.db import errors
from vsched_api.db import session
from vsched_api.operations import retention
from vsched_api.operations import rollups
from vsched_api.operations import slowdowns
from vsched_api.operations import snapshot
from vsched_api.operations import verifications

LOG = logging.getLogger(__name__)

#: The part of an interval over which the folding of all hosts is spread.
_FOLD_PART = 0.8


def _unless_database_away(
    act: Callable[['Tasks'], None],
) -> Callable[['Tasks'], None]:
    name = act.__name__.strip('_')

    @functools.wraps(act)
    def guarded(self: 'Tasks') -> None:
        try:
            with self._metrics.task(name):
                act(self)
        except errors.DatabaseUnavailable as problem:
            LOG.warning('Skipped %s: %s', name, problem)

    return guarded


class Tasks:
    """Sums samples, compares hosts with Nova, deletes what is too old.

    Any number of processes may do so with one database.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param database: for transactions as short as those of a report.
    :param counted: counts and times them.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: session.Database,
        counted: metrics.Metrics,
    ) -> None:
        self._conf = conf
        self._database = database
        self._metrics = counted
        self._maintained = session.Database(conf, session.Purpose.MAINTENANCE)
        self._stopped = threading.Event()
        self._rounds = (
            (conf.collector.usage_fold_interval_s, self._fold_usage),
            (slowdowns.LENGTH_S, self._learn_slowdowns),
            (conf.snapshot.tend_interval_s, self._tend_snapshot),
            (conf.collector.purge_interval_s, self._purge_old_rows),
            (verifications.ROUND_S, self._verify_hosts),
        )
        for _, act in self._rounds:
            counted.add_task(act.__name__.strip('_'))
        # Not by import: that settles for a backend before rpc chooses one.
        self._loops = backend.get_component('ThreadGroup')()

    def start(self) -> None:
        """Begin; each task runs for the first time after its interval."""
        for interval_s, act in self._rounds:
            self._loops.add_timer_args(
                interval_s,
                act,
                initial_delay=interval_s,
                stop_on_exception=False,
            )

    def stop(self) -> None:
        """End the transactions in progress, begin no more, and end."""
        self._stopped.set()
        self._loops.stop(graceful=True)
        self._maintained.dispose()

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
        self._metrics.delete(
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
            self._database, self._conf, time.time(), self._stopped.is_set
        )
