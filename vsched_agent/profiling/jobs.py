# SPDX-License-Identifier: Apache-2.0

"""Runs what operators have ordered of this host.

A run is a process of its own: what it does to the host ends with it, and a
run that goes wrong takes nothing else along. It ends when the agent does,
and goes on where it was when the agent is back and the order still stands.
"""

from collections.abc import Callable
from collections.abc import Sequence
import json
import subprocess
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.privileged import isolated
from vsched_lib.contract import messages

LOG = logging.getLogger(__name__)

State = messages.JobState

#: Exit code of a run that was interrupted.
STOPPED = 3
#: What is kept of the words of a run that failed, in characters.
_LAST_WORDS = 500
#: Between two reports of progress, in seconds.
_REPORT_S = 2.0


class Jobs:
    """The host's jobs, one at a time.

    :param command: the words that run an order, without its parameters.
    :param arguments: turns an order's parameters into words.
    :param on_report: called with a job's progress; from any thread.
    """

    def __init__(
        self,
        command: Sequence[str],
        arguments: Callable[[messages.JobOrder], Sequence[str]],
        on_report: Callable[[messages.JobReport], None],
    ) -> None:
        self._command = tuple(command)
        self._arguments = arguments
        self._on_report = on_report
        self._lock = threading.Condition()
        self._waiting: dict[str, messages.JobOrder] = {}
        self._finished: dict[str, int] = {}
        self._running: messages.JobOrder | None = None
        self._process: subprocess.Popen[str] | None = None
        self._cancelled = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name='vsched-jobs', daemon=True
        )

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Stop; what runs is ended and can be gone on with."""
        with self._lock:
            self._stopping.set()
            self._lock.notify_all()
            self._end_running()
        if self._thread.is_alive():
            self._thread.join()

    def take(self, jobs: messages.Jobs) -> None:
        """Take over the list of the host's unfinished jobs."""
        with self._lock:
            self._waiting.clear()
            for order in jobs.orders:
                mine = (
                    self._running is not None
                    and self._running.uuid == order.uuid
                )
                if order.wanted is messages.JobWanted.CANCEL:
                    if mine:
                        self._cancelled = True
                        self._end_running()
                    else:
                        self._report(order, State.CANCELLED, 0, 'not started')
                elif (
                    not mine
                    and self._finished.get(order.uuid, 0) < order.attempt
                ):
                    self._waiting[order.uuid] = order
            if self._running is not None and self._running.uuid not in {
                order.uuid for order in jobs.orders
            }:
                # It is not ordered any more.
                self._cancelled = True
                self._end_running()
            self._lock.notify_all()

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._waiting and not self._stopping.is_set():
                    self._lock.wait()
                if self._stopping.is_set():
                    return
                order = self._waiting.pop(next(iter(self._waiting)))
                self._running, self._cancelled = order, False
            try:
                state, progress_ppm, words = self._do(order)
            except Exception as problem:
                LOG.exception('job %s failed', order.uuid)
                state, progress_ppm, words = State.FAILED, 0, str(problem)
            with self._lock:
                self._running = None
                if self._stopping.is_set() and state is State.CANCELLED:
                    # The next agent goes on with it.
                    return
                self._finished[order.uuid] = order.attempt
            self._report(order, state, progress_ppm, words)

    def _do(self, order: messages.JobOrder) -> tuple[State, int, str]:
        words = (*self._command, *self._arguments(order))
        LOG.info('job %s: %s', order.uuid, ' '.join(words))
        with self._lock:
            if self._cancelled or self._stopping.is_set():
                return State.CANCELLED, 0, 'not started'
            # The run ends when its input closes, at the latest with this
            # process.
            self._process = process = isolated.start(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        self._report(order, State.RUNNING, 0, 'started')
        said: list[str] = []
        listener = threading.Thread(
            target=lambda: said.extend(ty.cast(ty.IO[str], process.stderr)),
            name='vsched-job-words',
            daemon=True,
        )
        listener.start()
        progress_ppm, detail = self._follow(order, process)
        code = process.wait()
        listener.join()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        with self._lock:
            self._process = None
        if code == 0:
            return State.DONE, 1_000_000, detail
        if code == STOPPED or self._cancelled or self._stopping.is_set():
            return State.CANCELLED, progress_ppm, detail
        return (
            State.FAILED,
            progress_ppm,
            (''.join(said).strip()[-_LAST_WORDS:] or 'exit code %d' % code),
        )

    def _follow(
        self, order: messages.JobOrder, process: subprocess.Popen[str]
    ) -> tuple[int, str]:
        progress_ppm, detail, reported_s = 0, '', 0.0
        for line in ty.cast(ty.IO[str], process.stdout):
            try:
                heard = json.loads(line)
                progress_ppm = int(heard['progress_ppm'])
                detail = str(heard['detail'])
            except (ValueError, KeyError, TypeError):
                LOG.debug('job %s: %s', order.uuid, line.rstrip())
                continue
            if time.monotonic() - reported_s >= _REPORT_S:
                reported_s = time.monotonic()
                self._report(order, State.RUNNING, progress_ppm, detail)
        return progress_ppm, detail

    def _end_running(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def _report(
        self,
        order: messages.JobOrder,
        state: State,
        progress_ppm: int,
        detail: str,
    ) -> None:
        self._on_report(
            messages.JobReport(
                order.uuid,
                order.attempt,
                state,
                progress_ppm,
                time.time(),
                detail,
            )
        )
