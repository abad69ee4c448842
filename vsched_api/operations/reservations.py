# SPDX-License-Identifier: Apache-2.0

"""Reservations: what is wanted, what is enforced, and changing the former.

A change is stored with a generation of its own, for which every host that
lists the instance is marked, in one transaction; the agent hears of it by a
cast and, should that get lost, from the reply to its next report. Until a
report answers that generation the reservation is pending.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
from decimal import Decimal
import typing as ty

from oslo_log import log as logging

from vsched_api.db.queries import counters
from vsched_api.db.queries import overrides
from vsched_api.db.queries import reservations as queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import authors
from vsched_api.operations import errors
from vsched_api.operations import expressibility
from vsched_api.operations import hosts
from vsched_api.operations import instances
from vsched_api.operations import overrides as orders
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import reservation as model

LOG = logging.getLogger(__name__)

Code = contract_errors.Code

#: What a new reservation means by a field that it does not name; the same
#: as the defaults of the extra specs.
DEFAULTS: Mapping[str, ty.Any] = {
    'period_us': 20_000,
    'mode': model.Mode.CAPPED.value,
    'backend': None,
}

#: The fields of a reservation itself.
PROMISE = ('runtime_us', 'period_us', 'mode', 'backend')


@dataclasses.dataclass(frozen=True, slots=True)
class Reservation:
    """One instance's reservation.

    ``runtime_us``, ``period_us``, ``mode``, ``backend`` are what is wanted,
    ``enforced_*`` what the kernel was last seen to hold.

    :param present: whether a host lists the instance now.
    :param generation: of the override; 0 without one.
    :param since: when the state was entered.
    :param code: why it is not held as written.
    :param specs: what else the override sets, as text by key of
        ``extra_specs.OVERRIDABLE``.
    :param author: who set the override; None without one.
    :param created_at: when the first override was set; so is updated_at for
        the last.
    """

    instance_uuid: str
    instance_name: str
    host: str
    present: bool
    vcpus: int
    source: str
    state: str
    generation: int
    since: float | None = None
    runtime_us: int | None = None
    period_us: int | None = None
    mode: str | None = None
    backend: str | None = None
    enforced_backend: str | None = None
    enforced_runtime_us: int | None = None
    enforced_period_us: int | None = None
    attested_at: float | None = None
    code: str | None = None
    detail: str | None = None
    figures: Mapping[str, ty.Any] = dataclasses.field(default_factory=dict)
    io: Mapping[str, ty.Any] | None = None
    specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    author: authors.Author | None = None
    created_at: float | None = None
    updated_at: float | None = None

    @property
    def bandwidth_mcpu(self) -> int | None:
        """What is wanted in total, in milli-CPU."""
        return _bandwidth_mcpu(self.runtime_us, self.period_us, self.vcpus)

    @property
    def enforced_bandwidth_mcpu(self) -> int | None:
        """What is enforced in total, in milli-CPU."""
        return _bandwidth_mcpu(
            self.enforced_runtime_us, self.enforced_period_us, self.vcpus
        )


def page(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    host: str | None = None,
    instance_uuid: str | None = None,
    states: Collection[str] = (),
    sources: Collection[str] = (),
    backend: str | None = None,
) -> list[Reservation]:
    """Reservations in the order of their instances' UUIDs."""
    return database.read(
        lambda session: [
            _view(row)
            for row in queries.page(
                session,
                limit,
                marker,
                host,
                instance_uuid,
                states,
                sources,
                backend,
            )
        ]
    )


def get(database: db.Database, instance_uuid: str) -> Reservation:
    """One instance's reservation.

    :raises errors.NotFound: when it carries none, or is not known.
    """

    def work(session: ty.Any) -> Reservation:
        row = _known(session, instance_uuid)
        if row.report is None and row.override is None:
            raise _none(instance_uuid)
        return _view(row)

    return database.read(work)


def create(
    database: db.Database,
    announcer: announcements.Announcer,
    instance_uuid: str,
    fields: Mapping[str, ty.Any],
    now: float,
    author: authors.Author = authors.NOBODY,
) -> Reservation:
    """Give a reservation to an instance that carries none.

    :param fields: ``runtime_us`` and any other of what is wanted.
    :raises errors.NotFound: when no agent reported the instance.
    :raises errors.Conflict: when it carries one, or its host can not.
    :raises errors.Invalid: when no host or not this one can express it.
    """

    def wanted(row: queries.Row) -> Mapping[str, ty.Any]:
        if _wanted(row) is not None or _withdrawn(row):
            raise errors.Conflict(
                'instance %s carries a reservation; change that one'
                % instance_uuid,
                Code.RESERVATION_EXISTS,
            )
        return {**DEFAULTS, **fields}

    return _set(database, announcer, instance_uuid, wanted, now, author)


