# SPDX-License-Identifier: Apache-2.0

"""Signatures of the messages of agents and collectors.

A request and its reply have an HMAC-SHA256 over: protocol version, direction,
method, host, serial of the key, the sender's clock, nonce, epoch and sequence
number of the request, and the SHA-256 of the payload as canonical JSON. A
reply is signed with the request's nonce, so that it is valid for it only.

Clocks are transmitted, but no decision depends on them.
"""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import enum
import hashlib
import hmac
import json
import math
import os
import re
import secrets
import stat
import threading
import time
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.contract import signing_keys

VERSION = 1
#: Where a request's signature is in the context of an RPC, and a reply's
#: among its keys. Releases that do not sign ignore both.
FIELD = 'vsched_signature'
MAX_SEQUENCE = 2**53

_HEX = re.compile('[0-9a-f]+', re.ASCII)
_MAX_FILE_BYTES = 4096
_MAX_HOST_CHARS = 255


class Mode(enum.StrEnum):
    """What is required of the other side."""

    REQUIRED = 'required'
    PERMISSIVE = 'permissive'
    NONE = 'none'


class Direction(enum.StrEnum):
    """Which side signed."""

    REQUEST = 'request'
    REPLY = 'reply'


class KeyFileError(errors.VschedError):
    """A file of keys that cannot be used; the detail has the reason."""

    code = errors.Code.BUS_UNAUTHENTICATED


