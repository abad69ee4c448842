# SPDX-License-Identifier: Apache-2.0

"""Who sent a request to the collector.

A request is checked in this order, so that strangers cost no query and leave
no row: its signature against the keys derived for the host it names, then
the serial of that key against the host's row, then, for what reads only,
whether it was asked before. Reports need no such memory: the same report
twice is stored once (:mod:`vsched_api.operations.numbering`).

Requests of one run of an agent (its epoch) are numbered upwards. For each
host the newest number is kept in memory, and a request that reads must have
a higher one and be of the epoch of the host's newest report, which the
database has. So a recorded request is answered at most once by each
process of a collector, until that hears of the host again, and never after a
restart of the agent. Its answer has only what the host was sent
already.
"""

import collections
from collections.abc import Callable
import logging as levels
import threading
import time
import typing as ty

from oslo_log import log as logging

from vsched_api.collector import key_cache
from vsched_api.db import session as db
from vsched_api.operations import host_keys
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

LOG = logging.getLogger(__name__)

#: Of how many hosts the newest request is remembered, the last ones heard of.
MAX_HOSTS = 10_000

#: How often refused requests are logged at most, in seconds.
LOG_INTERVAL_S = 60.0


class Caller(collector_rpc.Caller):
    """A host whose signature was right."""

    def __init__(
        self,
        authenticator: 'Authenticator',
        key: signing_keys.HostKey,
        request: signing.Envelope,
    ) -> None:
        self.host = key.host
        self._authenticator = authenticator
        self._key = key
        self._request = request

    def seal(self, method: str, reply: dict[str, ty.Any]) -> dict[str, ty.Any]:
        """Sign a reply."""
        return signing.sign_reply(self._key, self._request, method, reply)

    def confirm(self) -> None:
        """Remember the request as the newest of its host."""
        self._authenticator.remember(self._request)


