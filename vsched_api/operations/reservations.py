# SPDX-License-Identifier: Apache-2.0

"""Reservations: what is wanted, what is enforced, and changing the former.

A change is an override, see :mod:`vsched_api.operations.overrides`. Until a
report answers its generation the reservation is pending.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import functools
import typing as ty

from oslo_log import log as logging

from vsched_api.db.queries import overrides as override_queries
from vsched_api.db.queries import reservations as queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import authors
from vsched_api.operations import errors
from vsched_api.operations import expressibility
from vsched_api.operations import hosts
from vsched_api.operations import markers
from vsched_api.operations import override_fields
from vsched_api.operations import overrides
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation as model

LOG = logging.getLogger(__name__)

Code = contract_errors.Code

_OVERRIDE: overrides.Kind[queries.Row] = overrides.Kind(
    'the override of', queries.of_instance, lambda row: row.override
)


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
    :param server_name: Nova's, as project and flavor; None where no agent
        reported it.
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
    communication: Mapping[str, ty.Any] | None = None
    specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    author: authors.Author | None = None
    created_at: float | None = None
    updated_at: float | None = None
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None

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


#: What reservations may be sorted by.
SORT_KEYS = queries.SORT_KEYS


def page(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    states: Collection[str] = (),
    sources: Collection[str] = (),
    backend: str | None = None,
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
    sort_key: str = SORT_KEYS[0],
    descending: bool = False,
) -> list[Reservation]:
    """Reservations in an order, those after the instance ``marker``.

    :param sort_key: one of :data:`SORT_KEYS`; those with the same value are
        in the order of their instances' UUIDs.
    :raises errors.Invalid: when the marker carries no reservation, and they
        are not in the order of UUIDs.
    """

    def work(session: ty.Any) -> list[Reservation]:
        after = markers.position(
            marker,
            lambda uuid: queries.position(session, uuid, sort_key, project_id),
            'no reservation has it',
        )
        return [
            _view(row)
            for row in queries.page(
                session,
                limit,
                after,
                host,
                instance_uuids,
                states,
                sources,
                backend,
                project_id,
                server_name,
                flavor_name,
                sort_key,
                descending,
            )
        ]

    return database.read(work)


def get(database: db.Database, instance_uuid: str) -> Reservation:
    """One instance's reservation.

    :raises errors.NotFound: when it carries none, or is not known.
    """

    def work(session: ty.Any) -> Reservation:
        row = _OVERRIDE.known(session, instance_uuid)
        if row.report is None and row.override is None:
            raise _none(instance_uuid)
        return _view(row)

    return database.read(work)


def create(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
    fields: Mapping[str, ty.Any],
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
                % change.instance_uuid,
                Code.RESERVATION_EXISTS,
            )
        return {**override_fields.DEFAULTS, **fields}

    return _set(database, announcer, change, wanted)


def change(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
    fields: Mapping[str, ty.Any],
) -> Reservation:
    """Change what an instance is promised, while it runs.

    :param fields: what changes; the rest stays as it is wanted now. None for
        one of ``extra_specs.OVERRIDABLE`` leaves it to the flavor again.
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
            raise _none(change.instance_uuid)
        if {'runtime_us', 'period_us', 'mode'} <= set(fields):
            return {**override_fields.DEFAULTS, **fields}
        raise errors.Conflict(
            'the override of instance %s was just removed and its agent '
            'has not reported the flavor yet: give runtime_us, '
            'period_us and mode, or try again' % change.instance_uuid,
            Code.RESERVATION_CHANGING,
        )

    return _set(database, announcer, change, wanted)


def withdraw(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
) -> Reservation | None:
    """Remove an override: what the flavor says holds again, or nothing.

    :raises errors.Outdated: when there is another generation.
    :returns: the reservation as it stands, None when nothing is left.
    :raises errors.NotFound: when there is no override, or no instance.
    """

    def make(
        session: ty.Any, row: queries.Row, generation: int
    ) -> tuple[Code, str]:
        if not override_queries.delete(session, change.instance_uuid):
            raise errors.NotFound(
                'instance %s has no override' % change.instance_uuid,
                Code.OVERRIDE_NOT_FOUND,
            )
        return (
            Code.OVERRIDE_REMOVED,
            'instance %s: the override is removed' % change.instance_uuid,
        )

    row, generation = overrides.store(
        database, announcer, _OVERRIDE, change, make
    )
    LOG.info(
        'Instance %s: the override is removed, generation %d',
        change.instance_uuid,
        generation,
    )
    return None if row.report is None else _view(row)


def _set(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
    wanted: ty.Callable[[queries.Row], Mapping[str, ty.Any]],
) -> Reservation:
    instance_uuid = change.instance_uuid

    def make(
        session: ty.Any, row: queries.Row, generation: int
    ) -> tuple[Code, str]:
        fields = wanted(row)
        if not row.instance.present:
            raise errors.Conflict(
                'no host lists instance %s: it is stopped or deleted; change '
                'it while it runs' % instance_uuid,
                Code.INSTANCE_ABSENT,
            )
        reservation = override_fields.reservation_of(fields)
        specs = override_fields.specs_of(
            fields,
            None if row.override is None else row.override.specs,
            row.instance.vcpus,
        )
        expressibility.check(
            reservation, row.host.name, hosts.known_info(row.host)
        )
        override_queries.put(
            session,
            instance_uuid,
            {
                'generation': generation,
                'runtime_us': reservation.runtime_us,
                'period_us': reservation.period_us,
                'mode': reservation.mode.value,
                'backend': reservation.backend and reservation.backend.value,
                'specs': specs or None,
                **authors.columns(change.author),
            },
            change.now,
        )
        return (
            Code.OVERRIDE_SET,
            'instance %s: %d us every %d us, %s, is wanted%s'
            % (
                instance_uuid,
                reservation.runtime_us,
                reservation.period_us,
                reservation.mode,
                ''.join(', %s %s' % pair for pair in sorted(specs.items())),
            ),
        )

    row, generation = overrides.store(
        database, announcer, _OVERRIDE, change, make
    )
    view = _view(row)
    LOG.info(
        'Instance %s: %d us in %d us, %s, wanted with generation %d',
        instance_uuid,
        view.runtime_us,
        view.period_us,
        view.mode,
        generation,
    )
    return view


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
    return {
        name: getattr(source, name) for name in override_fields.RESERVATION
    }


# Fleets have few flavors, and lists many instances.
@functools.lru_cache(maxsize=1024)
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
            'communication': report.communication,
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
        server_name=row.instance.server_name,
        project_id=row.instance.project_id,
        flavor_name=row.instance.flavor_name,
        **seen,
    )
