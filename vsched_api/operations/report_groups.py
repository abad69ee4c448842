# SPDX-License-Identifier: Apache-2.0

"""Store reports with more than samples, those of several hosts together.

Such a report takes the counters, which each transaction holds until its end,
so that the reports of all hosts wait for one another. Each statement is a
round trip to the database: what the hosts of one transaction have in common
is stored by one statement for all of them.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import itertools
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import balloon_changes
from vsched_api.db.queries import balloons
from vsched_api.db.queries import counters
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import overrides
from vsched_api.db.queries import profiles
from vsched_api.operations import clocks
from vsched_api.operations import gathering
from vsched_api.operations import inspection
from vsched_api.operations import jobs
from vsched_api.operations import notices
from vsched_api.operations import numbering
from vsched_api.operations import plausibility
from vsched_api.operations import reported_instances
from vsched_api.operations import shared_rows
from vsched_api.operations import snapshot
from vsched_api.operations import verifications
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages

_TWO_JOURNALS = (
    'a report came from a journal that another one had followed: either a '
    'journal was restored from a copy, or two agents report as this host'
)

#: How many batches one transaction stores at most. It holds the counters,
#: which whoever sets an override waits for.
MAX_BATCHES = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What reports are held against.

    :param skew_warning_s: the clock difference from which on an event is
        stored.
    :param max_cpus: the maximum number of CPUs of a host.
    """

    skew_warning_s: float = clocks.WARN_S
    max_cpus: int = plausibility.MAX_CPUS


DEFAULT_LIMITS = Limits()


@dataclasses.dataclass(slots=True)
class _Numbers:
    """What a transaction has taken of the counters, and holds.

    :param generation: of overrides.
    :param version: of the snapshot, for the next host that needs one.
    """

    generation: int = 0
    version: int = 0

    @classmethod
    def take(
        cls, session: ty.Any, entries: Sequence[gathering.Entry]
    ) -> '_Numbers':
        """Take what these batches need."""
        numbers = cls()
        if any(one.batch.instances is not None for one in entries):
            numbers.generation = counters.next_override_generation(session)
        versions = sum(_needs_version(one.batch) for one in entries)
        if versions:
            numbers.version = counters.next_snapshot_versions(
                session, max(one.now for one in entries), versions
            )
        return numbers

    def next_version(self) -> int:
        """Return a version for one host."""
        self.version -= 1
        return self.version + 1


@dataclasses.dataclass(slots=True)
class _Report:
    """A batch that is being stored.

    :param host: locked, or to be added.
    :param added: whether this transaction adds the host.
    """

    batch: inspection.Batch
    now: float
    host: models.Host
    added: bool
    place: numbering.Place

    @property
    def reported_at(self) -> float:
        """Return the time of the batch; never later than it came.

        The list of an agent whose clock is ahead must not override later
        lists of other hosts.
        """
        return min(self.batch.at, self.now)

    @property
    def needs_rows(self) -> bool:
        """Return whether it needs the rows of the host's instances."""
        batch = self.batch
        return bool(
            batch.reservations or batch.balloons or batch.all_balloons
        ) or (batch.instances is not None and not self.added)


def store_many(
    session: ty.Any, entries: Sequence[gathering.Entry], limits: Limits
) -> list[collector_replies.ReportReply | None]:
    """Store batches in one transaction.

    :param entries: each of another host.
    :returns: None for each whose host is busy.
    """
    numbers = _Numbers.take(session, entries)
    names = {one.batch.host for one in entries}
    free = hosts.lock_those_free(session, names)
    busy = hosts.existing(session, names - free.keys())
    replies = iter(
        _store(
            session,
            [one for one in entries if one.batch.host not in busy],
            free,
            limits,
            numbers,
        )
    )
    return [
        None if one.batch.host in busy else next(replies) for one in entries
    ]


def store_one(
    session: ty.Any, batch: inspection.Batch, now: float, limits: Limits
) -> collector_replies.ReportReply:
    """Store a batch; waits for the host's row."""
    entry = gathering.Entry(batch, now)
    numbers = _Numbers.take(session, [entry])
    host = hosts.lock(session, batch.host)
    known = {} if host is None else {batch.host: host}
    (reply,) = _store(session, [entry], known, limits, numbers)
    return reply


def place(
    host: models.Host,
    epoch: str | None,
    number: int,
    after: int | None,
    shared: shared_rows.SharedRows,
    now: float,
) -> numbering.Place:
    """Return a batch's place, and update the host's row if it is stored."""
    found = numbering.of(host, host.replaced_epochs, epoch, number, after)
    if found.new:
        numbering.advance(host, epoch, number, found)
    elif found.state is collector_replies.EpochState.REPLACED:
        shared.notify(
            notices.Notice(
                host,
                now,
                errors.Code.JOURNAL_REPLACED,
                messages.Severity.WARNING,
                _TWO_JOURNALS,
                {'batch': number, 'epoch': epoch},
            )
        )
    return found


def _needs_version(batch: inspection.Batch) -> bool:
    return batch.info is not None or bool(
        batch.profiles or batch.overhead_profiles
    )


