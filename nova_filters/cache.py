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

"""Keeps what is known of all hosts, one copy in each process.

nova-scheduler makes its filters and then forks its workers: nothing may be
opened or started before the first use. From then on a thread keeps the copy
up to date; a filter only picks it up.
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
    """Where snapshots come from."""

    def get(self, since: int | None = None, tag: str | None = None,
            ) -> tuple[snapshot.Snapshot | None, str | None]:
        """See :class:`nova_filters.source.Source`."""


class Known(ty.NamedTuple):
    """What is known of all hosts, and how old that is.

    :param at: when the service last said so, by the monotonic clock; None
        before it did.
    """

    hosts: hosts.Hosts
    at: float | None

    def stale(self, now: float, max_age_s: float) -> bool:
        """Whether it was heard too long ago."""
        return self.at is None or now - self.at > max_age_s


class Cache:
    """The copy of one process. Safe from any thread.

    :param made: makes the source, in the thread that uses it.
    :param interval_s: between two looks.
    :param clock: seconds that only go forward.
    """

    def __init__(self, made: Callable[[], Source], interval_s: float,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._made = made
        self._interval_s = interval_s
        self._clock = clock
        self._known = Known(hosts.NOTHING, None)
        self._pid: int | None = None
        self._starting = threading.Lock()
        self._stopped = threading.Event()
        self._heard = threading.Event()
        self._thread: threading.Thread | None = None

    def known(self) -> Known:
        """What is known now; begins to find out when nobody has yet."""
        if self._pid != os.getpid():
            self._start()
        return self._known

    def wait(self, timeout_s: float) -> bool:
        """Wait until something is known; not for use in a request."""
        self.known()
        return self._heard.wait(timeout_s)

    def stop(self) -> None:
        """Find out no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        with self._starting:
            if self._pid == os.getpid():
                return
            # What the parent's thread would have told is not ours.
            self._stopped, self._heard = threading.Event(), threading.Event()
            self._thread = threading.Thread(
                target=self._keep, name='vsched-snapshot', daemon=True)
            self._thread.start()
            self._pid = os.getpid()

    def _keep(self) -> None:
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
                    LOG.info('vsched: the service tells of hosts again')
                trouble = None
            except source.Unavailable as problem:
                if trouble != str(problem):
                    trouble = str(problem)
                    LOG.warning('vsched: the service tells nothing of hosts, '
                                'what is known is kept: %s', trouble)
            except Exception:
                # The next round may well succeed, and must be tried.
                LOG.exception('vsched: a look at the hosts failed')
            left_s = self._interval_s - (self._clock() - began)
            if self._stopped.wait(max(0.0, left_s)):
                return

    def refresh(self, found: Source) -> bool:
        """Look once for what has changed.

        :returns: whether there is more.
        :raises source.Unavailable: when the service does not tell.
        """
        before = self._known.hosts
        began = self._clock()
        news, tag = found.get(before.version, before.tag)
        after = before if news is None else before.after(news, tag)
        # One assignment: whoever looks sees the old or the new.
        self._known = Known(after, began)
        if news is not None and news.more:
            return True
        self._heard.set()
        return False
