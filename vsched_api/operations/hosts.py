# SPDX-License-Identifier: Apache-2.0

"""Read the stored hosts."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import typing as ty

from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import host_pages
from vsched_api.db.queries import hosts as queries
from vsched_api.db.queries import instances as instance_queries
from vsched_api.db.queries import verifications
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import markers
from vsched_api.operations import stored
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

LOG = logging.getLogger(__name__)

#: How long the result of a comparison with Nova and placement is valid
#: without another one, in seconds: they may not be configured any more.
VERIFICATION_VALID_S = 86_400.0


class State(enum.StrEnum):
    """Whether the agent of a host reports."""

    UP = 'up'
    DOWN = 'down'


@dataclasses.dataclass(frozen=True, slots=True)
class Verification:
    """The last comparison of a host's reports with Nova and placement.

    :param checked_at: in seconds since the epoch.
    :param cpus: how many CPUs its compute node has for instances; None when
        unknown.
    :param contradictions: pairs of a code and a detail.
    """

    checked_at: float
    cpus: int | None
    contradictions: Sequence[tuple[str, str]]


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """A host as reported by its agent.

    :param last_report_at: when its last report was received, by the
        collector's clock, in seconds since the epoch; None before the first.
    :param clock_skew_s: by how much its clock was ahead of the collector's
        then; None when unknown.
    :param report_delay_s: how old that report was then; None before the first.
    :param info: None until the agent has reported it.
    :param problem: why ``info`` cannot be read; None when it can.
    :param verification: None before the first one, and when the last one is
        no longer valid.
    """

    name: str
    state: State
    last_report_at: float | None
    last_batch: int
    overrides_generation: int
    instances: int
    info: messages.HostInfo | None
    problem: str | None = None
    clock_skew_s: float | None = None
    report_delay_s: float | None = None
    verification: Verification | None = None


#: What hosts may be sorted by.
SORT_KEYS = tuple(host_pages.SORT_KEYS)


def page(
    database: db.Database,
    limit: int,
    marker: str | None,
    now: float,
    down_after_s: float,
    *,
    state: str | None = None,
    name_prefix: str | None = None,
    backend: str | None = None,
    sort_key: str = 'name',
    descending: bool = False,
) -> list[Host]:
    """Return hosts in an order, those after the host ``marker``.

    :param down_after_s: a host counts as down when its last report is older.
    :param state: only those in this state.
    :param backend: only those that can use it.
    :param sort_key: one of :data:`SORT_KEYS`; hosts with the same value are
        in the order of their names.
    :raises errors.Invalid: when the marker is not a host, and hosts are not
        in the order of their names.
    """
    wanted = host_pages.Filter(
        now - down_after_s,
        None if state is None else state == State.UP,
        name_prefix,
        backend,
    )

    def work(session: ty.Any) -> list[Host]:
        after = markers.position(
            marker,
            lambda name: host_pages.position(session, name, sort_key),
            'no host has it',
        )
        rows = host_pages.page(
            session, limit, after, wanted, sort_key, descending
        )
        ids = [row.id for row in rows]
        counts = instance_queries.count_by_host(session, ids)
        verified = verifications.of_hosts(session, ids)
        return [
            _host(row, counts, verified, now, down_after_s) for row in rows
        ]

    return database.read(work)


def get(
    database: db.Database, name: str, now: float, down_after_s: float
) -> Host:
    """Return one host.

    :raises errors.NotFound: when no agent ever reported from it.
    """

    def work(session: ty.Any) -> Host:
        row = queries.by_name(session, name)
        if row is None:
            raise errors.NotFound(
                'no agent reported from a host named %s' % name,
                contract_errors.Code.HOST_NOT_FOUND,
            )
        return _host(
            row,
            instance_queries.count_by_host(session, [row.id]),
            verifications.of_hosts(session, [row.id]),
            now,
            down_after_s,
        )

    return database.read(work)


def known_info(row: models.Host) -> messages.HostInfo | None:
    """Return the stored info of a host; None when absent or unreadable."""
    return _known_info(row)[0]


def _known_info(
    row: models.Host,
) -> tuple[messages.HostInfo | None, str | None]:
    try:
        return stored.info(row), None
    except wire.MalformedMessage as problem:
        # Stored by another release; the next full report replaces it.
        LOG.warning('Host %s: %s', row.name, problem)
        return None, str(problem)


def every(session: ty.Any, now: float, down_after_s: float) -> Sequence[Host]:
    """Return all hosts, inside a transaction."""
    counts = instance_queries.count_by_host(session)
    verified = verifications.of_hosts(session)
    return [
        _host(row, counts, verified, now, down_after_s)
        for row in queries.every(session)
    ]


def _host(
    row: models.Host,
    counts: Mapping[int, int],
    verified: Mapping[int, models.HostVerification],
    now: float,
    down_after_s: float,
) -> Host:
    info, problem = _known_info(row)
    up = row.received_at is not None and now - row.received_at <= down_after_s
    return Host(
        name=row.name,
        state=State.UP if up else State.DOWN,
        last_report_at=row.received_at,
        last_batch=row.last_batch,
        overrides_generation=row.overrides_generation,
        instances=counts.get(row.id, 0),
        info=info,
        problem=problem,
        clock_skew_s=row.clock_skew_s,
        report_delay_s=_report_delay_s(row),
        verification=_verification(verified.get(row.id), now),
    )


def _report_delay_s(row: models.Host) -> float | None:
    if row.received_at is None or row.reported_at is None:
        return None
    # Times of a clock that is behind are stored as they are.
    behind_s = max(0.0, -(row.clock_skew_s or 0.0))
    return max(0.0, row.received_at - row.reported_at - behind_s)


def _verification(
    row: models.HostVerification | None, now: float
) -> Verification | None:
    if row is None or abs(now - row.checked_at) > VERIFICATION_VALID_S:
        return None
    return Verification(
        row.checked_at,
        row.cpus,
        [(one['code'], one['detail']) for one in row.contradictions or ()],
    )