def change(
    database: db.Database,
    announcer: announcements.Announcer,
    instance_uuid: str,
    fields: Mapping[str, ty.Any],
    now: float,
    author: authors.Author = authors.NOBODY,
    expected: int | None = None,
) -> Reservation:
    """Change what an instance is promised, while it runs.

    :param fields: what changes; the rest stays as it is wanted now. None for
        one of ``extra_specs.OVERRIDABLE`` leaves it to the flavor again.
    :param expected: the generation that the change is based on; None to
        change whatever is there.
    :raises errors.Outdated: when there is another generation.
    :raises errors.NotFound: when it carries none, or is not known.
    :raises errors.Conflict: when its host can not, or when what is wanted
        now is not known.
    :raises errors.Invalid: when no host or not this one can express it.
    """

    def wanted(row: queries.Row) -> Mapping[str, ty.Any]:
        base = _wanted(row)
        if base is not None:
            return {**base, **fields}
        if not _withdrawn(row):
            raise _none(instance_uuid)
        if {'runtime_us', 'period_us', 'mode'} <= set(fields):
            return {**DEFAULTS, **fields}
        raise errors.Conflict(
            'the override of instance %s was just removed and its agent '
            'has not said yet what the flavor wants: give runtime_us, '
            'period_us and mode, or try again' % instance_uuid,
            Code.RESERVATION_CHANGING,
        )

    return _set(
        database, announcer, instance_uuid, wanted, now, author, expected
    )


def withdraw(
    database: db.Database,
    announcer: announcements.Announcer,
    instance_uuid: str,
    now: float,
    author: authors.Author = authors.NOBODY,
    expected: int | None = None,
) -> Reservation | None:
    """Remove an override: what the flavor says holds again, or nothing.

    :param expected: the generation of the override that is meant; None for
        whichever there is.
    :raises errors.Outdated: when there is another generation.
    :returns: the reservation as it stands, None when nothing is left.
    :raises errors.NotFound: when there is no override, or no instance.
    """

    def work(session: ty.Any) -> tuple[queries.Row, list[str], int]:
        generation = counters.next_override_generation(session)
        row = _known(session, instance_uuid)
        _expect(row, expected)
        if not overrides.delete(session, instance_uuid):
            raise errors.NotFound(
                'instance %s has no override' % instance_uuid,
                Code.OVERRIDE_NOT_FOUND,
            )
        authors.tell(
            session,
            row.host.id,
            instance_uuid,
            Code.OVERRIDE_REMOVED,
            'instance %s: the override is removed' % instance_uuid,
            author,
            generation,
            now,
        )
        names = orders.mark_hosts(session, instance_uuid, generation)
        session.expire_all()
        return _known(session, instance_uuid), names, generation

    row, names, generation = database.write(work)
    LOG.info(
        'Instance %s: the override is removed, generation %d',
        instance_uuid,
        generation,
    )
    announcer.overrides_changed(names, generation)
    return None if row.report is None else _view(row)


def _set(
    database: db.Database,
    announcer: announcements.Announcer,
    instance_uuid: str,
    wanted: ty.Callable[[queries.Row], Mapping[str, ty.Any]],
    now: float,
    author: authors.Author,
    expected: int | None = None,
) -> Reservation:
    def work(session: ty.Any) -> tuple[queries.Row, list[str], int]:
        generation = counters.next_override_generation(session)
        row = _known(session, instance_uuid)
        _expect(row, expected)
        fields = wanted(row)
        if not row.instance.present:
            raise errors.Conflict(
                'no host lists instance %s: it is stopped or deleted; change '
                'it while it runs' % instance_uuid,
                Code.INSTANCE_ABSENT,
            )
        promise = promise_of({name: fields[name] for name in PROMISE})
        specs = specs_of(
            fields,
            None if row.override is None else row.override.specs,
            row.instance.vcpus,
        )
        expressibility.check(
            promise, row.host.name, hosts.known_info(row.host)
        )
        overrides.put(
            session,
            instance_uuid,
            {
                'generation': generation,
                'runtime_us': promise.runtime_us,
                'period_us': promise.period_us,
                'mode': promise.mode.value,
                'backend': promise.backend and promise.backend.value,
                'specs': specs or None,
                **authors.columns(author),
            },
            now,
        )
        authors.tell(
            session,
            row.host.id,
            instance_uuid,
            Code.OVERRIDE_SET,
            'instance %s: %d us every %d us, %s, is wanted%s'
            % (
                instance_uuid,
                promise.runtime_us,
                promise.period_us,
                promise.mode,
                ''.join(', %s %s' % pair for pair in sorted(specs.items())),
            ),
            author,
            generation,
            now,
        )
        names = orders.mark_hosts(session, instance_uuid, generation)
        session.expire_all()
        return _known(session, instance_uuid), names, generation

    row, names, generation = database.write(work)
    view = _view(row)
    LOG.info(
        'Instance %s: %d us in %d us, %s, wanted with generation %d',
        instance_uuid,
        view.runtime_us,
        view.period_us,
        view.mode,
        generation,
    )
    announcer.overrides_changed(names, generation)
    return view