@dataclasses.dataclass(frozen=True, slots=True)
class Envelope:
    """The signature of a request, and what it covers.

    :param at_us: the sender's clock, microseconds since the epoch.
    :param epoch: names the run of the agent.
    :param sequence: numbers its requests upwards from 1.
    """

    host: str
    serial: int
    at_us: int
    nonce: str
    epoch: str
    sequence: int
    mac: str
    version: int = VERSION

    def to_dict(self) -> dict[str, ty.Any]:
        """Return the envelope as JSON types."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, raw: object) -> 'Envelope':
        """Read an envelope.

        :raises errors.Unauthenticated: naming what is wrong with it.
        """
        if not isinstance(raw, Mapping):
            raise errors.Unauthenticated('the signature is not an object')
        for name, highest in (
            ('version', VERSION),
            ('serial', signing_keys.MAX_SERIAL),
            ('at_us', 2**63 - 1),
            ('sequence', MAX_SEQUENCE),
        ):
            value = raw.get(name)
            if (
                not isinstance(value, int)
                or isinstance(value, bool)
                or (not 0 <= value <= highest)
            ):
                raise errors.Unauthenticated(
                    'the signature has no usable %s' % name
                )
        for name, chars in (('nonce', 32), ('epoch', 32), ('mac', 64)):
            value = raw.get(name)
            if (
                not isinstance(value, str)
                or len(value) != chars
                or (not _HEX.fullmatch(value))
            ):
                raise errors.Unauthenticated(
                    'the signature has no usable %s' % name
                )
        host = raw.get('host')
        if not isinstance(host, str) or not 0 < len(host) <= _MAX_HOST_CHARS:
            raise errors.Unauthenticated('the signature has no usable host')
        if raw['version'] != VERSION:
            raise errors.Unauthenticated(
                'signatures of version %d are not known here' % raw['version']
            )
        return cls(
            **{
                field.name: raw[field.name]
                for field in dataclasses.fields(cls)
            }
        )


def mac(
    key: signing_keys.HostKey,
    direction: Direction,
    method: str,
    at_us: int,
    nonce: str,
    epoch: str,
    sequence: int,
    payload: object,
) -> str:
    """Return the signature of a request or a reply.

    :param payload: the arguments, or the reply without its signature.
    :raises errors.Unauthenticated: when the payload is not JSON.
    """
    try:
        body = hashlib.sha256(_canonical(payload)).hexdigest()
        signed = _canonical(
            [
                'vsched-bus',
                VERSION,
                direction.value,
                method,
                key.host,
                key.serial,
                at_us,
                nonce,
                epoch,
                sequence,
                body,
            ]
        )
    except (TypeError, ValueError, RecursionError) as problem:
        raise errors.Unauthenticated(
            'the payload cannot be signed: %s' % problem
        ) from None
    return hmac.new(key.secret, signed, 'sha256').hexdigest()


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(',', ':'), ensure_ascii=True, allow_nan=False
)


def _canonical(value: object) -> bytes:
    return _ENCODER.encode(value).encode('ascii')


def matches(found: str, expected: str) -> bool:
    """Compare two signatures in constant time."""
    return hmac.compare_digest(found, expected)


def sign_reply(
    key: signing_keys.HostKey,
    request: Envelope,
    method: str,
    payload: Mapping[str, ty.Any],
) -> dict[str, ty.Any]:
    """Return the reply with its signature.

    :param request: the request that it answers.
    """
    at_us = time.time_ns() // 1000
    return {
        **payload,
        FIELD: {
            'version': VERSION,
            'serial': key.serial,
            'at_us': at_us,
            'mac': mac(
                key,
                Direction.REPLY,
                method,
                at_us,
                request.nonce,
                request.epoch,
                request.sequence,
                payload,
            ),
        },
    }


class Signer:
    """The agent's side: signs requests and checks replies.

    :param mode: what is required of replies.
    :param host: this host's name, which the key must be for.
    :param load_key: returns the current key; raises :class:`KeyFileError`.
    :param epoch: the name of this run.
    """

    def __init__(
        self,
        mode: Mode,
        host: str,
        load_key: Callable[[], signing_keys.HostKey | None],
        epoch: Callable[[], str],
    ) -> None:
        self._mode = mode
        self._host = host
        self._load_key = load_key
        self._epoch = epoch
        self._sequence = 0
        self._lock = threading.Lock()

    def sign(
        self, method: str, arguments: Mapping[str, ty.Any]
    ) -> tuple[signing_keys.HostKey, Envelope] | None:
        """Sign a request.

        :returns: None when there is no key and none is required.
        :raises errors.Unauthenticated: when a key is required and there is
            none.
        """
        if self._mode is Mode.NONE:
            return None
        try:
            key = self._load_key()
        except KeyFileError as problem:
            raise errors.Unauthenticated(problem.detail) from None
        if key is None:
            if self._mode is Mode.PERMISSIVE:
                return None
            raise errors.Unauthenticated(
                '[bus] key_file is not set: requests cannot be signed; ask '
                'for a key with "vsched-manage host-key issue %s"' % self._host
            )
        if key.host != self._host:
            raise errors.Unauthenticated(
                'the key in [bus] key_file is of host %s, this is %s'
                % (ascii(key.host), ascii(self._host))
            )
        with self._lock:
            self._sequence += 1
            sequence = self._sequence
        at_us, nonce = time.time_ns() // 1000, secrets.token_hex(16)
        epoch = self._epoch()
        return key, Envelope(
            key.host,
            key.serial,
            at_us,
            nonce,
            epoch,
            sequence,
            mac(
                key,
                Direction.REQUEST,
                method,
                at_us,
                nonce,
                epoch,
                sequence,
                arguments,
            ),
        )

    def check(
        self,
        method: str,
        signed: tuple[signing_keys.HostKey, Envelope] | None,
        reply: object,
    ) -> object:
        """Verify that a reply is the collector's, to this request.

        :param signed: the result of :meth:`sign` for the request.
        :returns: the reply without its signature.
        :raises errors.Unauthenticated: when it is not.
        """
        if not isinstance(reply, Mapping):
            return reply
        payload = {
            name: value for name, value in reply.items() if name != FIELD
        }
        found = reply.get(FIELD)
        if signed is None:
            return payload
        if found is None:
            if self._mode is Mode.PERMISSIVE:
                return payload
            raise errors.Unauthenticated(
                'the reply is not signed: the collector is of an earlier '
                'release, or somebody else answered'
            )
        key, request = signed
        if (
            not isinstance(found, Mapping)
            or not isinstance(found.get('at_us'), int)
            or not isinstance(found.get('mac'), str)
            or not matches(
                ascii(found['mac']),
                ascii(
                    mac(
                        key,
                        Direction.REPLY,
                        method,
                        found['at_us'],
                        request.nonce,
                        request.epoch,
                        request.sequence,
                        payload,
                    )
                ),
            )
        ):
            raise errors.Unauthenticated(
                'the reply has a wrong signature: somebody else answered'
            )
        return payload


class KeyFile:
    """A file of keys, read again when it changes. Safe from any thread.

    :param path: the file; only its owner may have access.
    :param parse: returns its content; raises ValueError.
    :param interval_s: how long its content is used before the file is looked
        at again, in seconds. Threads that look at it at the same time wait
        for each other, and for the interpreter lock in addition.
    :param clock: steady, in seconds.
    """

    def __init__(
        self,
        path: str,
        parse: Callable[[str], ty.Any],
        interval_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self._parse = parse
        self._interval_s = interval_s
        self._clock = clock
        self._lock = threading.Lock()
        #: Until when the value is used as it is.
        self._until_s = -math.inf
        self._seen: tuple[int, ...] = ()
        self._value: ty.Any = None

    def read(self) -> ty.Any:
        """Return the current content of the file.

        :raises KeyFileError: when it cannot be used.
        """
        now_s = self._clock()
        if now_s < self._until_s:
            return self._value
        with self._lock:
            try:
                found = os.stat(self._path)
                seen = (
                    found.st_ino,
                    found.st_mtime_ns,
                    found.st_size,
                    found.st_mode,
                )
                if seen != self._seen:
                    self._value = self._parse(self._text())
                    self._seen = seen
            except (OSError, ValueError) as problem:
                self._seen = ()
                raise KeyFileError('%s: %s' % (self._path, problem)) from None
            self._until_s = now_s + self._interval_s
            return self._value

    def _text(self) -> str:
        with open(self._path, 'rb') as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_IMODE(mode) & 0o077:
                raise ValueError(
                    'its mode is %04o: others than its owner have access; '
                    'chmod 0600 it' % stat.S_IMODE(mode)
                )
            return file.read(_MAX_FILE_BYTES).decode('ascii')
