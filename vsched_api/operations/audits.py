# SPDX-License-Identifier: Apache-2.0

"""Compare placement, the database and the kernel's state of a host.

Placement has the allocations of instances, the database has their
reservations, and the agent's reports have the last state read from the kernel.
Nova lists the servers of the host, whether an agent reports them or not.
"""

from collections.abc import Collection
from collections.abc import Iterator
from collections.abc import Mapping
import dataclasses
import enum

from oslo_config import cfg

from vsched_api.conf import openstack
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import hosts
from vsched_api.operations import instances
from vsched_api.operations import reservations
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import flavors
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.model import reservation as model
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

_PAGE = 1000


class Kind(enum.StrEnum):
    """Kinds of differences."""

    NO_PROVIDER = 'no_provider'
    NOT_HELD = 'not_held'
    CLAIM_DIFFERS = 'claim_differs'
    ELSEWHERE = 'elsewhere'
    FOREIGN = 'foreign'
    UNLISTED = 'unlisted'
    LEFTOVER = 'leftover'
    NOT_REPORTING = 'not_reporting'
    NOT_ENFORCED = 'not_enforced'


#: Server states of Nova in which a server's vCPUs exist on its host.
_RUNS = frozenset({'ACTIVE', 'PAUSED', 'RESCUE', 'PASSWORD', 'VERIFY_RESIZE'})
_RUNTIME = extra_specs.TABLE['cpu_runtime_us'].name


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One difference.

    :param consumer: UUID of an instance or a migration; None for the host
        itself.
    :param provider_uuid: resource provider of the allocation, if any.
    """

    host: str
    kind: Kind
    detail: str
    consumer: str | None = None
    provider_uuid: str | None = None
    claimed_mcpu: int | None = None
    promised_mcpu: int | None = None
    held_mcpu: int | None = None


def audit(
    database: db.Database,
    claims: placement.Placement,
    nova: compute.Compute | None,
    host: hosts.Host,
    now: float,
    down_after_s: float,
) -> list[Finding]:
    """Return all differences of one host.

    :param nova: lists the servers of the host; None when Nova is not
        configured.
    :param now: in seconds since the epoch.
    :param down_after_s: the time within which the agent reports a change, in
        seconds.
    :raises compute.Forbidden: when Nova does not show all servers.
    :raises placement.PlacementError: when placement rejects a request.
    :raises openstack.session.Unavailable: when one of the services does not
        respond.
    """
    provider = (
        None
        if host.info is None or host.info.placement is None
        else host.info.placement.provider_uuid
    )
    promised = {
        one.instance_uuid: one for one in _reservations(database, host.name)
    }
    found = [
        Finding(
            host.name,
            Kind.NOT_HELD,
            'promised %d mcpu, the kernel holds %d '
            '(%s)' % (_promised(one), _held(one), one.detail or one.state),
            one.instance_uuid,
            promised_mcpu=_promised(one),
            held_mcpu=_held(one),
        )
        for one in promised.values()
        # Margins raise a reservation above the value in the database.
        if one.state != messages.State.RELEASED and _held(one) < _promised(one)
    ]
    if host.state == hosts.State.DOWN:
        found.append(_silent(host, now, down_after_s))
    claimed = (
        {}
        if provider is None
        else claims.claims(provider, names.RESOURCE_CLASS)
    )
    running = {one.uuid for one in _instances(database, host.name)}
    servers = (
        {}
        if nova is None
        else {one.id: one for one in nova.servers(host.name)}
    )
    unheld = [
        one
        for uuid, one in sorted(servers.items())
        if _unheld(
            one,
            claimed.get(uuid, 0),
            uuid in running,
            uuid in promised,
            now - down_after_s,
        )
    ]
    if nova is not None:
        found.extend(
            Finding(
                host.name,
                Kind.FOREIGN,
                'its agent reports that %d mcpu are '
                'reserved for it here, and Nova has no such server on this '
                'host: it is moving, or the report is wrong'
                % _promised(promised[uuid]),
                uuid,
                provider,
                claimed.get(uuid, 0),
                _promised(promised[uuid]),
            )
            for uuid in sorted((running & promised.keys()) - servers.keys())
            if _promised(promised[uuid])
        )
    found.extend(
        Finding(
            host.name,
            Kind.NOT_ENFORCED,
            '%s in Nova, %s, and %s'
            % (
                one.status,
                'claims %d mcpu' % claimed[one.id]
                if one.id in claimed
                else 'its flavor has a reservation',
                'its agent reports no reservation'
                if one.id in running
                else 'its agent does not report it',
            ),
            one.id,
            provider,
            claimed.get(one.id, 0),
        )
        for one in unheld
    )
    if provider is None:
        return [
            *found,
            Finding(
                host.name,
                Kind.NO_PROVIDER,
                'its agent has reported no provider in placement',
            ),
        ]
    for uuid in sorted(
        (running | claimed.keys()) - {one.id for one in unheld}
    ):
        finding = _compare(
            database,
            nova,
            host.name,
            uuid,
            claimed.get(uuid, 0),
            _promised(promised.get(uuid)),
            uuid in running,
            _for_io(servers.get(uuid)),
        )
        if finding is not None:
            found.append(dataclasses.replace(finding, provider_uuid=provider))
    return found


def unreported(
    claims: placement.Placement,
    nova: compute.Compute,
    known: Collection[str],
    now: float,
    down_after_s: float,
) -> list[Finding]:
    """Return what is reserved on compute nodes that no agent reported from.

    A node without vsched is no difference: one with a provider that can be
    allocated from is, and one with a server that has a reservation.

    :param known: names of the hosts that agents reported from.
    :param now: in seconds since the epoch.
    :param down_after_s: the time within which an agent reports a new server,
        in seconds.
    :raises: as :func:`audit`.
    """
    found: list[Finding] = []
    for node in sorted(nova.hypervisors(), key=lambda one: one.name):
        if node.host in known or node.name in known:
            continue
        provider = claims.provider(names.provider_name(node.name))
        claimed: Mapping[str, int] = {}
        offered = 0
        if provider is not None:
            claimed = claims.claims(provider.uuid, names.RESOURCE_CLASS)
            inventory = claims.inventories(provider.uuid)[1].get(
                names.RESOURCE_CLASS
            )
            if inventory is not None:
                offered = inventory.total - inventory.reserved
        unheld = [
            one
            for one in nova.servers(node.host)
            if _unheld(
                one, claimed.get(one.id, 0), False, False, now - down_after_s
            )
        ]
        if offered <= 0 and not unheld:
            continue
        found.append(
            Finding(
                node.host,
                Kind.NOT_REPORTING,
                'no agent has ever reported from it, its provider in '
                'placement offers %d mcpu, and %d servers there have a '
                'reservation' % (max(offered, 0), len(unheld)),
                provider_uuid=None if provider is None else provider.uuid,
            )
        )
        found.extend(
            Finding(
                node.host,
                Kind.NOT_ENFORCED,
                '%s in Nova, %s, and no agent has ever reported from its host'
                % (
                    one.status,
                    'claims %d mcpu' % claimed[one.id]
                    if one.id in claimed
                    else 'its flavor has a reservation',
                ),
                one.id,
                None if provider is None else provider.uuid,
                claimed.get(one.id, 0),
            )
            for one in sorted(unheld, key=lambda one: one.id)
        )
    return found


def ask(
    conf: cfg.ConfigOpts, database: db.Database, host: hosts.Host, now: float
) -> list[Finding]:
    """Return all differences of one host, with the configured services.

    :param now: in seconds since the epoch.
    :raises errors.NotInstalled: when placement is not configured.
    :raises errors.Away: when one of the services does not respond.
    """
    if not session.configured(conf, openstack.PLACEMENT):
        raise errors.NotInstalled(
            'placement is not asked: [placement] auth_type is not set'
        )
    try:
        nova = (
            compute.Compute(session.connect(conf, openstack.NOVA))
            if session.configured(conf, openstack.NOVA)
            else None
        )
        return audit(
            database,
            placement.Placement(session.connect(conf, openstack.PLACEMENT)),
            nova,
            host,
            now,
            conf.api.host_down_after_s,
        )
    except (
        session.Unavailable,
        placement.PlacementError,
        compute.Rejected,
    ) as problem:
        raise errors.Away(str(problem)) from None


def heal(claims: placement.Placement, finding: Finding) -> bool:
    """Delete a leftover allocation; leave all other findings as they are.

    :returns: whether the finding was a leftover allocation.
    """
    if (
        finding.kind is not Kind.LEFTOVER
        or finding.consumer is None
        or finding.provider_uuid is None
    ):
        return False
    claims.withdraw(finding.consumer, finding.provider_uuid)
    return True


def _silent(host: hosts.Host, now: float, down_after_s: float) -> Finding:
    if host.last_report_at is None:
        said = 'its agent has never reported'
    else:
        said = 'its agent last reported %d s ago, more than %g s' % (
            now - host.last_report_at,
            down_after_s,
        )
    return Finding(
        host.name,
        Kind.NOT_REPORTING,
        said + ': what is in force there is not known',
    )


def _unheld(
    server: compute.Server,
    claimed_mcpu: int,
    running: bool,
    reserved: bool,
    before: float,
) -> bool:
    """Return whether a server runs without the reservation of its flavor.

    :param running: whether the agent lists it.
    :param reserved: whether the agent reports a reservation.
    :param before: changes before this time must have been reported by now.
    """
    if server.status not in _RUNS or server.changed_at > before:
        return False
    wanted = claimed_mcpu > 0 or _RUNTIME in (server.extra_specs or {})
    return wanted and not (running and reserved)


def _compare(
    database: db.Database,
    nova: compute.Compute | None,
    host: str,
    uuid: str,
    claimed_mcpu: int,
    promised_mcpu: int,
    running: bool,
    io_mcpu: int,
) -> Finding | None:
    kind, detail = (
        Kind.CLAIM_DIFFERS,
        'claims %d mcpu, promised %d' % (claimed_mcpu, promised_mcpu),
    )
    if running:
        if claimed_mcpu - promised_mcpu in (0, io_mcpu):
            return None
    else:
        where = _where(database, uuid)
        if nova is None:
            kind = Kind.UNLISTED
            detail = (
                'claims %d mcpu and does not run here: stopped, being '
                'built, moving or a leftover' % claimed_mcpu
            )
        elif not nova.knows(uuid):
            kind = Kind.LEFTOVER
            detail = 'claims %d mcpu, and Nova has no such server' % (
                claimed_mcpu
            )
        elif where is not None and where != host:
            kind = Kind.ELSEWHERE
            detail = 'claims %d mcpu and runs on %s' % (claimed_mcpu, where)
        else:
            # Stopped, or being built: its allocation is correct.
            return None
    return Finding(host, kind, detail, uuid, None, claimed_mcpu, promised_mcpu)


def _for_io(server: compute.Server | None) -> int:
    """Return what a flavor claims for I/O in addition to its reservation."""
    if server is None or not server.extra_specs:
        return 0
    try:
        ask = extra_specs.parse(server.extra_specs).ask(server.vcpus)
    except contract_errors.InvalidExtraSpecs:
        return 0
    if not flavors.on_top(ask):
        return 0
    return max(
        0,
        names.claimed_mcpu(server.extra_specs)
        - names.claim_mcpu(ask.promise, server.vcpus),
    )


def _where(database: db.Database, uuid: str) -> str | None:
    try:
        found = instances.get(database, uuid)
    except errors.NotFound:
        return None
    return found.host if found.present else None


def _promised(one: reservations.Reservation | None) -> int:
    if (
        one is None
        or one.state == messages.State.RELEASED
        or (one.backend is not None and one.backend not in model.ADMITTED)
    ):
        return 0
    return one.bandwidth_mcpu or 0


def _held(one: reservations.Reservation) -> int:
    if one.enforced_backend not in model.ADMITTED:
        return 0
    return one.enforced_bandwidth_mcpu or 0


def _reservations(
    database: db.Database, host: str
) -> Iterator[reservations.Reservation]:
    marker: str | None = None
    while True:
        page = reservations.page(database, _PAGE, marker, host)
        yield from (one for one in page if one.present)
        if len(page) < _PAGE:
            return
        marker = page[-1].instance_uuid


def _instances(
    database: db.Database, host: str
) -> Iterator[instances.Instance]:
    marker: str | None = None
    while True:
        page = instances.page(database, _PAGE, marker, host, present=True)
        yield from page
        if len(page) < _PAGE:
            return
        marker = page[-1].uuid
