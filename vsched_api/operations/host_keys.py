# SPDX-License-Identifier: Apache-2.0

"""Issue, rotate and revoke the keys of hosts on the message bus.

The database holds serial numbers only. A key is derived from the master key,
the host's name and a serial when it is needed
(:mod:`vsched_lib.contract.signing_keys`).
"""

import dataclasses
import re
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import host_keys as queries
from vsched_api.db.queries import hosts
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import bounds
from vsched_lib.contract import errors as contract_errors


@dataclasses.dataclass(frozen=True, slots=True)
class Serials:
    """The keys of one host.

    :param newest: the serial of the key that was issued last.
    :param lowest: the lowest serial that is accepted; above ``newest`` when
        none is.
    :param rotated_at: when the newest was issued, in seconds since the
        epoch.
    """

    host: str
    newest: int
    lowest: int
    rotated_at: float

    @property
    def revoked(self) -> bool:
        """Return whether no key is accepted."""
        return self.lowest > self.newest

    def accepts(self, serial: int, now: float, overlap_s: float) -> bool:
        """Return whether a key is accepted at a time.

        :param overlap_s: for how long the key before the newest is accepted.
        """
        if not self.lowest <= serial <= self.newest:
            return False
        return serial == self.newest or now - self.rotated_at < overlap_s


def of_host(database: db.Database, host: str) -> Serials | None:
    """Return the keys of a host; None when none was ever issued."""
    return database.read(
        lambda session: _serials(queries.by_host(session, host))
    )


def every(database: db.Database) -> list[Serials]:
    """Return the keys of all hosts, in the order of their names."""
    return [Serials(*row) for row in database.read(queries.every)]


def epoch_of_host(database: db.Database, host: str) -> str | None:
    """Return the epoch (run of the agent) of the host's newest report."""

    def work(session: ty.Any) -> str | None:
        row = hosts.by_name(session, host)
        return None if row is None else row.epoch

    return database.read(work)


def issue(database: db.Database, host: str, now: float) -> int:
    """Issue a key for a host, the same each time until it is revoked.

    :param now: seconds since the epoch.
    :returns: its serial.
    :raises errors.Invalid: when the name is invalid.
    """
    name = _checked(host)

    def work(session: ty.Any) -> int:
        row = queries.lock(session, name)
        if row is None:
            queries.add(session, name, now)
            return 1
        if row.lowest_serial > row.serial:
            row.serial, row.rotated_at = row.lowest_serial, now
        return row.serial

    return database.write(work)


def rotate(database: db.Database, host: str, now: float) -> int:
    """Issue a new key for a host; the previous one stays valid for a while.

    :returns: the serial of the new one.
    :raises errors.NotFound: when none was issued, or all are revoked.
    """

    def work(session: ty.Any) -> int:
        row = queries.lock(session, host)
        if row is None or row.lowest_serial > row.serial:
            raise _no_key(host)
        # Two keys at most are accepted: the host has one of them.
        row.lowest_serial = row.serial
        row.serial, row.rotated_at = row.serial + 1, now
        return row.serial

    return database.write(work)


def revoke(database: db.Database, host: str) -> int:
    """Revoke all keys of a host.

    :returns: the serial of the newest one that was accepted.
    :raises errors.NotFound: when there is none.
    """

    def work(session: ty.Any) -> int:
        row = queries.lock(session, host)
        if row is None or row.lowest_serial > row.serial:
            raise _no_key(host)
        row.lowest_serial = row.serial + 1
        return row.serial

    return database.write(work)


def confirm(database: db.Database, host: str, serial: int) -> None:
    """Revoke older keys once the host has used the newest one."""

    def work(session: ty.Any) -> None:
        row = queries.lock(session, host)
        if row is not None and row.lowest_serial < serial == row.serial:
            row.lowest_serial = serial

    database.write(work)


def _serials(row: models.HostKey | None) -> Serials | None:
    return (
        None
        if row is None
        else Serials(row.host, row.serial, row.lowest_serial, row.rotated_at)
    )


def _checked(host: str) -> str:
    if not re.fullmatch(bounds.HOST_NAME_PATTERN, host):
        raise errors.Invalid(
            'host: %s is not 1 to 255 printable characters without leading '
            'or trailing blanks' % ascii(host[:64])
        )
    return host


def _no_key(host: str) -> errors.NotFound:
    return errors.NotFound(
        'no key of %s is accepted: issue one' % host,
        contract_errors.Code.HOST_KEY_NOT_FOUND,
    )
