# SPDX-License-Identifier: Apache-2.0

"""Answer schedulers' polls: all hosts, or those that changed.

The JSON of a host is built and stored when the host changes, which is seldom.
An answer concatenates these rows; it parses and computes nothing.
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
#: Shorter answers are not compressed.
_ZIP_FROM_BYTES = 1_000
#: For how long the cache of hosts is updated by changes before it is read in
#: full again, in seconds: a database may be restored from a backup while the
#: service runs.
_KEPT_S = 60.0
_CHUNK_CHANGED = 1_000
# The default confidence of certificates, for agents that report none.
_CONFIDENCE = 0.8
# Certificates of a host that was not measured.
_NONE = '[]'
_quoted = json.JSONEncoder().encode
# Numbers shrink to a quarter at any level; the lowest takes least time.
_ZIP_LEVEL = 1


def update(
    session: ty.Any,
    host: models.Host,
    version: int,
    measured: bool = False,
    added: bool = False,
) -> bool:
    """Update the stored JSON of a host, if it has changed.

    :param host: locked, after the counter of versions.
    :param version: for this host only.
    :param measured: whether it may have a new profile.
    :param added: whether the same transaction has added it.
    :returns: whether there was a change.
    """
    info = hosts.known_info(host)
    if info is None:
        return False
    confidence = _CONFIDENCE if info.policy is None else info.policy.confidence
    row = None if added else queries.of_host(session, host.id)
    values: dict[str, ty.Any] = {
        'name': host.name,
        'removed': False,
        'admitted_mcpu': info.admitted_mcpu,
        'facts': _text(snapshot.facts(info).to_dict()),
    }
    known = None if row is None else row.measured
    prices: str | None
    if added and not measured:
        prices, known = None, {_ERRORS: None, _IO: None}
        values.update(
            confidence=confidence, certificates=_NONE, measured=known
        )
    elif (
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
        # For example, the host runs the kernel again with which it was
        # measured.
        prices, _ = _prices(session, host.id)
    else:
        prices = row.prices_ns
    errors = known[_ERRORS]
    if errors is not None:
        # Facts that an earlier release stored lack the features.
        errors = {**certification.features(errors), **errors}
    values['certified'] = _true_of(errors, info)
    values['prices_ns'] = prices if _true_of(known[_IO], info) else None
    if row is None:
        session.add(
            models.SnapshotHost(host_id=host.id, version=version, **values)
        )
        if added:
            # Those of other hosts may share the statement.
            return True
    elif all(getattr(row, name) == value for name, value in values.items()):
        return False
    else:
        for name, value in values.items():
            setattr(row, name, value)
        row.version = version
    session.flush()
    return True


# The facts with which profiles were measured; see
# models.SnapshotHost.measured.
_ERRORS = 'errors'
_IO = 'io'

_Facts = dict[str, ty.Any]


def _true_of(facts: _Facts | None, info: messages.HostInfo) -> bool:
    """Return whether the measured facts are still those of the host."""
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
        return _NONE, None
    (row,) = rows
    points = profile_queries.points(session, [row.id])[row.id]
    try:
        profile = profiles.from_row(row, points)
    except wire.MalformedMessage as problem:
        LOG.error('Error profile %s cannot be read: %s', row.uuid, problem)
        return _NONE, None
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
    """Add hosts that are missing from the snapshot, and remove silent ones.

    :param conf: has the options of :mod:`vsched_api.conf.snapshot`.
    :returns: how many were added, and how many removed.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the database fails.
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
            "The schedulers' snapshot has %d more hosts, and %d silent "
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
    """An HTTP answer.

    :param tag: the ETag.
    :param zipped: ``body``, compressed; None when it is short.
    """

    tag: str
    body: bytes
    zipped: bytes | None


class Snapshots:
    """Answers schedulers' polls. Safe from any thread.

    The last full answer and the hosts in it are cached: after a restart many
    schedulers request the same answer, or one in which a few hosts have
    changed.
    """

    def __init__(self, database: db.Database, conf: cfg.ConfigOpts) -> None:
        self._database = database
        self._options = conf.snapshot
        self._down_after_s = conf.api.host_down_after_s
        self._full: Answer | None = None
        self._hosts: dict[str, str] = {}
        self._read_at, self._read_version = -math.inf, 0
        # The version of each host that was read last, and whether it is valid.
        self._readable: dict[str, tuple[int, bool]] = {}
        self._making = threading.Lock()

    def get(
        self,
        now: float,
        since: int | None = None,
        known_tag: str | None = None,
    ) -> Answer | None:
        """Return all hosts, or those that changed.

        :param since: the version that the scheduler has; None, or one that was
            never issued, for all hosts.
        :param known_tag: the ETag of the answer that the scheduler has.
        :returns: None when that answer is up to date.
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
                # Changes after the version was read are sent again with the
                # first incremental answer.
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
        """Update the cache of hosts to a version or a later one."""
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
                # Rows are in the order of their changes.
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
        # A deleted host that reports again has two rows; the later one
        # applies.
        entries = {
            row.name: row if not row.removed and self._can_read(row) else None
            for row in rows
        }
        return _answer(
            tag,
            [_host(row) for row in entries.values() if row is not None],
            {
                'version': version,
                'full': False,
                'more': more,
                **head,
                'removed': [
                    name for name, row in entries.items() if row is None
                ],
            },
        )

    def _can_read(self, row: queries.Row) -> bool:
        """Return whether the JSON of a host is valid; log an error if not."""
        known = self._readable.get(row.name)
        if known is None or known[0] != row.version:
            try:
                stored.read(row)
                known = row.version, True
            except wire.MalformedMessage as problem:
                LOG.error(
                    "Host %s is not in the schedulers' snapshot: what is "
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
