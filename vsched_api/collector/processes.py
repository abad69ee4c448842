# SPDX-License-Identifier: Apache-2.0

"""The processes of a collector, which one process starts and watches.

That one has a single thread and no connection, so that it may fork at any
time.
"""

from collections.abc import Callable
import multiprocessing
import os
import signal
import sys
import threading
import time
import typing as ty

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

#: Signals that a service receives by sigwait(). They are blocked in all
#: threads: a Python handler would run in the main thread between two
#: bytecodes, so if a signal arrived just before a blocking call, it would run
#: after that call only.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

#: Exit status of a process that cannot start as the options require. To start
#: it again would not help.
UNUSABLE = 1

#: Seconds after which a process that ended is started again, as systemd does
#: with the whole service.
RESTART_S = 2.0


class Processes:
    """Numbered processes, each of which is started again when it ends.

    :param count: number of processes.
    :param serve: what each runs, given its number, until it receives SIGTERM;
        returns its exit status.
    :param reload: runs on SIGHUP; returns whether the processes get one too.
    """

    def __init__(
        self,
        count: int,
        serve: Callable[[int], int],
        reload: Callable[[], bool],
    ) -> None:
        self._serve = serve
        self._reload = reload
        self._fork: ty.Any = multiprocessing.get_context('fork')
        self._running: dict[int, ty.Any] = {}
        #: When those that do not run are started, by the steady clock.
        self._due_s = dict.fromkeys(range(count), 0.0)

    def run(self) -> int:
        """Run them until SIGTERM or SIGINT.

        :returns: the exit status: :data:`UNUSABLE` when one could not start.
        """
        awaited = {*SIGNALS, signal.SIGCHLD}
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
        status = 0
        while not status:
            self._start_due()
            received = signal.sigtimedwait(awaited, self._pause_s())
            number = received.si_signo if received else None
            if number in (signal.SIGTERM, signal.SIGINT):
                break
            if number == signal.SIGHUP and self._reload():
                self._send(signal.SIGHUP)
            status = self._reap()
        self._send(signal.SIGTERM)
        for process in self._running.values():
            process.join()
        return status

    def _start_due(self) -> None:
        now_s = time.monotonic()
        for number, due_s in list(self._due_s.items()):
            if due_s <= now_s:
                process = self._fork.Process(target=self._run, args=(number,))
                try:
                    process.start()
                except OSError as problem:
                    LOG.error(
                        'A process of the collector cannot be started, and is '
                        'tried again in %.0f s: %s',
                        RESTART_S,
                        problem,
                    )
                    self._due_s[number] = now_s + RESTART_S
                    continue
                del self._due_s[number]
                self._running[number] = process

    def _pause_s(self) -> float:
        # Nothing but a signal is awaited while all of them run.
        due_s = min(self._due_s.values(), default=time.monotonic() + 3600)
        return max(0.0, due_s - time.monotonic())

    def _reap(self) -> int:
        """Plan to start those that have ended; returns the exit status."""
        for number, process in list(self._running.items()):
            if process.exitcode is None:
                continue
            del self._running[number]
            if process.exitcode == UNUSABLE:
                return UNUSABLE
            LOG.error(
                'Process %d of the collector ended (%s), and is started again '
                'in %.0f s',
                process.pid,
                _manner(process.exitcode),
                RESTART_S,
            )
            self._due_s[number] = time.monotonic() + RESTART_S
        return 0

    def _send(self, number: int) -> None:
        for process in self._running.values():
            # Not reaped yet, so that no other process has its number.
            if process.exitcode is None:
                os.kill(process.pid, number)

    def _run(self, number: int) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        threading.Thread(
            target=_end_with_parent, name='vsched-parent', daemon=True
        ).start()
        sys.exit(self._serve(number))


def _end_with_parent() -> None:
    """Stop this process when the one that started it is killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _manner(exit_code: int) -> str:
    if exit_code < 0:
        return 'by signal %d' % -exit_code
    return 'with status %d' % exit_code
