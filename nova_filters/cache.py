# SPDX-License-Identifier: Apache-2.0

"""A copy of the snapshot of all hosts in each process.

nova-scheduler makes its filters and then forks its workers: nothing may be
opened or started before the first use. From then on a thread keeps the copy
up to date; filters only read it.
"""

from collections.abc import Callable
import logging
import os
import threading
import time
import typing as ty

from nova_filters import hosts
from nova_filters import source
from vsched_lib.contract import snapshot

LOG = logging.getLogger(__name__)


class Source(ty.Protocol):
    """What returns snapshots."""

    def get(
        self, since: int | None = None, tag: str | None = None
    ) -> tuple[snapshot.Snapshot | None, str | None]:
        """See :class:`nova_filters.source.Source`."""


class Known(ty.NamedTuple):
    """What is known of all hosts, and since when.

    :param at: when the request for it was sent, by the monotonic clock;
        None before the first answer.
    """

    hosts: hosts.Hosts
    at: float | None

    def stale(self, now: float, max_age_s: float) -> bool:
        """Return whether it is older than ``max_age_s``."""
        return self.at is None or now - self.at > max_age_s


class Cache:
    """The copy of one process. Safe from any thread.

    :param made: makes the source, in the thread that uses it.
    :param interval_s: seconds between two requests.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        made: Callable[[], Source],
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._made = made
        self._interval_s = interval_s
        self._clock = clock
        self._known = Known(hosts.NOTHING, None)
        self._pid: int | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._received = threading.Event()
        self._thread: threading.Thread | None = None

    def known(self) -> Known:
        """Return what is known now; start the thread at the first call."""
        if self._pid != os.getpid():
            self._start()
        return self._known

    def wait(self, timeout_s: float) -> bool:
        """Wait for the first answer; not for use in a request."""
        self.known()
        return self._received.wait(timeout_s)

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._pid == os.getpid():
                return
            # The parent's thread sets the parent's events only.
            self._stopped, self._received = (
                threading.Event(),
                threading.Event(),
            )
            self._thread = threading.Thread(
                target=self._run, name='vsched-snapshot', daemon=True
            )
            self._thread.start()
            self._pid = os.getpid()

    def _run(self) -> None:
        found: Source | None = None
        trouble: str | None = None
        while True:
            began = self._clock()
            try:
                if found is None:
                    found = self._made()
                while self.refresh(found) and not self._stopped.is_set():
                    pass
                if trouble is not None:
                    LOG.info('vsched: the service answers again')
                trouble = None
            except source.Unavailable as problem:
                if trouble != str(problem):
                    trouble = str(problem)
                    LOG.warning(
                        'vsched: cannot update the snapshot of hosts, '
                        'the last one is kept: %s',
                        trouble,
                    )
            except Exception:
                # The thread must go on: the next request may succeed.
                LOG.exception('vsched: updating the snapshot of hosts failed')
            left_s = self._interval_s - (self._clock() - began)
            if self._stopped.wait(max(0.0, left_s)):
                return

    def refresh(self, found: Source) -> bool:
        """Request what has changed, once.

        :returns: whether there is more to request.
        :raises source.Unavailable: when there is no valid answer.
        """
        before = self._known.hosts
        began = self._clock()
        answer, tag = found.get(before.version, before.tag)
        after = before if answer is None else before.after(answer, tag)
        # One assignment: readers see either the old or the new one.
        self._known = Known(after, began)
        if answer is not None and answer.more:
            return True
        self._received.set()
        return False
