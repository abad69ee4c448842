# SPDX-License-Identifier: Apache-2.0

"""CPU time that instances got, and what hosts did."""

from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_client.v1 import base

#: The longest window of totals, in seconds.
MAX_WINDOW_S = 3_600

INSTANCES, HOSTS = 'instances', 'hosts'
RAW, MINUTE, HOUR = 'raw', 'minute', 'hour'


class _OfInstances(ty.TypedDict, total=False):
    host: str | None
    at: str
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    guest_mcpu: int | None
    promised_mcpu: int | None
    error_ppm: int | None
    direct_us: int
    direct_wait_us: int
    shared_us: int
    wakeups: int
    net_rx_packets: int
    net_tx_packets: int
    disk_read_requests: int
    disk_write_requests: int
    executions: int | None
    emulator_wakeups: int | None
    emulator_wait_us: int | None
    iothread_wakeups: int | None
    iothread_wait_us: int | None
    vhost_wakeups: int | None
    vhost_wait_us: int | None
    executions_per_s: float | None
    io_per_execution: float | None
    wait_per_execution_us: float | None
    wakeups_per_s: float | None
    io_per_wakeup: float | None
    wait_per_wakeup_us: float | None
    emulator_wakeups_per_s: float | None
    emulator_wait_per_wakeup_us: float | None
    iothread_wakeups_per_s: float | None
    iothread_wait_per_wakeup_us: float | None
    vhost_wakeups_per_s: float | None
    vhost_wait_per_wakeup_us: float | None
    server_name: str | None
    project_id: str | None
    flavor_name: str | None


class InstanceSample(_OfInstances, total=False):
    """What one instance got in one interval."""

    instance_uuid: str


class InstanceSum(_OfInstances, total=False):
    """A minute or an hour of one instance, or of all of one host."""

    instance_uuid: str | None
    samples: int
    instances: int
    first_at: str
    last_at: str
    promised_guest_us: int


class _OfHosts(ty.TypedDict, total=False):
    host: str
    at: str
    interval_us: int
    cpu_us: int
    idle_us: int
    steal_us: int
    irq_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


class HostSample(_OfHosts, total=False):
    """What the CPUs of one host did in one interval."""

    cpus: int | None


class HostSum(_OfHosts, total=False):
    """A minute or an hour of one host."""

    samples: int
    first_at: str
    last_at: str


class InstanceTotal(ty.TypedDict, total=False):
    """What one instance got on one host in the newest part of the time."""

    instance_uuid: str
    host: str | None
    at: str
    samples: int
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    promised_guest_us: int
    direct_us: int
    shared_us: int
    server_name: str | None
    project_id: str | None
    flavor_name: str | None


class Window(ty.TypedDict, total=False):
    """The part of the time that the totals of one host are of."""

    host: str
    newest_at: str | None
    covered_us: int | None


#: All of an answer are of one kind.
Sample = InstanceSample | InstanceSum | HostSample | HostSum


@dataclasses.dataclass(slots=True)
class Total:
    """What one instance got over some intervals; durations in microseconds.

    :param at: the end of the newest interval.
    :param host: where it was in that.
    :param server_name: as Nova knows it; None when unknown, as its project
        and its flavor may be.
    :param reserved_us: of the intervals with a reservation.
    :param reserved_guest_us: ``guest_us`` of these.
    """

    instance_uuid: str
    host: str | None
    at: str
    server_name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None
    samples: int = 0
    interval_us: int = 0
    guest_us: int = 0
    wait_us: int = 0
    host_us: int = 0
    reserved_us: int = 0
    reserved_guest_us: int = 0

    def add(self, found: InstanceTotal) -> None:
        """Add what the API has summed of one host."""
        if found['at'] > self.at:
            # It was migrated.
            self.at, self.host = found['at'], found['host']
        self.samples += found['samples']
        self.interval_us += found['interval_us']
        self.guest_us += found['guest_us']
        self.wait_us += found['wait_us']
        self.host_us += found['direct_us'] + found['shared_us']
        self.reserved_us += found['promised_us'] or 0
        self.reserved_guest_us += found['promised_guest_us']

    def mcpu(self, duration_us: int) -> int | None:
        """Return a duration as a part of the intervals, in milli-CPU."""
        if not self.interval_us:
            return None
        return round(duration_us * 1000 / self.interval_us)

    @property
    def error_ppm(self) -> int | None:
        """Return (got - reserved) / reserved; None without a reservation."""
        if not self.reserved_us:
            return None
        return round(
            (self.reserved_guest_us - self.reserved_us)
            * 1_000_000
            / self.reserved_us
        )


