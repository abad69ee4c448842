# SPDX-License-Identifier: Apache-2.0

"""Delivers batches to the collector and fetches overrides and jobs.

Runs on its own thread: an unavailable bus delays reports, not enforcement.
"""

import dataclasses
import random
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.state import store as journals
from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import wire
from vsched_lib.model import retry_pause
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

#: First and longest wait after a delivery that the collector did not answer,
#: in seconds, before it is spread. It may have too much to do.
BACKOFF_S = (1.0, 30.0)
#: The same after one that the broker did not take: a try costs the collector
#: nothing, and while the broker is away many of them fail.
BUS_BACKOFF_S = (1.0, 4.0)
#: The longest time from the broker's return until reports are delivered, in
#: seconds, where collectors run and take reports at once. Before agent and
#: collector have connected a request or its answer is lost: the agent waits
#: for that answer and then for the second pause, as one more answer was lost
#: with the broker.
RECOVERY_S = rpc.RECONNECT_S + max(
    retry_pause.SPREAD[1] * BUS_BACKOFF_S[1],
    collector_rpc.REPORT_TIMEOUT_S
    + collector_rpc.CONNECT_S
    + retry_pause.SPREAD[1] * 2 * BACKOFF_S[0],
)

#: Shortest time between two pulls that notifications cause, in seconds:
#: their number is not limited.
MIN_PULL_INTERVAL_S = 1.0

#: Time between two log lines about failed authentication between collector
#: and host, in seconds.
REFUSED_LOG_INTERVAL_S = 3600.0

#: How often one batch is sent again at once because its epoch changes.
_MAX_EPOCH_CHANGES = 4


class Collector(ty.Protocol):
    """What :class:`collector_rpc.CollectorClient` implements."""

    def report(self, report: messages.Report) -> collector_replies.ReportReply:
        """Deliver one batch."""

    def overrides(self, host: str) -> collector_replies.Overrides:
        """Fetch the overrides of a host."""

    def jobs(self, host: str) -> messages.Jobs:
        """Fetch the unfinished jobs of a host."""