class Authenticator(collector_rpc.Authenticator):
    """Authenticates hosts by their signatures. Safe from any thread.

    :param mode: required or permissive; the latter takes requests without a
        signature, never with a wrong one.
    :param masters: the master keys, the newest first.
    :param overlap_s: how long the key before the newest one is accepted, in
        seconds, unless the newest one is used earlier.
    :param now: seconds since the epoch.
    :param clock: steady, in seconds.
    """

    def __init__(
        self,
        mode: signing.Mode,
        database: db.Database,
        masters: signing.KeyFile,
        overlap_s: float,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mode = mode
        self._database = database
        self._masters = masters
        self._overlap_s = overlap_s
        self._now = now
        self._clock = clock
        self._lock = threading.Lock()
        self._newest: collections.OrderedDict[str, tuple[str, int]] = (
            collections.OrderedDict()
        )
        self._keys = key_cache.KeyCache(database, clock)
        self._counts = {'refused': 0, 'unsigned': 0}
        self._logged: dict[str, tuple[float, int]] = {}

    @property
    def refused(self) -> int:
        """How many requests were refused."""
        return self._counts['refused']

    @property
    def unsigned(self) -> int:
        """How many requests without a signature were accepted."""
        return self._counts['unsigned']

    def admit(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        signature: object,
        reads: bool,
    ) -> collector_rpc.Caller:
        """Find out who calls.

        :param reads: the request changes nothing, so that a repeat would
            not be noticed otherwise.
        :raises errors.Unauthenticated: when it is not known who.
        :raises vsched_api.db.errors.DatabaseUnavailable: when it cannot be
            asked.
        """
        if signature is None and self._mode is signing.Mode.PERMISSIVE:
            self._count(
                'unsigned',
                levels.WARNING,
                'requests without a '
                'signature were accepted: [bus] authentication is '
                'permissive',
            )
            return collector_rpc.ANYBODY
        try:
            return self._admit(method, arguments, signature, reads)
        except errors.Unauthenticated as problem:
            self._count(
                'refused',
                levels.ERROR,
                'requests were refused, '
                'the last one (%s): %s' % (method, problem.detail),
            )
            raise

    def _admit(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        signature: object,
        reads: bool,
    ) -> collector_rpc.Caller:
        if signature is None:
            raise errors.Unauthenticated(
                'the request is not signed: the agent needs [bus] key_file'
            )
        request = signing.Envelope.from_dict(signature)
        key = self._key(method, arguments, request)
        self._check_serial(request)
        if reads:
            self._check_newest(request)
        return Caller(self, key, request)

    def _key(
        self,
        method: str,
        arguments: dict[str, ty.Any],
        request: signing.Envelope,
    ) -> signing_keys.HostKey:
        try:
            masters = self._masters.read()
        except signing.KeyFileError as problem:
            # Not the caller's business where it is, or why.
            LOG.error('%s', problem)
            raise errors.Unreachable(
                'the collector cannot read its master key'
            ) from None
        for master in masters:
            key = signing_keys.derive(master, request.host, request.serial)
            if signing.matches(
                request.mac,
                signing.mac(
                    key,
                    signing.Direction.REQUEST,
                    method,
                    request.at_us,
                    request.nonce,
                    request.epoch,
                    request.sequence,
                    arguments,
                ),
            ):
                return key
        raise errors.Unauthenticated(
            'the signature of %s, key %d, is wrong'
            % (ascii(request.host), request.serial)
        )

    def _check_serial(self, request: signing.Envelope) -> None:
        found = self._keys.of_host(request.host)
        if not self._accepts(found, request):
            # A key that was issued a moment ago is right.
            found = self._keys.newly_issued(request.host)
        if found is None or not self._accepts(found, request):
            raise errors.Unauthenticated(
                'key %d of %s is not accepted: it was replaced, revoked or '
                'never issued' % (request.serial, ascii(request.host))
            )
        if found.lowest < request.serial == found.newest:
            # The host has its new key: the one before is not needed.
            host_keys.confirm(self._database, request.host, request.serial)
            self._keys.forget(request.host)

    def _accepts(
        self, found: host_keys.Serials | None, request: signing.Envelope
    ) -> bool:
        return found is not None and found.accepts(
            request.serial, self._now(), self._overlap_s
        )

    def _check_newest(self, request: signing.Envelope) -> None:
        with self._lock:
            epoch, sequence = self._newest.get(request.host, ('', 0))
        if epoch != request.epoch:
            if (
                host_keys.epoch_of_host(self._database, request.host)
                != request.epoch
            ):
                raise errors.Unauthenticated(
                    'the request is not of the run of the agent that %s '
                    'reported from last' % ascii(request.host)
                )
            sequence = 0
        with self._lock:
            epoch, newest = self._newest.get(request.host, ('', 0))
            if epoch == request.epoch:
                sequence = newest
            if request.sequence <= sequence:
                raise errors.Unauthenticated(
                    'request %d of %s was made before'
                    % (request.sequence, ascii(request.host))
                )
            self._set_newest(request)

    def remember(self, request: signing.Envelope) -> None:
        """Take a request for the newest of its host, if it is."""
        with self._lock:
            epoch, sequence = self._newest.get(request.host, ('', 0))
            if epoch != request.epoch or sequence < request.sequence:
                self._set_newest(request)

    def _set_newest(self, request: signing.Envelope) -> None:
        self._newest[request.host] = request.epoch, request.sequence
        self._newest.move_to_end(request.host)
        while len(self._newest) > MAX_HOSTS:
            self._newest.popitem(last=False)

    def _count(self, what: str, level: int, text: str) -> None:
        with self._lock:
            self._counts[what] += 1
            at, count = self._logged.get(what, (-LOG_INTERVAL_S, 0))
            if self._clock() - at < LOG_INTERVAL_S:
                return
            new = self._counts[what] - count
            self._logged[what] = self._clock(), self._counts[what]
        LOG.log(level, 'bus: %d %s', new, text)
