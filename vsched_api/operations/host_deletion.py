# SPDX-License-Identifier: Apache-2.0

"""Delete hosts: on request, and those that Nova no longer has.

A host is deleted in two steps. The first is one short transaction: the row is
renamed to a name that no host can have, so that no query finds it, and the
next answer to schedulers lists the host as removed. The second deletes all
rows of the host in chunks, with the other work of retention. The row itself
stays for a while, for schedulers that have not polled since.

A deleted host that reports again is a new one: the collector has no rows of it
and requests a full report.
"""

from collections.abc import Callable
import functools
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.conf import openstack
from vsched_api.db.queries import counters
from vsched_api.db.queries import host_deletion as queries
from vsched_api.db.queries import hosts
from vsched_api.db.queries import instances
from vsched_api.db.queries import snapshot
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.openstack import compute
from vsched_lib.openstack import session as openstack_session

LOG = logging.getLogger(__name__)

_SECONDS_PER_DAY = 86_400

#: For how long deleted hosts are part of incremental answers to schedulers. A
#: scheduler that polls less often gets all hosts.
_TOMBSTONE_S = 7 * _SECONDS_PER_DAY

#: How many absent hosts are looked up in Nova at a time.
_MAX_ABSENT = 50


def delete(
    database: db.Database,
    name: str,
    now: float,
    down_after_s: float,
    force: bool = False,
) -> None:
    """Delete a host and all its rows.

    :param down_after_s: a host that reported since counts as up.
    :param force: delete it even if it lists instances that no other host
        lists.
    :raises errors.NotFound: when there is no such host.
    :raises errors.Conflict: when it is up, or lists such instances.
    """
    database.write(
        functools.partial(
            _delete,
            name=name,
            now=now,
            silent_since=now - down_after_s,
            force=force,
        )
    )
    LOG.info('Host %s is deleted', name)


def _delete(
    session: ty.Any, name: str, now: float, silent_since: float, force: bool
) -> None:
    # The same lock order as in reports.
    counters.next_override_generation(session)
    version = counters.next_snapshot_versions(session, now)
    host = hosts.lock(session, name)
    if host is None:
        raise errors.NotFound(
            'no agent reported from a host named %s' % name,
            contract_errors.Code.HOST_NOT_FOUND,
        )
    if host.received_at is not None and host.received_at >= silent_since:
        raise errors.Conflict(
            'host %s reports: stop its agent, and wait until its state is '
            'down' % name,
            contract_errors.Code.HOST_IN_USE,
        )
    alone = instances.only_on(session, host.id)
    if alone and not force:
        raise errors.Conflict(
            'host %s lists %d instances that no other host lists; with '
            'force=true it is deleted with what is known of them'
            % (name, alone),
            contract_errors.Code.HOST_IN_USE,
        )
    # Names of hosts cannot begin with a blank.
    host.name = ' deleted %d' % host.id
    host.deleted_at = now
    host.info = None
    instances.delete_of(session, host.id)
    entry = snapshot.of_host(session, host.id)
    if entry is not None:
        entry.removed, entry.version = True, version
    session.flush()


def purge(
    database: db.Database,
    now: float,
    chunk_rows: int,
    stopped: Callable[[], bool],
) -> int:
    """Delete the rows of deleted hosts, and finally the hosts' own.

    :param chunk_rows: how many rows one transaction deletes at most.
    :param stopped: called between chunks; True ends the work early.
    :returns: how many rows were deleted.
    """
    total = 0
    for number, deleted_at in database.read(queries.deleted):
        while not stopped():
            count = database.write(
                functools.partial(
                    queries.delete_owned, host_id=number, limit=chunk_rows
                )
            )
            total += count
            if count < chunk_rows:
                if deleted_at < now - _TOMBSTONE_S:
                    database.write(
                        functools.partial(queries.delete, host_id=number)
                    )
                break
    return total


def delete_absent(
    database: db.Database, conf: cfg.ConfigOpts, now: float
) -> int:
    """Delete hosts that have not reported for long and that Nova lacks.

    :param conf: has the options of :mod:`vsched_api.conf`.
    :returns: how many were deleted.
    """
    days = conf.collector.absent_host_days
    if not days or not openstack_session.configured(conf, openstack.NOVA):
        return 0
    names = database.read(
        functools.partial(
            queries.absent,
            before=now - days * _SECONDS_PER_DAY,
            limit=_MAX_ABSENT,
        )
    )
    if not names:
        return 0
    try:
        nova = compute.Compute(openstack_session.connect(conf, openstack.NOVA))
        gone = [name for name in names if not nova.has_service(name)]
    except (openstack_session.Unavailable, compute.Rejected) as problem:
        LOG.warning('Absent hosts stay: %s', problem)
        return 0
    count = 0
    for name in gone:
        try:
            delete(database, name, now, days * _SECONDS_PER_DAY, force=True)
            count += 1
        except (errors.NotFound, errors.Conflict) as problem:
            # It was deleted concurrently, or reports again.
            LOG.info('%s', problem)
    return count
