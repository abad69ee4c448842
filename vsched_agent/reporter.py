# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Delivers batches to the collector and brings back overrides.

Runs on its own thread: a dead bus stops reports, never enforcement.
"""

import random
import threading
import typing as ty

from oslo_log import log as logging

from vsched_agent import journal as journals
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

#: First and longest wait after a failed delivery, in seconds.
BACKOFF_S = (1.0, 30.0)


class Collector(ty.Protocol):
    """What :class:`vsched_lib.contract.rpc.CollectorClient` offers."""

    def report(self, report: messages.Report) -> messages.ReportReply:
        """Deliver one batch."""

    def overrides(self, host: str) -> messages.Overrides:
        """Ask for the overrides of a host."""

    def jobs(self, host: str) -> messages.Jobs:
        """Ask for the unfinished jobs of a host."""


class Reporter:
    """Sends the journal's batches in order, each until it is confirmed.

    :param host: this host's name.
    :param journal: where the batches wait.
    :param collector: the bus.
    :param on_overrides: takes the host's overrides when they changed.
    :param on_resync: the collector wants the next batch to be full.
    :param on_jobs: takes the host's unfinished jobs when they changed.
    """

    def __init__(self, host: str, journal: journals.Journal,
                 collector: Collector,
                 on_overrides: ty.Callable[[messages.Overrides], None],
                 on_resync: ty.Callable[[], None],
                 on_jobs: ty.Callable[[messages.Jobs], None]) -> None:
        self._host = host
        self._journal = journal
        self._collector = collector
        self._on_overrides = on_overrides
        self._on_resync = on_resync
        self._on_jobs = on_jobs
        # Jobs are not remembered over a restart: the collector's list says
        # which of them go on.
        self._jobs_generation = 0
        self._poked = threading.Event()
        self._stopping = threading.Event()
        self._fetch = threading.Event()
        self._fetch_jobs = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-reporter', daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the call under way; the rest waits in the journal."""
        self._stopping.set()
        self._poked.set()
        if self._thread.is_alive():
            self._thread.join()

    def poke(self) -> None:
        """A batch is waiting."""
        self._poked.set()

    def fetch_overrides(self) -> None:
        """The host's overrides have changed; get them now."""
        self._fetch.set()
        self._poked.set()

    def fetch_jobs(self) -> None:
        """The host's jobs have changed; get them now."""
        self._fetch_jobs.set()
        self._poked.set()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._poked.wait()
            self._poked.clear()
            try:
                self.deliver()
            except (errors.Unreachable, wire.MalformedMessage) as error:
                failures += 1
                wait_s = min(BACKOFF_S[0] * 2 ** (failures - 1),
                             BACKOFF_S[1]) * random.uniform(0.75, 1.25)
                LOG.warning(
                    '%s; %d batches wait, next try in %.1f s',
                    error, self._journal.waiting(), wait_s)
                self._stopping.wait(wait_s)
                self._poked.set()
            except Exception:
                # The next poke tries again; enforcement goes on.
                LOG.exception('delivery failed')
            else:
                failures = 0

    def deliver(self) -> None:
        """Deliver everything that waits.

        :raises errors.Unreachable: when the collector did not answer; the
            batch stays.
        """
        while not self._stopping.is_set():
            if self._fetch.is_set():
                self._fetch.clear()
                self._refresh()
            if self._fetch_jobs.is_set():
                self._fetch_jobs.clear()
                self._refresh_jobs()
            report = self._journal.oldest()
            if report is None:
                return
            reply = self._collector.report(report)
            self._journal.confirm(report.batch)
            if reply.resync:
                self._on_resync()
            if (reply.overrides_generation !=
                    self._journal.overrides_generation()):
                self._refresh()
            if reply.jobs_generation != self._jobs_generation:
                self._refresh_jobs()

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