def _expect(row: queries.Row, expected: int | None) -> None:
    authors.expect(
        row.override.generation if row.override is not None else 0,
        expected,
        'the override of instance %s' % row.instance.uuid,
    )


def specs_of(
    fields: Mapping[str, ty.Any], before: Mapping[str, str] | None, vcpus: int
) -> dict[str, str]:
    """What an override sets besides the reservation, as text by key.

    :param fields: what a request says; None leaves a key to the flavor.
    :param before: what the override set until now.
    :raises errors.Invalid: when a value is not accepted, or contradicts
        another one.
    """
    found = dict(before or {})
    for key in extra_specs.OVERRIDABLE:
        if key not in fields:
            continue
        value = fields[key]
        if value is None:
            found.pop(key, None)
            continue
        text = (
            value
            if isinstance(value, str)
            else format(Decimal(str(value)), 'f')
        )
        try:
            extra_specs.TABLE[key].parse(text)
        except ValueError as problem:
            raise errors.Invalid('%s: %s' % (key, problem)) from None
        found[key] = text
    if 'min_vcpus' in found:
        if found.get('balloon') == extra_specs.Balloon.OFF:
            raise errors.Invalid(
                'min_vcpus: conflicts with balloon off; give null for one'
            )
        if int(found['min_vcpus']) > vcpus:
            raise errors.Invalid(
                'min_vcpus: the instance has %d vCPUs' % vcpus
            )
    return found


def promise_of(fields: Mapping[str, ty.Any]) -> model.Reservation:
    """The reservation that the fields of :data:`PROMISE` say.

    :raises errors.Invalid: when no host could hold it.
    """
    try:
        return model.Reservation(**fields)
    except model.InvalidReservation as problem:
        raise errors.Invalid(str(problem), Code.RESERVATION_INVALID) from None


def _known(session: ty.Any, instance_uuid: str) -> queries.Row:
    row = queries.of_instance(session, instance_uuid)
    if row is None:
        raise instances.unknown(instance_uuid)
    return row


def _none(instance_uuid: str) -> errors.NotFound:
    return errors.NotFound(
        'instance %s carries no reservation' % instance_uuid,
        Code.RESERVATION_NOT_FOUND,
    )


def _withdrawn(row: queries.Row) -> bool:
    """Whether an override was removed and the agent has yet to say so."""
    return (
        row.override is None
        and row.report is not None
        and row.instance.present
        and row.report.source == messages.Source.OVERRIDE
    )


def _wanted(row: queries.Row) -> dict[str, ty.Any] | None:
    """What is wanted now, None when that is nothing or not known."""
    source: ty.Any = row.override
    if source is None and row.report is not None:
        if row.report.source == messages.Source.METADATA:
            source = row.report
    if source is None or source.runtime_us is None:
        return None
    return {name: getattr(source, name) for name in PROMISE}


def _bandwidth_mcpu(
    runtime_us: int | None, period_us: int | None, vcpus: int
) -> int | None:
    if runtime_us is None or period_us is None:
        return None
    try:
        return model.Reservation(runtime_us, period_us).bandwidth_mcpu(vcpus)
    except model.InvalidReservation:
        # An agent may report what was asked for and could not be.
        return None


def _view(row: queries.Row) -> Reservation:
    report, override = row.report, row.override
    pending = row.state == messages.State.PENDING
    wanted: ty.Any = override if override is not None else report
    seen: dict[str, ty.Any] = {}
    if report is not None:
        seen = {
            'since': report.since,
            'attested_at': report.attested_at,
            'enforced_backend': report.enforced_backend,
            'enforced_runtime_us': report.enforced_runtime_us,
            'enforced_period_us': report.enforced_period_us,
            'io': report.io,
        }
        if not pending or report.state == messages.State.PENDING:
            seen.update(
                code=report.code, detail=report.detail, figures=report.figures
            )
    if override is not None and pending:
        seen['since'] = override.updated_at
    return Reservation(
        instance_uuid=row.instance.uuid,
        instance_name=row.instance.name,
        host=row.host.name,
        present=row.instance.present,
        vcpus=row.instance.vcpus,
        source=row.source,
        state=row.state,
        generation=override.generation if override is not None else 0,
        specs=(override.specs or {}) if override is not None else {},
        author=None if override is None else authors.of(override),
        created_at=override.created_at if override is not None else None,
        updated_at=override.updated_at if override is not None else None,
        runtime_us=wanted.runtime_us,
        period_us=wanted.period_us,
        mode=wanted.mode,
        backend=wanted.backend,
        **seen,
    )
