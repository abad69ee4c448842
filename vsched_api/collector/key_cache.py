# SPDX-License-Identifier: Apache-2.0

"""What the database says of hosts' keys, a short time ago.

A thousand hosts make hundreds of requests a second. One query for all of
their keys every :data:`TTL_S` costs less than one query a request.
"""

import collections
from collections.abc import Callable
import threading
import time

from vsched_api.db import session as db
from vsched_api.operations import host_keys

#: How long what was read is taken to hold, in seconds: a key that was revoked
#: is refused after that.
TTL_S = 2.0

#: Of how many hosts a row of their own is remembered, the last ones read.
MAX_HOSTS = 10_000


class KeyCache:
    """The keys of all hosts. Safe from any thread.

    :param clock: steady, in seconds.
    """

    def __init__(
        self,
        database: db.Database,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._clock = clock
        #: Held while all keys are read, so that one thread does it for all.
        self._reading = threading.Lock()
        self._read_at: float | None = None
        self._all: dict[str, host_keys.Serials] = {}
        self._lock = threading.Lock()
        self._single: collections.OrderedDict[
            str, tuple[float, host_keys.Serials | None]
        ] = collections.OrderedDict()

    def of_host(self, host: str) -> host_keys.Serials | None:
        """Return the keys of a host, read at most :data:`TTL_S` ago.

        :raises vsched_api.db.errors.DatabaseUnavailable: when they are to be
            read and cannot be.
        """
        if self._stale(self._read_at):
            with self._reading:
                if self._stale(self._read_at):
                    at = self._clock()
                    self._all = {
                        one.host: one
                        for one in host_keys.every(self._database)
                    }
                    self._read_at = at
        return self._all.get(host)

    def newly_issued(self, host: str) -> host_keys.Serials | None:
        """Return the keys of one host, which may be newer than all others.

        They are read at most once in :data:`TTL_S`.

        :raises vsched_api.db.errors.DatabaseUnavailable: likewise.
        """
        with self._lock:
            at, found = self._single.get(host, (None, None))
            if not self._stale(at):
                return found
        found = host_keys.of_host(self._database, host)
        with self._lock:
            self._single[host] = self._clock(), found
            self._single.move_to_end(host)
            while len(self._single) > MAX_HOSTS:
                self._single.popitem(last=False)
        return found

    def forget(self, host: str) -> None:
        """Read the keys of a host again when they are needed next."""
        with self._lock:
            self._single.pop(host, None)
        self._read_at = None

    def _stale(self, at: float | None) -> bool:
        return at is None or self._clock() - at >= TTL_S
