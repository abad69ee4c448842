# SPDX-License-Identifier: Apache-2.0

"""How instances stand with ballooning, and having agents change that.

What an operator sets is an override, see
:mod:`vsched_api.operations.overrides`, and is answered in a report. What is
known not to work is refused here, by the same rules as the agent's; what the
agent alone can know, it refuses itself.
"""

from collections.abc import Collection
from collections.abc import Mapping
import dataclasses
import typing as ty

from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import balloon_changes
from vsched_api.db.queries import balloons as queries
from vsched_api.db.queries import instances as instance_queries
from vsched_api.db import session as db
from vsched_api.operations import announcements
from vsched_api.operations import authors
from vsched_api.operations import errors
from vsched_api.operations import instances
from vsched_api.operations import markers
from vsched_api.operations import overrides
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import errors as contract_errors

LOG = logging.getLogger(__name__)

Code = contract_errors.Code

_ORDER: overrides.Kind[queries.Row] = overrides.Kind(
    'the order for', queries.of_instance, lambda row: row.order
)


@dataclasses.dataclass(frozen=True, slots=True)
class Balloon:
    """How an instance stands, and what is ordered; times as on the bus.

    :param report: by its agent; None until it has reported.
    :param generation: of the order; 0 without one.
    :param order_state: a ``balloons.OrderState``; None without an order.
    :param code: why it is not done as ordered.
    :param server_name: Nova's, as project and flavor; None where no agent
        reported it.
    """

    instance_uuid: str
    instance_name: str
    host: str
    present: bool
    report: contract.BalloonReport | None
    generation: int = 0
    target_vcpus: int | None = None
    frozen: bool = False
    order_state: str | None = None
    code: str | None = None
    detail: str | None = None
    author: authors.Author | None = None
    created_at: float | None = None
    updated_at: float | None = None
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """A balloon that is or was, see ``balloons.BalloonChange``.

    :param server_name: Nova's, as project and flavor; None where no agent
        reported it.
    """

    uuid: str
    host: str
    instance_uuid: str
    started_at: float
    ended_at: float | None
    vcpus: int
    before_vcpus: int
    online_vcpus: int
    manual: bool
    cause: str
    took_ms: int | None
    outcome: str | None
    detail: str | None
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


def page(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    host: str | None = None,
    instance_uuids: Collection[str] = (),
    states: Collection[str] = (),
    project_id: str | None = None,
    server_name: str | None = None,
    flavor_name: str | None = None,
) -> list[Balloon]:
    """Instances in the order of their UUIDs, after ``marker``."""
    return database.read(
        lambda session: [
            _view(row)
            for row in queries.page(
                session,
                limit,
                marker,
                host,
                instance_uuids,
                states,
                project_id,
                server_name,
                flavor_name,
            )
        ]
    )


def get(database: db.Database, instance_uuid: str) -> Balloon:
    """One instance.

    :raises errors.NotFound: when it has neither a report nor an order.
    """

    def work(session: ty.Any) -> Balloon:
        row = _ORDER.known(session, instance_uuid)
        if row.report is None and row.order is None:
            raise errors.NotFound(
                'no agent reports balloons of instance %s' % instance_uuid,
                Code.BALLOON_NOT_FOUND,
            )
        return _view(row)

    return database.read(work)


def history(
    database: db.Database,
    limit: int,
    marker: str | None = None,
    **filters: ty.Any,
) -> list[Change]:
    """Balloons, newest first.

    :param marker: UUID of the last one of the page before.
    :param filters: as
        :func:`vsched_api.db.queries.balloon_changes.page` takes them.
    :raises errors.Invalid: when the marker is not a stored one.
    """

    def work(session: ty.Any) -> list[Change]:
        after = markers.position(
            marker,
            lambda uuid: balloon_changes.position(session, uuid),
            'no balloon has it',
        )
        page = balloon_changes.page(session, limit, after, **filters)
        known = instance_queries.servers(
            session, {found.change.instance_uuid for found in page}
        )
        return [
            _change(
                found, known.get(found.change.instance_uuid, instances.UNKNOWN)
            )
            for found in page
        ]

    return database.read(work)


