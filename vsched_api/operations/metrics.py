# SPDX-License-Identifier: Apache-2.0

"""Collect the metrics of all hosts and instances.

Usage is that of the newest minute of each host that is summed up: a single
sample says little of the time between two scrapes, and to read all samples of
a minute would cost the database a hundred times as much. The number of
statements does not depend on the number of hosts.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db.queries import metrics as queries
from vsched_api.db.queries import reservations
from vsched_api.db.queries import snapshot
from vsched_api.db import session as db
from vsched_api.operations import hosts

#: A minute that ended longer ago is not shown, in seconds: its host does not
#: report, or usage is not summed up.
NEWEST_S = 900.0

#: Events that are younger are counted, in seconds.
EVENTS_S = 3600.0

Usage = queries.Usage
HostTime = queries.HostTime


@dataclasses.dataclass(frozen=True, slots=True)
class HostFigures:
    """The metrics of one host.

    :param unfolded: how many batches are not summed up yet.
    :param certified: whether it has certificates that hold.
    :param used_at: end of the minute whose usage is shown; None without one.
    :param time: what its CPUs did; None without a minute.
    """

    host: hosts.Host
    unfolded: int
    certified: bool
    used_at: float | None
    time: HostTime | None


@dataclasses.dataclass(frozen=True, slots=True)
class Metrics:
    """All metrics, from one transaction.

    :param reservations: (host, state, count).
    :param events: of the last hour: (host, code, count).
    :param jobs: (kind, state, count).
    :param snapshot_hosts: how many hosts the schedulers' snapshot has.
    :param snapshot_changed_at: when that changed last; None before it did.
    :param instances: empty unless they were asked for.
    :param omitted: how many instances were left out for there being too many.
    """

    hosts: Sequence[HostFigures]
    reservations: Sequence[tuple[str, str, int]]
    events: Sequence[tuple[str, str, int]]
    jobs: Sequence[tuple[str, str, int]]
    snapshot_hosts: int
    snapshot_changed_at: float | None
    instances: Sequence[Usage] = ()
    omitted: int = 0


def read(
    database: db.Database,
    now: float,
    down_after_s: float,
    max_instances: int = 0,
) -> Metrics:
    """Read the current metrics.

    :param down_after_s: a host counts as down when its last report is older.
    :param max_instances: how many instances at most; 0 for none, which are
        not counted as omitted then.
    """

    def work(session: ty.Any) -> Metrics:
        after = now - NEWEST_S
        minutes = queries.minutes(session, after)
        instances = (
            queries.usage(session, after, max_instances)
            if max_instances
            else []
        )
        snapshots = queries.snapshots(session)
        version = snapshot.newest_version(session)
        return Metrics(
            hosts=_hosts(
                hosts.every(session, now, down_after_s),
                queries.unfolded(session),
                {one.host for one in snapshots if one.certified},
                {one.host: one.at for one in minutes},
                {one.host: one for one in queries.host_times(session, after)},
            ),
            reservations=reservations.count_by_host_and_state(session),
            events=queries.events(session, now - EVENTS_S),
            jobs=queries.jobs(session),
            snapshot_hosts=sum(not one.removed for one in snapshots),
            # Versions are milliseconds since the epoch; see
            # queries.counters.next_snapshot_versions().
            snapshot_changed_at=version / 1000 if version else None,
            instances=instances,
            omitted=(
                max(0, sum(one.instances for one in minutes) - len(instances))
                if max_instances
                else 0
            ),
        )

    return database.read(work)


def _hosts(
    found: Sequence[hosts.Host],
    unfolded: Mapping[str, int],
    certified: ty.Container[str],
    used_at: Mapping[str, float],
    times: Mapping[str, HostTime],
) -> list[HostFigures]:
    return [
        HostFigures(
            host,
            unfolded.get(host.name, 0),
            host.name in certified,
            used_at.get(host.name),
            times.get(host.name),
        )
        for host in found
    ]