def _store(
    session: ty.Any,
    entries: Sequence[gathering.Entry],
    known: dict[str, models.Host],
    limits: Limits,
    numbers: _Numbers,
) -> list[collector_replies.ReportReply]:
    """Store batches.

    :param entries: each of another host.
    :param known: rows of hosts by name, locked; hosts without one are new.
    """
    shared = shared_rows.SharedRows()
    reports = [
        _begin(session, entry, known.get(entry.batch.host), limits, shared)
        for entry in entries
    ]
    current = [one for one in reports if one.place.new]
    _list_first(
        session, [one for one in reports if one.added], numbers.generation
    )
    for one in current:
        _put_instances(session, one, numbers.generation)
        shared.add(one.host.id, one.place.number, one.batch)
    shared.store(session)
    for one in current:
        _put_rest(session, one, numbers)
    return [
        numbering.reply(
            one.host,
            one.batch.epoch,
            one.place,
            full=one.batch.info is not None
            and one.batch.instances is not None,
        )
        for one in reports
    ]


def _begin(
    session: ty.Any,
    entry: gathering.Entry,
    known: models.Host | None,
    limits: Limits,
    shared: shared_rows.SharedRows,
) -> _Report:
    """Update the columns of the host's row.

    :param known: the host, locked; None when it is new. No row refers to a
        new host, and none is looked for.
    """
    batch, now = entry.batch, entry.now
    host = known or hosts.new(batch.host)
    report = _Report(
        batch,
        now,
        host,
        known is None,
        place(host, batch.epoch, batch.number, batch.after, shared, now),
    )
    if not report.place.new:
        return report
    if report.place.anew:
        shared.notify(
            notices.Notice(
                host,
                now,
                errors.Code.JOURNAL_NEW,
                messages.Severity.INFO,
                'the agent numbers its reports anew, '
                'from %d: its journal is new or was restored' % batch.number,
                {'batch': batch.number, 'epoch': batch.epoch},
            )
        )
    if batch.skew_s is not None and clocks.worth_an_event(
        host.clock_skew_s, batch.skew_s, limits.skew_warning_s
    ):
        wrong = abs(batch.skew_s) > limits.skew_warning_s
        shared.notify(
            notices.Notice(
                host,
                now,
                errors.Code.CLOCK_SKEWED if wrong else errors.Code.CLOCK_RIGHT,
                messages.Severity.WARNING if wrong else messages.Severity.INFO,
                clocks.describe(batch.skew_s),
                {
                    'clock_skew_s': round(batch.skew_s, 3),
                    'clock_skew_warning_s': limits.skew_warning_s,
                },
            )
        )
    host.clock_skew_s = batch.skew_s
    host.reported_at = batch.at
    host.received_at = now
    if batch.instances is not None:
        host.listed_at = now
    if batch.info is not None:
        info, problems = plausibility.bound(batch.info, limits.max_cpus)
        host.info = (
            info
            if known is None
            else verifications.bound(session, host.id, info, now)
        )
        if problems:
            shared.notify(
                notices.Notice(
                    host,
                    now,
                    errors.Code.HOST_IMPLAUSIBLE,
                    messages.Severity.WARNING,
                    'the agent reports implausible figures: '
                    + '; '.join(problems),
                    {
                        name: batch.info[name]
                        for name in ('cpus', 'capacity_mcpu', 'admitted_mcpu')
                    },
                )
            )
    return report


def _list_first(
    session: ty.Any, reports: Sequence[_Report], generation: int
) -> None:
    """Add new hosts, and the instances that they list.

    :param reports: of hosts that this transaction adds; also those whose
        batch is not stored.
    """
    lists = [
        (one, one.batch.instances)
        for one in reports
        if one.place.new and one.batch.instances is not None
    ]
    if _orders_exist(session, itertools.chain(*(uuids for _, uuids in lists))):
        for one, uuids in lists:
            if _orders_exist(session, uuids):
                one.host.overrides_generation = generation
    # All columns are set by now: each row is written once.
    hosts.add_all(session, [one.host for one in reports])
    instances.add(
        session,
        [
            row
            for one, listed in lists
            for row in reported_instances.first_list(
                one.host, listed, one.reported_at
            )
        ],
    )


def _orders_exist(session: ty.Any, instance_uuids: Iterable[str]) -> bool:
    """Return whether operators have set something for these instances."""
    wanted = sorted(instance_uuids)
    return any(
        overrides.exist(session, some) or balloons.orders_exist(session, some)
        for some in (
            wanted[first : first + instances.CHUNK]
            for first in range(0, len(wanted), instances.CHUNK)
        )
    )


def _put_instances(session: ty.Any, report: _Report, generation: int) -> None:
    """Store what a host reported of its instances.

    Most batches carry only samples and need none of these rows.
    """
    if not report.needs_rows:
        return
    batch, host = report.batch, report.host
    rows = instances.of_host(session, host.id)
    if batch.instances is not None and not report.added:
        moved = reported_instances.update_list(
            session, host, rows, batch.instances, report.reported_at
        )
        if _orders_exist(session, moved):
            host.overrides_generation = generation
    reported_instances.put_reservations(
        session, host, rows, batch.reservations, report.reported_at
    )
    reported_instances.put_balloons(session, host, rows, batch)


def _put_rest(session: ty.Any, report: _Report, numbers: _Numbers) -> None:
    batch, host = report.batch, report.host
    balloon_changes.put(session, host.id, batch.balloon_changes, report.now)
    jobs.record(session, host.id, batch.jobs, report.now)
    profiles.add(session, models.ErrorProfile, host.id, batch.profiles)
    profiles.add(
        session, models.OverheadProfile, host.id, batch.overhead_profiles
    )
    if _needs_version(batch):
        snapshot.update(
            session,
            host,
            numbers.next_version(),
            measured=bool(batch.profiles or batch.overhead_profiles),
            added=report.added,
        )
