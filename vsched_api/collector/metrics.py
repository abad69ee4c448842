# SPDX-License-Identifier: Apache-2.0

"""The metrics of one collector.

They are of the process: counters begin at 0 when it starts. Several
collectors each have an endpoint of their own, and Prometheus adds them up.
"""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import time
import typing as ty

import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries

from vsched_api.db import errors as db_errors
from vsched_api.metric_families import collector as families
from vsched_api.operations import reports
from vsched_api.operations import retention
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.metrics import family

#: Why a batch was not stored.
INVALID = 'invalid'
DATABASE = 'database'
DEFECT = 'defect'
_EPOCHS = {
    collector_replies.EpochState.UNOPENED: 'unopened',
    collector_replies.EpochState.REPLACED: 'replaced',
}
CAUSES = (INVALID, *_EPOCHS.values(), DATABASE, DEFECT)

_CODES = frozenset(errors.Code)
_OTHER = 'other'


class Requests(ty.Protocol):
    """What checks the signatures of requests."""

    @property
    def refused(self) -> int:
        """Return how many requests were refused."""

    @property
    def unsigned(self) -> int:
        """Return how many requests without a signature were accepted."""


class Metrics:
    """Counts and times the work of a collector. Safe from any thread.

    :param tasks: the names of its periodic tasks.
    :param clock: steady, in seconds.
    :param now: seconds since the epoch.
    """

    def __init__(
        self,
        tasks: Sequence[str] = (),
        clock: Callable[[], float] = time.perf_counter,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        self._now = now
        self._requests: Requests | None = None
        made = self._registry = registries.CollectorRegistry(
            auto_describe=False
        )
        self._stored = families.BATCHES_STORED.counter(made)
        self._repeated = families.BATCHES_REPEATED.counter(made)
        self._refused = families.BATCHES_REFUSED.counter(made)
        self._duration = families.BATCH_DURATION.histogram(made)
        self._outbox_age = families.OUTBOX_AGE.histogram(made)
        self._samples = families.SAMPLES_STORED.counter(made)
        self._events = families.EVENTS_STORED.counter(made)
        self._deleted = families.ROWS_DELETED.counter(made)
        self._task_duration = families.TASK_DURATION.histogram(made)
        self._task_success = families.TASK_SUCCESS.gauge(made)
        self._task_failures = families.TASK_FAILURES.counter(made)
        made.register(_Rest(self))
        # A rate needs the 0 before the first one.
        for cause in CAUSES:
            self._refused.labels(cause)
        for subject in ('instances', 'hosts'):
            self._samples.labels(subject)
        for code in (*_CODES, _OTHER):
            self._events.labels(code)
        for kind in retention.KINDS:
            self._deleted.labels(kind)
        for task in tasks:
            self.add_task(task)
        prometheus_client.ProcessCollector(registry=made)

    def add_task(self, task: str) -> None:
        """Expose a periodic task before it has run."""
        self._task_duration.labels(task)
        self._task_success.labels(task).set(self._now())
        self._task_failures.labels(task)

    def watch(self, requests: Requests) -> None:
        """Expose how many requests were refused, or were not signed."""
        self._requests = requests

    @contextlib.contextmanager
    def batch(self, report: messages.Report) -> Iterator[reports.Outcome]:
        """Count and time a batch while it is stored."""
        outcome = reports.Outcome()
        began_s = self._clock()
        try:
            yield outcome
        except db_errors.DatabaseUnavailable:
            self.refuse(DATABASE)
            raise
        except Exception:
            self.refuse(INVALID if outcome.invalid else DEFECT)
            raise
        finally:
            self._duration.observe(self._clock() - began_s)
        if outcome.invalid:
            self.refuse(INVALID)
        elif outcome.reply is not None:
            self._count(report, outcome.reply)

    def _count(
        self, report: messages.Report, reply: collector_replies.ReportReply
    ) -> None:
        if reply.epoch_state in _EPOCHS:
            self.refuse(_EPOCHS[reply.epoch_state])
            return
        if reply.duplicate:
            self._repeated.inc()
            return
        self._stored.inc()
        if report.sent_at is not None:
            self._outbox_age.observe(max(0.0, report.sent_at - report.at))
        if report.usage:
            self._samples.labels('instances').inc(len(report.usage))
        if report.host_usage:
            self._samples.labels('hosts').inc(len(report.host_usage))
        for event in report.events:
            self._events.labels(
                event.code if event.code in _CODES else _OTHER
            ).inc()

    def refuse(self, cause: str) -> None:
        """Count a batch that was not stored.

        :param cause: one of :data:`CAUSES`.
        """
        self._refused.labels(cause).inc()

    @contextlib.contextmanager
    def task(self, task: str) -> Iterator[None]:
        """Count and time a run of a periodic task."""
        began_s = self._clock()
        try:
            yield
        except Exception:
            self._task_failures.labels(task).inc()
            raise
        else:
            self._task_success.labels(task).set(self._now())
        finally:
            self._task_duration.labels(task).observe(self._clock() - began_s)

    def delete(self, counts: Mapping[str, int]) -> None:
        """Count rows that were deleted.

        :param counts: by kind, one of ``retention.KINDS``.
        """
        for kind, count in counts.items():
            self._deleted.labels(kind).inc(count)

    def exposed(self) -> registries.CollectorRegistry:
        """Return what is served."""
        outer = registries.CollectorRegistry(auto_describe=False)
        outer.register(family.Exposed(self._registry))
        return outer

    def _rest(self) -> Iterator[core.Metric]:
        info = families.INFO.samples()
        info.add_metric([family.version()], 1)
        yield info
        watched = self._requests
        for which, count in (
            (families.REQUESTS_REFUSED, watched.refused if watched else 0),
            (families.REQUESTS_UNSIGNED, watched.unsigned if watched else 0),
        ):
            made = which.samples()
            made.add_metric([], count)
            yield made


class _Rest(registries.Collector):
    """What is known at the time of a scrape only."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[core.Metric]:
        return self._metrics._rest()
