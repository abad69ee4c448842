# SPDX-License-Identifier: Apache-2.0

"""What schedulers are told of all hosts, and of what changed.

What is told of a host is put together when it changes, which is seldom, and
kept as the JSON that is sent: an answer is rows one after the other, and
nothing is read or computed for it.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import functools
import gzip
import hashlib
import json
import math
import threading
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import counters
from vsched_api.db.queries import hosts as host_queries
from vsched_api.db.queries import profiles as profile_queries
from vsched_api.db.queries import slowdowns as slowdown_queries
from vsched_api.db.queries import snapshot as queries
from vsched_api.db import session as db
from vsched_api.operations import hosts
from vsched_api.operations import profiles
from vsched_api.operations import stored
from vsched_lib.contract import certification
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.contract import snapshot
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

_CHUNK_HOSTS = 100
_SECONDS_PER_DAY = 86_400
#: Shorter answers are sent as they are.
_ZIP_FROM_BYTES = 1_000
#: For how long hosts that were read are brought up to date and not read
#: anew, in seconds: a database may be restored under a running service.
_KEPT_S = 60.0
_CHUNK_CHANGED = 1_000
# With which errors are certified where the agent does not tell.
_CONFIDENCE = 0.8
_quoted = json.JSONEncoder().encode
# Numbers shrink to a quarter at any level; the lowest takes least time.
_ZIP_LEVEL = 1


def update(
    session: ty.Any, host: models.Host, version: int, measured: bool = False
) -> bool:
    """Tell of a host what is known of it now, if that is something new.

    :param host: locked, with the counter of versions before it.
    :param version: for this host only.
    :param measured: it may have a new profile.
    :returns: whether there was something new.
    """
    info = hosts.known_info(host)
    if info is None:
        return False
    confidence = _CONFIDENCE if info.policy is None else info.policy.confidence
    row = queries.of_host(session, host.id)
    values: dict[str, ty.Any] = {
        'name': host.name,
        'removed': False,
        'admitted_mcpu': info.admitted_mcpu,
        'facts': _text(snapshot.facts(info).to_dict()),
    }
    known = None if row is None else row.measured
    if (
        measured
        or row is None
        or known is None
        or _ERRORS not in known
        or (row.confidence != confidence)
    ):
        certificates, errors = _certificates(session, host.id, confidence)
        prices, io = _prices(session, host.id)
        known = {_ERRORS: errors, _IO: io}
        values.update(
            confidence=confidence, certificates=certificates, measured=known
        )
    elif row.prices_ns is None and _true_of(known[_IO], info):
        # As when the host is back at the kernel that it was measured with.
        prices, _ = _prices(session, host.id)
    else:
        prices = row.prices_ns
    errors = known[_ERRORS]
    if errors is not None:
        # Those remembered before there were such features lack them.
        errors = {**certification.features(errors), **errors}
    values['certified'] = _true_of(errors, info)
    values['prices_ns'] = prices if _true_of(known[_IO], info) else None
    if row is None:
        session.add(
            models.SnapshotHost(host_id=host.id, version=version, **values)
        )
    elif all(getattr(row, name) == value for name, value in values.items()):
        return False
    else:
        for name, value in values.items():
            setattr(row, name, value)
        row.version = version
    session.flush()
    return True


# What profiles were measured with; see models.SnapshotHost.measured.
_ERRORS = 'errors'
_IO = 'io'

_Facts = dict[str, ty.Any]


def _true_of(facts: _Facts | None, info: messages.HostInfo) -> bool:
    """Whether a host is still the one that was measured."""
    return facts is not None and all(
        getattr(info, name) == value for name, value in facts.items()
    )


def _facts(row: ty.Any) -> _Facts:
    return {name: getattr(row, name) for name in certification.FACTS}


def _certificates(
    session: ty.Any, host_id: int, confidence: float
) -> tuple[str, _Facts | None]:
    rows = profile_queries.newest(
        session,
        models.ErrorProfile,
        host_id,
        contract.ProfileSource.BENCHMARK.value,
    )
    if not rows:
        return '[]', None
    (row,) = rows
    points = profile_queries.points(session, [row.id])[row.id]
    try:
        profile = profiles.from_row(row, points)
    except wire.MalformedMessage as problem:
        LOG.error('Error profile %s cannot be read: %s', row.uuid, problem)
        return '[]', None
    return _text(
        [one.to_dict() for one in snapshot.certify(profile, confidence)]
    ), {**_facts(row), **certification.features(row.features)}


def _prices(session: ty.Any, host_id: int) -> tuple[str | None, _Facts | None]:
    rows = profile_queries.newest(
        session,
        models.OverheadProfile,
        host_id,
        contract.ProfileSource.BENCHMARK.value,
    )
    if not rows or not rows[0].good:
        return None, None
    try:
        prices = [
            contract.OverheadPrice.from_dict(price) for price in rows[0].prices
        ]
    except wire.MalformedMessage as problem:
        LOG.error(
            'Overhead profile %s cannot be read: %s', rows[0].uuid, problem
        )
        return None, None
    return _text({price.term: price.cost_ns for price in prices}), _facts(
        rows[0]
    )


def _text(value: ty.Any) -> str:
    return json.dumps(value, separators=(',', ':'))


def tend(
    database: db.Database,
    conf: cfg.ConfigOpts,
    now: float,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[int, int]:
    """Tell of hosts that are missing, and no longer of silent ones.

    :param conf: has the options of :mod:`vsched_api.conf.snapshot`.
    :returns: how many were added, and how many removed.
    :raises vsched_api.db.errors.DatabaseUnavailable: when it can not go on.
    """
    options = conf.snapshot
    before = now - options.silent_days * _SECONDS_PER_DAY
    added = removed = last = 0
    while not stopped():
        found = database.read(
            functools.partial(
                queries.missing, after=before, beyond=last, limit=_CHUNK_HOSTS
            )
        )
        if not found:
            break
        last = found[-1][0]
        added += database.write(
            functools.partial(_add, names=[name for _, name in found], now=now)
        )
    while not stopped():
        count = database.write(lambda session: _remove(session, before, now))
        removed += count
        if count < _CHUNK_HOSTS:
            break
    if added or removed:
        LOG.info(
            'Schedulers are told of %d more hosts, and of %d silent '
            'ones no longer',
            added,
            removed,
        )
    return added, removed


def _add(session: ty.Any, names: Sequence[str], now: float) -> int:
    version = counters.next_snapshot_versions(session, now, len(names))
    count = 0
    for number, name in enumerate(names):
        host = host_queries.lock(session, name)
        count += host is not None and update(
            session, host, version - number, measured=True
        )
    return count


def _remove(session: ty.Any, before: float, now: float) -> int:
    version = counters.next_snapshot_versions(session, now, _CHUNK_HOSTS)
    rows = queries.silent(session, before, _CHUNK_HOSTS)
    for number, row in enumerate(rows):
        row.removed, row.version = True, version - number
    return len(rows)


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """Something to send.

    :param tag: changes with what is said.
    :param zipped: ``body`` for those who take gzip; None when it is short.
    """

    tag: str
    body: bytes
    zipped: bytes | None


class Snapshots:
    """Answers schedulers. Safe from any thread.

    The last full answer is kept, and what it was made of: after a restart of
    the schedulers many of them ask for the same one, or for one in which a
    few hosts have changed.
    """

    def __init__(self, database: db.Database, conf: cfg.ConfigOpts) -> None:
        self._database = database
        self._options = conf.snapshot
        self._down_after_s = conf.api.host_down_after_s
        self._full: Answer | None = None
        self._hosts: dict[str, str] = {}
        self._read_at, self._read_version = -math.inf, 0
        # The version of each host that was read last, and whether it could.
        self._readable: dict[str, tuple[int, bool]] = {}
        self._making = threading.Lock()

    def get(
        self,
        now: float,
        since: int | None = None,
        known_tag: str | None = None,
    ) -> Answer | None:
        """All hosts, or what changed.

        :param since: the version that is there; None, or one that was never
            handed out, for all hosts.
        :param known_tag: of the answer that is there.
        :returns: None when that is as new as this one would be.
        """
        version, down, slowdowns = self._database.read(
            lambda session: (
                queries.newest_version(session),
                queries.down(session, now - self._down_after_s),
                slowdown_queries.every(session),
            )
        )
        if since is not None and since > version:
            since = None
        head = {
            'down': list(down),
            'slowdowns': [
                {
                    'victim': victim,
                    'neighbour': neighbour,
                    'slowdown': round(one.slowdown, 3),
                    'samples': round(one.samples),
                }
                for (victim, neighbour), one in slowdowns.items()
            ],
        }
        tag = '%d-%s' % (
            version,
            hashlib.sha256(_text(head).encode('ascii')).hexdigest()[:16],
        )
        if tag == known_tag and (since is None or since == version):
            return None
        if since is None:
            return self._all(version, tag, head, now)
        return self._changes(version, since, tag, head)

    def _all(
        self, version: int, tag: str, head: dict[str, ty.Any], now: float
    ) -> Answer:
        with self._making:
            if self._full is None or self._full.tag != tag:
                # What changed after the version was read is sent again
                # with the first changes: no harm.
                self._read(version, now)
                self._full = _answer(
                    tag,
                    self._hosts.values(),
                    {
                        'version': version,
                        'full': True,
                        'more': False,
                        **head,
                        'removed': [],
                    },
                )
            return self._full

    def _read(self, version: int, now: float) -> None:
        """Have all hosts as they are sent, as of a version or later."""
        if version < self._read_version or not (
            0 <= now - self._read_at < _KEPT_S
        ):
            rows = self._database.read(queries.present)
            self._hosts = {
                row.name: _host(row) for row in rows if self._can_read(row)
            }
            self._read_at, self._read_version = now, version
        while self._read_version < version:
            rows = self._database.read(
                lambda session: queries.changed(
                    session, self._read_version, _CHUNK_CHANGED
                )
            )
            for row in rows:
                # In the order of their changes, as they are read.
                self._hosts.pop(row.name, None)
                if not row.removed and self._can_read(row):
                    self._hosts[row.name] = _host(row)
            if len(rows) < _CHUNK_CHANGED:
                self._read_version = version
            if rows:
                self._read_version = max(self._read_version, rows[-1].version)

    def _changes(
        self, version: int, since: int, tag: str, head: dict[str, ty.Any]
    ) -> Answer:
        most = self._options.delta_hosts
        rows = self._database.read(
            lambda session: queries.changed(session, since, most + 1)
        )
        more = len(rows) > most
        rows = rows[:most]
        if rows and (more or rows[-1].version > version):
            version = rows[-1].version
        # A host that was deleted and reports again is in two rows, the one
        # that holds now is the later one.
        told = {
            row.name: row if not row.removed and self._can_read(row) else None
            for row in rows
        }
        return _answer(
            tag,
            [_host(row) for row in told.values() if row is not None],
            {
                'version': version,
                'full': False,
                'more': more,
                **head,
                'removed': [name for name, row in told.items() if row is None],
            },
        )

    def _can_read(self, row: queries.Row) -> bool:
        """Whether schedulers can read a host; one must not spoil them all."""
        known = self._readable.get(row.name)
        if known is None or known[0] != row.version:
            try:
                stored.read(row)
                known = row.version, True
            except wire.MalformedMessage as problem:
                LOG.error(
                    'Schedulers are not told of host %s: what is '
                    'stored of it cannot be read: %s',
                    row.name,
                    problem,
                )
                known = row.version, False
            self._readable[row.name] = known
        return known[1]


def _answer(tag: str, hosts: Iterable[str], head: dict[str, ty.Any]) -> Answer:
    body = b'%s,"hosts":[%s]}' % (
        _text(head)[:-1].encode('ascii'),
        ','.join(hosts).encode('ascii'),
    )
    return Answer(
        tag,
        body,
        gzip.compress(body, _ZIP_LEVEL, mtime=0)
        if len(body) >= _ZIP_FROM_BYTES
        else None,
    )


def _host(row: queries.Row) -> str:
    return (
        '{"name":%s,"version":%d,"admitted_mcpu":%d,"facts":%s,'
        '"certificates":%s,"prices_ns":%s}'
        % (
            _quoted(row.name),
            row.version,
            row.admitted_mcpu,
            row.facts,
            row.certificates if row.certified else '[]',
            row.prices_ns or 'null',
        )
    )
