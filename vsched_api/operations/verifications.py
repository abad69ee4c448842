# SPDX-License-Identifier: Apache-2.0

"""Compare hosts' reports with Nova and placement.

The comparison runs in the background, a few hosts at a time, and outside of
any report's transaction. It reads what a host has reported in one short
transaction, queries Nova and placement without one, and stores the result in
another. A host is marked as compared before it is: a comparison that fails
delays neither those of other hosts nor any report.

Four things follow from a contradiction: events and the host's
``verification`` show it; a host has no more capacity than its compute node has
CPUs; and while another host lists an instance that Nova has elsewhere, the row
of the contradicted host does not determine where the instance is, and that
host does not get what operators set for it.
"""

from collections.abc import Callable
from collections.abc import Collection
import functools
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.conf import openstack
from vsched_api.db import models
from vsched_api.db.queries import balloons
from vsched_api.db.queries import counters
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import overrides
from vsched_api.db.queries import verifications as queries
from vsched_api.db import session as db
from vsched_api.operations import contradictions
from vsched_api.operations import hosts as known_hosts
from vsched_api.operations import notices
from vsched_api.operations import snapshot
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement
from vsched_lib.openstack import session as openstack_session

LOG = logging.getLogger(__name__)

#: Seconds between two rounds; each compares the hosts that are due.
ROUND_S = 30

#: An instance is compared when its host has listed it for this long, in
#: seconds: Nova may not know yet that it has moved. One that another host has
#: listed for longer is compared at once.
_MIN_LISTED_S = 60.0


def bound(
    session: ty.Any, host_id: int, info: dict[str, ty.Any], now: float
) -> dict[str, ty.Any]:
    """Limit the capacity of a host to the CPUs of its compute node.

    :param info: a ``messages.HostInfo`` as a JSON object.
    :returns: the limited info.
    """
    row = queries.of_host(session, host_id)
    if row is None:
        return info
    row.reported_mcpu = info['capacity_mcpu']
    if abs(now - row.checked_at) > known_hosts.VERIFICATION_VALID_S:
        return info
    return {
        **info,
        'capacity_mcpu': _capacity_mcpu(row.reported_mcpu, row.cpus),
    }