@dataclasses.dataclass(slots=True)
class Totals:
    """What instances got in the newest part of the time.

    :param instances: each instance.
    :param hosts: the number of hosts with samples; 0 for those who may not
        see hosts.
    :param cut: by host that has more samples in the window than were read,
        the length of the part of the window that these cover, in seconds;
        empty for those who may not see hosts.
    """

    instances: list[Total]
    hosts: int
    cut: dict[str, float]


class Usage(base.Noun):
    """``/v1/usage``."""

    def list(
        self,
        of: str = INSTANCES,
        resolution: str = RAW,
        instance_uuids: Sequence[str] = (),
        host: str | None = None,
        start: str | None = None,
        end: str | None = None,
        newest_first: bool = False,
        limit: int | None = None,
        project_id: str | None = None,
        server_name: str | None = None,
        flavor_name: str | None = None,
    ) -> Iterator[Sample]:
        """Iterate over samples or sums.

        :param instance_uuids: only of these instances; none for all.
        :param start: only what ended after this time, in ISO 8601.
        :param end: only what ended at this time or before.
        :param limit: the most to return; None for all.
        :param project_id: only of servers of this project.
        :param server_name: only of servers that Nova knows by it.
        :param flavor_name: only of servers of this flavor.
        """
        return ty.cast(
            Iterator[Sample],
            self._api.pages(
                'usage',
                'usage',
                query={
                    'of': of,
                    'resolution': resolution,
                    'instance_uuid': base.repeated(instance_uuids),
                    'project_id': project_id,
                    'server_name': server_name,
                    'flavor_name': flavor_name,
                    'host': host,
                    'start': start,
                    'end': end,
                    'sort_dir': 'desc' if newest_first else 'asc',
                },
                limit=limit,
            ),
        )

    def totals(
        self, window_s: float, host: str | None = None, **filters: str | None
    ) -> Totals:
        """Return what instances got in the newest part of the time.

        Hosts report at different times, and their clocks differ: the window
        of each host ends with its own newest sample. Each instance is
        counted, however many samples there are: hosts with too many of them
        have a shorter window.

        :param window_s: its length, at most :data:`MAX_WINDOW_S`.
        :param host: only those of this host; None for those of all hosts
            that are up.
        :param filters: ``project_id``, ``server_name`` and ``flavor_name``,
            as of :meth:`list`.
        """
        found: dict[str, Total] = {}
        reporting, cut = 0, {}
        for page in self._api.answers(
            'totals',
            'usage',
            'totals',
            query={
                'window_us': round(window_s * 1_000_000),
                'host': host,
                **filters,
            },
        ):
            windows: ty.Sequence[Window] = page['hosts']
            totals: ty.Sequence[InstanceTotal] = page['totals']
            for window in windows:
                reporting += window['newest_at'] is not None
                if window['covered_us'] is not None:
                    cut[window['host']] = window['covered_us'] / 1_000_000
            for one in totals:
                uuid = one['instance_uuid']
                if uuid not in found:
                    found[uuid] = _nothing_of(one)
                found[uuid].add(one)
        return Totals([*found.values()], reporting, cut)


def _nothing_of(found: InstanceTotal) -> Total:
    """Return the total of no interval of the instance of a sum."""
    return Total(
        found['instance_uuid'],
        found['host'],
        found['at'],
        found.get('server_name'),
        found.get('project_id'),
        found.get('flavor_name'),
    )