class Reporter(agent_rpc.AgentEndpoint):
    """Sends the journal's batches in order, each until it is confirmed.

    Fetches what the API announces; announcements do not contain it.

    :param host: this host's name.
    :param journal: where the batches wait.
    :param collector: the bus.
    :param on_overrides: takes the host's overrides when they changed.
    :param on_resync: called when the collector requests a full batch.
    :param on_jobs: takes the host's unfinished jobs when they changed.
    :param clock: monotonic, in seconds.
    :param now: this host's clock, in seconds since the epoch.
    """

    def __init__(
        self,
        host: str,
        journal: journals.Journal,
        collector: Collector,
        on_overrides: ty.Callable[[collector_replies.Overrides], None],
        on_resync: ty.Callable[[], None],
        on_jobs: ty.Callable[[messages.Jobs], None],
        clock: ty.Callable[[], float] = time.monotonic,
        now: ty.Callable[[], float] = time.time,
    ) -> None:
        self._clock = clock
        # The newest batch that the collector has of this host; None before
        # its first reply.
        self._last_batch: int | None = None
        # The epoch of the last confirmed batch: nothing is pulled before
        # the collector has the present one.
        self._confirmed_epoch: str | None = None
        self._refused_at_s: float | None = None
        self._pull_after_s = clock()
        self._host = host
        self._now = now
        self._journal = journal
        self._outbox = journal.outbox
        self._collector = collector
        self._on_overrides = on_overrides
        self._on_resync = on_resync
        self._on_jobs = on_jobs
        # Jobs are not kept over a restart: the collector's list has those
        # that go on.
        self._jobs_generation = 0
        # Set by the outbox for a batch, by this class for all else.
        self._woken = self._outbox.posted
        self._problems = problem_log.ProblemLog(LOG)
        # Independent: tries during an outage do not make the agent wait for
        # longer once the broker has returned.
        self._pause = retry_pause.RetryPause(*BACKOFF_S, random.uniform)
        self._bus_pause = retry_pause.RetryPause(
            *BUS_BACKOFF_S, random.uniform
        )
        self._stopping = threading.Event()
        self._fetch = threading.Event()
        self._fetch_jobs = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-reporter', daemon=True
        )

    def start(self) -> None:
        """Start the delivery thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the call under way; the rest waits in the journal."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join()

    def fetch_overrides(self) -> None:
        """Request a pull of the host's overrides."""
        self._request(self._fetch)

    def fetch_jobs(self) -> None:
        """Request a pull of the host's jobs."""
        self._request(self._fetch_jobs)

    def on_overrides_changed(self, generation: int) -> None:
        """Request a pull of the overrides that the API announces."""
        self._announced(self._fetch, 'Overrides', generation)

    def on_jobs_changed(self, generation: int) -> None:
        """Request a pull of the jobs that the API announces."""
        self._announced(self._fetch_jobs, 'Jobs', generation)

    def _announced(
        self, pull: threading.Event, what: str, generation: int
    ) -> None:
        # One line for each pull, however many announcements cause it.
        if not pull.is_set():
            LOG.info('%s of generation %d are announced', what, generation)
        self._request(pull)

    def _request(self, pull: threading.Event) -> None:
        # A pull that is requested already needs no second wake-up.
        if not pull.is_set():
            pull.set()
            self._woken.set()

    def _pull_wait_s(self) -> float | None:
        """Return the time until a requested pull is due; None without one."""
        if self._confirmed_epoch != self._outbox.epoch or not (
            self._fetch.is_set() or self._fetch_jobs.is_set()
        ):
            return None
        return max(self._pull_after_s - self._clock(), 0)

    def _pull(self) -> None:
        """Do the requested pulls, if the last ones are long enough ago.

        :raises errors.Unreachable: when the collector did not answer.
        """
        if self._pull_wait_s() != 0:
            return
        self._pull_after_s = self._clock() + MIN_PULL_INTERVAL_S
        if self._fetch.is_set():
            self._fetch.clear()
            self._refresh()
        if self._fetch_jobs.is_set():
            self._fetch_jobs.clear()
            self._refresh_jobs()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.wait(self._pull_wait_s())
            self._woken.clear()
            try:
                self.deliver()
            except (errors.Unreachable, wire.MalformedMessage) as error:
                wait_s = self._pause_after(error)
                self._log_failure(error, wait_s)
                self._stopping.wait(wait_s)
                self._woken.set()
            except Exception as error:
                # The next wake-up tries again; enforcement goes on.
                self._problems.failed('report', error, 'delivery failed')
            else:
                self._answered()
                self._refused_at_s = None

    def _pause_after(self, error: Exception) -> float:
        """Return how long to wait after a failure, in seconds."""
        if isinstance(error, errors.BusUnavailable):
            return self._bus_pause.failed()
        return self._pause.failed()

    def _answered(self) -> None:
        self._pause.succeeded()
        self._bus_pause.succeeded()

    def _log_failure(self, error: Exception, wait_s: float) -> None:
        if not isinstance(error, errors.Unauthenticated):
            LOG.warning(
                '%s; %d batches wait, next try in %.1f s',
                error,
                self._outbox.waiting(),
                wait_s,
            )
            return
        # The error persists until an operator acts: do not repeat it.
        if self._refused_at_s is None or (
            self._clock() - self._refused_at_s >= REFUSED_LOG_INTERVAL_S
        ):
            self._refused_at_s = self._clock()
            LOG.error(
                '%s; reservations are enforced as known, %d reports wait and '
                'are delivered once the keys are right (%s)',
                error,
                self._outbox.waiting(),
                error.code,
            )

    def deliver(self) -> None:
        """Deliver all waiting batches.

        :raises errors.Unreachable: when the collector did not answer; the
            batch stays in the journal.
        """
        while not self._stopping.is_set():
            self._pull()
            report = self._outbox.oldest()
            if report is None:
                return
            reply = self._send(report)
            if reply is None:
                continue
            self._outbox.confirm(report.batch)
            # Others that wait may fail before this method returns.
            self._answered()
            self._confirmed_epoch = report.epoch
            if reply.resync:
                self._on_resync()
            if self._confirmed_epoch != self._outbox.epoch:
                # The batch is of an earlier run.
                continue
            if (
                reply.overrides_generation
                != self._journal.overrides_generation()
            ):
                self._refresh()
            if reply.jobs_generation != self._jobs_generation:
                self._refresh_jobs()

    def _send(
        self, report: messages.Report
    ) -> collector_replies.ReportReply | None:
        """Send one batch, and begin its epoch if the collector requests it.

        :returns: None when the journal has changed, and with it perhaps
            its oldest batch.
        :raises errors.Unreachable: when it is not stored.
        """
        for _ in range(_MAX_EPOCH_CHANGES):
            reply = self._collector.report(
                dataclasses.replace(
                    report, after=self._last_batch, sent_at=self._now()
                )
            )
            self._last_batch = reply.last_batch
            if reply.epoch_state is collector_replies.EpochState.CURRENT:
                return reply
            if reply.epoch_state is collector_replies.EpochState.REPLACED:
                dropped = self._outbox.replace_epoch(
                    str(report.epoch), reply.epoch_batch
                )
                LOG.warning(
                    'the collector has followed another journal since epoch '
                    '%s: this journal was restored from a copy, or two '
                    'agents report as %s; %d batches that were stored are '
                    'dropped, the others go on under epoch %s',
                    report.epoch,
                    self._host,
                    dropped,
                    self._outbox.epoch,
                )
                return None
        raise errors.Unreachable(
            'the collector does not begin epoch %s: other reports of %s '
            'come in between' % (report.epoch, self._host)
        )

    def _refresh(self) -> None:
        try:
            self._on_overrides(self._collector.overrides(self._host))
        except errors.Unreachable:
            self._fetch.set()
            raise

    def _refresh_jobs(self) -> None:
        try:
            jobs = self._collector.jobs(self._host)
        except errors.Unreachable:
            self._fetch_jobs.set()
            raise
        self._jobs_generation = jobs.generation
        self._on_jobs(jobs)