def order(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
    fields: Mapping[str, ty.Any],
) -> Balloon:
    """Have an instance use so many vCPUs, or leave it as it is.

    :raises errors.Outdated: when there is another generation.
    :param fields: ``target_vcpus``, ``frozen``; what is not given stays as
        it was ordered.
    :raises errors.NotFound: when no agent reported the instance.
    :raises errors.Conflict: when it is known not to work.
    """

    def make(
        session: ty.Any, row: queries.Row, generation: int
    ) -> tuple[Code, str]:
        wanted = {
            'target_vcpus': row.order and row.order.target_vcpus,
            'frozen': bool(row.order and row.order.frozen),
            **fields,
        }
        _check(row, wanted)
        if wanted == {'target_vcpus': None, 'frozen': False}:
            queries.delete_order(session, change.instance_uuid)
        else:
            queries.put_order(
                session,
                change.instance_uuid,
                {
                    'generation': generation,
                    **wanted,
                    **authors.columns(change.author),
                },
                change.now,
            )
        return (
            Code.BALLOON_ORDERED,
            'instance %s: target %s, frozen %s, is ordered'
            % (change.instance_uuid, wanted['target_vcpus'], wanted['frozen']),
        )

    return _store(database, announcer, change, make)


def withdraw(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
) -> Balloon:
    """Leave an instance to its agent again.

    :raises errors.Outdated: when there is another generation.
    :raises errors.NotFound: when nothing is ordered, or no instance known.
    """

    def make(
        session: ty.Any, row: queries.Row, generation: int
    ) -> tuple[Code, str]:
        if not queries.delete_order(session, change.instance_uuid):
            raise errors.NotFound(
                'nothing is ordered of the vCPUs of instance %s'
                % change.instance_uuid,
                Code.BALLOON_ORDER_NOT_FOUND,
            )
        return (
            Code.BALLOON_ORDERED,
            'instance %s: the order is withdrawn' % change.instance_uuid,
        )

    return _store(database, announcer, change, make)


def _store(
    database: db.Database,
    announcer: announcements.Announcer,
    change: overrides.Change,
    make: ty.Callable[[ty.Any, queries.Row, int], tuple[Code, str]],
) -> Balloon:
    row, generation = overrides.store(
        database, announcer, _ORDER, change, make
    )
    view = _view(row)
    LOG.info(
        'Instance %s: target %s, frozen %s, wanted with generation %d',
        change.instance_uuid,
        view.target_vcpus,
        view.frozen,
        generation,
    )
    return view


def _check(row: queries.Row, wanted: Mapping[str, ty.Any]) -> None:
    report = _report(row)
    if report is None:
        raise errors.Conflict(
            'no agent reports balloons of instance %s: it does not run, or '
            'its host takes no vCPUs' % row.instance.uuid,
            Code.BALLOON_NOT_FOUND,
        )
    if wanted['target_vcpus'] is not None:
        refused = contract.refusal(wanted['target_vcpus'], report)
        if refused is not None:
            raise errors.Conflict(
                'instance %s: %s' % (row.instance.uuid, refused.detail),
                refused.code,
            )


def _report(row: queries.Row) -> contract.BalloonReport | None:
    report = row.report
    if report is None:
        return None
    values = {
        field.name: getattr(report, field.name)
        for field in dataclasses.fields(contract.BalloonReport)
        if field.name != 'instance_uuid'
    }
    return contract.BalloonReport(
        instance_uuid=row.instance.uuid,
        **{
            **values,
            'cpus': tuple(report.cpus),
            'state': contract.BalloonState(report.state),
            'order_state': None
            if report.order_state is None
            else (contract.OrderState(report.order_state)),
        },
    )


def _view(row: queries.Row) -> Balloon:
    report, wanted = _report(row), row.order
    known: dict[str, ty.Any] = {}
    if wanted is not None:
        known = {
            'generation': wanted.generation,
            'target_vcpus': wanted.target_vcpus,
            'frozen': wanted.frozen,
            'author': authors.of(wanted),
            'created_at': wanted.created_at,
            'updated_at': wanted.updated_at,
        }
    answered = 0 if report is None else report.generation
    if answered != known.get('generation', 0):
        # A new order, or one that was withdrawn.
        known['order_state'] = contract.OrderState.PENDING.value
    elif wanted is not None and report is not None:
        known |= {
            'order_state': report.order_state,
            'code': report.code,
            'detail': report.detail,
        }
    return Balloon(
        instance_uuid=row.instance.uuid,
        instance_name=row.instance.name,
        host=row.host.name,
        present=row.instance.present,
        report=report,
        server_name=row.instance.server_name,
        project_id=row.instance.project_id,
        flavor_name=row.instance.flavor_name,
        **known,
    )


def _change(found: balloon_changes.Found, server: instances.Server) -> Change:
    row: models.BalloonChange = found.change
    return Change(
        host=found.host,
        **{
            field.name: getattr(row, field.name)
            for field in dataclasses.fields(Change)
            if field.name not in {'host', *server._fields}
        },
        **server._asdict(),
    )