def verify(
    database: db.Database,
    conf: cfg.ConfigOpts,
    now: float,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Compare the hosts that are due with Nova and placement.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :param now: in seconds since the epoch.
    :param stopped: called between hosts; True ends the work early.
    :returns: how many hosts were compared.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the database fails.
    """
    options = conf.collector
    _lapse(database, now, options.verification_hosts)
    interval_s = options.verification_interval_s
    with_nova = openstack_session.configured(conf, openstack.NOVA)
    with_placement = openstack_session.configured(conf, openstack.PLACEMENT)
    if not interval_s or not (with_nova or with_placement):
        return 0
    names = database.read(
        functools.partial(
            queries.due,
            reported_after=now - conf.api.host_down_after_s,
            checked_before=now - interval_s,
            now=now,
            limit=options.verification_hosts,
        )
    )
    if not names:
        return 0
    count = 0
    try:
        reference = contradictions.Reference.of(
            compute.Compute(openstack_session.connect(conf, openstack.NOVA))
            if with_nova
            else None,
            placement.Placement(
                openstack_session.connect(conf, openstack.PLACEMENT)
            )
            if with_placement
            else None,
        )
        for name in names:
            if stopped():
                break
            count += _verify_one(database, reference, name, now, interval_s)
    except (
        openstack_session.Unavailable,
        compute.Rejected,
        placement.PlacementError,
    ) as problem:
        LOG.warning('Hosts are not compared with Nova: %s', problem)
    return count


def _lapse(database: db.Database, now: float, limit: int) -> None:
    """Remove contradictions of instances that are no longer valid."""
    before = now - known_hosts.VERIFICATION_VALID_S
    for name in database.read(
        functools.partial(queries.lapsed, checked_before=before, limit=limit)
    ):
        database.write(functools.partial(_clear, name=name, before=before))


def _clear(session: ty.Any, name: str, before: float) -> None:
    generation = counters.next_override_generation(session)
    host = hosts.lock(session, name)
    row = None if host is None else queries.of_host(session, host.id)
    # Another collector may have compared it meanwhile.
    if host is None or row is None or row.checked_at >= before:
        return
    cleared = []
    for uuid, one in instances.of_host(session, host.id).items():
        if one.contradicted_at is not None:
            one.contradicted_at = None
            cleared.append(uuid)
    _fetch_again(session, host, cleared, generation)


def _fetch_again(
    session: ty.Any, host: models.Host, uuids: Collection[str], generation: int
) -> None:
    """Have a host fetch what operators set for instances, if they did.

    :param uuids: which it gets now and did not before, or the reverse.
    """
    session.flush()
    if overrides.exist(session, uuids) or balloons.orders_exist(
        session, uuids
    ):
        host.overrides_generation = generation


def _verify_one(
    database: db.Database,
    reference: contradictions.Reference,
    name: str,
    now: float,
    interval_s: float,
) -> bool:
    reported = database.write(
        functools.partial(_claim, name=name, now=now, interval_s=interval_s)
    )
    if reported is None:
        return False
    try:
        found = reference.compare(reported)
    except (
        compute.Rejected,
        placement.PlacementError,
        LookupError,
        TypeError,
        ValueError,
    ) as problem:
        # For example, a name that Nova rejects.
        LOG.warning(
            'Host %s is not compared with Nova: %s: %s',
            name,
            type(problem).__name__,
            problem,
        )
        return False
    return database.write(
        functools.partial(_store, reported=reported, found=found, now=now)
    )


def _claim(
    session: ty.Any, name: str, now: float, interval_s: float
) -> contradictions.Reported | None:
    """Mark a host as compared, and return what it has reported.

    :returns: None when another collector compares it, when it is gone, or
        when its stored info cannot be read.
    """
    host = hosts.lock(session, name)
    if host is None:
        return None
    row = queries.of_host(session, host.id)
    if row is None:
        row = models.HostVerification(host_id=host.id)
        session.add(row)
    elif now - interval_s <= row.checked_at <= now:
        return None
    row.checked_at = now
    session.flush()
    info = known_hosts.known_info(host)
    if info is None:
        return None
    if row.reported_mcpu is None:
        row.reported_mcpu = info.capacity_mcpu
    return contradictions.Reported(
        host=name,
        capacity_mcpu=row.reported_mcpu,
        provider_uuid=(
            None if info.placement is None else info.placement.provider_uuid
        ),
        instances=_comparable(session, host.id, now),
        cpus=row.cpus,
    )


def _comparable(session: ty.Any, host_id: int, now: float) -> frozenset[str]:
    """Return the instances of a host that are compared.

    A host that lists an instance anew does not escape from the comparison
    when it was contradicted before, or another host has listed the instance
    for longer. What is listed after ``now`` may have begun to move after
    Nova was asked what moves.
    """
    disputed = instances.disputed(session, host_id)
    return frozenset(
        uuid
        for uuid, one in instances.of_host(session, host_id).items()
        if one.present
        and (
            one.arrived_at < now - _MIN_LISTED_S
            or one.contradicted_at is not None
            or (uuid in disputed and one.arrived_at <= now)
        )
    )


def _store(
    session: ty.Any,
    reported: contradictions.Reported,
    found: contradictions.Found,
    now: float,
) -> bool:
    # The same lock order as in reports.
    generation = counters.next_override_generation(session)
    version = None
    if found.cpus != reported.cpus or any(
        one.code is errors.Code.HOST_OVERSTATED for one in found.contradictions
    ):
        version = counters.next_snapshot_versions(session, now)
    host = hosts.lock(session, reported.host)
    row = None if host is None else queries.of_host(session, host.id)
    if host is None or row is None:
        return False
    before = {one['code'] for one in row.contradictions or ()}
    row.cpus = found.cpus
    row.contradictions = [
        {'code': one.code.value, 'detail': one.detail}
        for one in found.contradictions
    ]
    changed = []
    for uuid, one in instances.of_host(session, host.id).items():
        foreign = uuid in found.foreign
        # What was not compared stays as it is.
        if foreign is (one.contradicted_at is None) and (
            foreign or uuid in reported.instances
        ):
            one.contradicted_at = now if foreign else None
            changed.append(uuid)
    _fetch_again(session, host, changed, generation)
    if version is not None and host.info is not None and row.reported_mcpu:
        host.info = {
            **host.info,
            'capacity_mcpu': _capacity_mcpu(row.reported_mcpu, found.cpus),
        }
        snapshot.update(session, host, version)
    for problem in found.contradictions:
        if problem.code.value not in before:
            notices.add(
                session,
                notices.Notice(
                    host,
                    now,
                    problem.code,
                    messages.Severity.WARNING,
                    problem.detail,
                    problem.figures,
                ),
            )
    if before and not found.contradictions:
        notices.add(
            session,
            notices.Notice(
                host,
                now,
                errors.Code.HOST_CONFIRMED,
                messages.Severity.INFO,
                'Nova and placement do not contradict the agent any more',
                {},
            ),
        )
    session.flush()
    return True


def _capacity_mcpu(reported_mcpu: int, cpus: int | None) -> int:
    if cpus is None:
        return reported_mcpu
    return min(reported_mcpu, cpus * reservation.MCPU_PER_CPU)
