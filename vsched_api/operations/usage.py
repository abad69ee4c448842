# SPDX-License-Identifier: Apache-2.0

"""Read the CPU usage of instances and hosts."""

from collections.abc import Mapping
import dataclasses
import enum
from fractions import Fraction
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import host_time
from vsched_api.db.queries import usage as queries
from vsched_api.db.queries import usage_buckets as bucket_queries
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import markers
from vsched_api.operations import rollups
from vsched_api.operations import usage_counts
from vsched_lib.model import executions
from vsched_lib.model import reservation as model


class Resolution(enum.StrEnum):
    """The granularity of usage data."""

    RAW = 'raw'
    MINUTE = 'minute'
    HOUR = 'hour'


class Subject(enum.StrEnum):
    """The subjects of usage data."""

    INSTANCES = 'instances'
    HOSTS = 'hosts'


_LENGTHS_S = {
    Resolution.MINUTE: rollups.MINUTE_S,
    Resolution.HOUR: rollups.HOUR_S,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Sample(usage_counts.Executions):
    """CPU time of one instance in one interval; durations in µs.

    :param at: end of the interval, in seconds since the epoch.
    """

    number: int
    at: float
    host: str
    instance_uuid: str
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None

    @property
    def _covered_us(self) -> int:
        return self.interval_us

    @property
    def guest_mcpu(self) -> int | None:
        """Return the vCPUs' usage in milli-CPU; None without a duration."""
        return _mcpu(self.guest_us, self.interval_us)

    @property
    def promised_mcpu(self) -> int | None:
        """Return the reservation, in milli-CPU; None without one."""
        return _mcpu(self.promised_us, self.interval_us)

    @property
    def error_ppm(self) -> int | None:
        """Return (got − reserved)/reserved: above 0 when it got more.

        An idle instance is far below 0 without any violation.
        """
        return _error_ppm(self.guest_us, self.promised_us)


@dataclasses.dataclass(frozen=True, slots=True)
class Bucket(usage_counts.Executions):
    """Sums over the samples of a minute or an hour; durations in µs.

    :param at: end of the minute or hour, in seconds since the epoch.
    :param instance_uuid: None for the sum of all instances of the host.
    :param samples: number of samples.
    :param instances: number of instances.
    :param first_at: when the first interval began.
    :param last_at: when the last one ended.
    :param promised_us: None when no sample has a reservation.
    :param promised_guest_us: ``guest_us`` of the samples with a reservation.
    """

    number: int
    at: float
    host: str
    instance_uuid: str | None
    samples: int
    instances: int
    first_at: float
    last_at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None
    promised_guest_us: int

    @property
    def _covered_us(self) -> int:
        # The intervals of several instances overlap: their sum is not the
        # covered time.
        if self.instance_uuid is None:
            return round((self.last_at - self.first_at) * 1_000_000)
        return self.interval_us

    @property
    def guest_mcpu(self) -> int | None:
        """Return the vCPUs' usage in milli-CPU; None without a duration."""
        return _mcpu(self.guest_us, self._covered_us)

    @property
    def promised_mcpu(self) -> int | None:
        """Return the reservation, in milli-CPU; None without one."""
        return _mcpu(self.promised_us, self._covered_us)

    @property
    def error_ppm(self) -> int | None:
        """Return (got − reserved)/reserved of samples with a reservation."""
        return _error_ppm(self.promised_guest_us, self.promised_us)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HostSample:
    """Usage of the CPUs of a host; see ``messages.HostUsage``.

    :param samples: number of intervals in the sum; None for a single interval.
    :param first_at: when the first interval began.
    :param last_at: when the last one ended.
    :param cpus: number of online CPUs; None in a sum.
    :param cpu_us: the CPUs times the intervals.
    """

    number: int
    at: float
    host: str
    samples: int | None = None
    first_at: float | None = None
    last_at: float | None = None
    interval_us: int
    cpus: int | None = None
    cpu_us: int
    idle_us: int
    steal_us: int
    irq_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


#: Filters that select instances, with their names in requests.
_SELECTING = {
    'instance_uuids': 'instance_uuid',
    'project_id': 'project_id',
    'server_name': 'server_name',
    'flavor_name': 'flavor_name',
}


def _selection(filters: Mapping[str, ty.Any]) -> dict[str, ty.Any]:
    """Return the filters that select instances."""
    return {
        name: filters[name]
        for name in _SELECTING
        if filters.get(name) not in (None, (), [])
    }


def buckets(
    database: db.Database,
    resolution: Resolution,
    limit: int,
    marker: int | None = None,
    newest_first: bool = False,
    **filters: ty.Any,
) -> list[Bucket]:
    """Return sums of instances or of hosts, in the order of time.

    Those of instances when the filters select some.

    :param resolution: not raw.
    :param marker: number of the last bucket of the previous page.
    :param filters: as for :func:`vsched_api.db.queries.usage_buckets.page`.
    :raises errors.Invalid: when the marker is not of this series, or the range
        ends before it starts.
    """
    kind: bucket_queries.Kind = (
        models.UsageBucket if _selection(filters) else models.HostUsageBucket
    )
    return [
        _bucket(found)
        for found in _buckets(
            database, kind, resolution, limit, marker, newest_first, filters
        )
    ]


def page(
    database: db.Database,
    limit: int,
    marker: int | None = None,
    newest_first: bool = False,
    **filters: ty.Any,
) -> list[Sample]:
    """Return samples in the order of time.

    :param marker: number of the last sample of the previous page.
    :param filters: as for :func:`vsched_api.db.queries.usage.page`.
    :raises errors.Invalid: when the marker is not a stored sample of the
        instances requested, or the range ends before it starts.
    """
    return [
        _sample(found)
        for found in _samples(
            database, queries, limit, marker, newest_first, filters
        )
    ]


def of_hosts(
    database: db.Database,
    resolution: Resolution,
    limit: int,
    marker: int | None = None,
    newest_first: bool = False,
    **filters: ty.Any,
) -> list[HostSample]:
    """Return the usage of the CPUs of hosts, in the order of time.

    :param marker: number of the last item of the previous page.
    :param filters: as for :func:`vsched_api.db.queries.host_time.page`.
    :raises errors.Invalid: when the marker is not of this series, the range
        ends before it starts, or an instance is requested.
    """
    for name in _selection(filters):
        raise errors.Invalid(
            '%s: the usage of hosts is not divided by instance; leave it '
            'out, or ask of=instances' % _SELECTING[name]
        )
    filters = {
        name: value
        for name, value in filters.items()
        if name not in _SELECTING
    }
    if resolution is Resolution.RAW:
        return [
            _host_sample(found)
            for found in _samples(
                database, host_time, limit, marker, newest_first, filters
            )
        ]
    return [
        _host_bucket(found)
        for found in _buckets(
            database,
            models.HostTimeBucket,
            resolution,
            limit,
            marker,
            newest_first,
            filters,
        )
    ]


def _samples(
    database: db.Database,
    kind: ty.Any,
    limit: int,
    marker: int | None,
    newest_first: bool,
    filters: dict[str, ty.Any],
) -> ty.Sequence[ty.Any]:
    _check_range(filters)
    only = _selection(filters)

    def work(session: ty.Any) -> ty.Any:
        after = markers.position(
            marker,
            lambda number: kind.position(session, number, **only),
            'no sample has it',
        )
        return kind.page(session, limit, after, newest_first, **filters)

    return ty.cast(ty.Sequence[ty.Any], database.read(work))


def _buckets(
    database: db.Database,
    kind: bucket_queries.Kind,
    resolution: Resolution,
    limit: int,
    marker: int | None,
    newest_first: bool,
    filters: dict[str, ty.Any],
) -> ty.Sequence[bucket_queries.Found]:
    _check_range(filters)
    length_s = _LENGTHS_S[resolution]

    def work(session: ty.Any) -> ty.Sequence[bucket_queries.Found]:
        after = markers.position(
            marker,
            lambda number: bucket_queries.position(
                session, kind, number, length_s, **_selection(filters)
            ),
            'nothing of this series has it',
        )
        return bucket_queries.page(
            session, kind, length_s, limit, after, newest_first, **filters
        )

    return database.read(work)


def _check_range(filters: dict[str, ty.Any]) -> None:
    start, end = filters.get('start'), filters.get('end')
    if start is not None and end is not None and end < start:
        raise errors.Invalid('end: it is before start')


def _error_ppm(got_us: int, promised_us: int | None) -> int | None:
    if not promised_us:
        return None
    return round(Fraction(got_us - promised_us, promised_us) * 1_000_000)


def _mcpu(used_us: int | None, interval_us: int) -> int | None:
    if used_us is None or interval_us < 1:
        return None
    return round(Fraction(used_us * model.MCPU_PER_CPU, interval_us))


_TIMES = (
    'interval_us',
    'idle_us',
    'steal_us',
    'irq_us',
    'guest_us',
    'direct_us',
    'shared_us',
    'own_us',
)


def _sample(found: queries.Found) -> Sample:
    one = found.sample
    counts: dict[str, ty.Any] = executions.by_name(one.executions)
    return Sample(
        number=found.number,
        at=one.at,
        host=found.host,
        instance_uuid=one.instance_uuid,
        interval_us=one.interval_us,
        guest_us=one.guest_us,
        wait_us=one.wait_us,
        promised_us=one.promised_us,
        **{name: getattr(one, name) for name in usage_counts.WORK},
        **counts,
    )


def _bucket(found: bucket_queries.Found) -> Bucket:
    row: ty.Any = found.bucket
    known = row.counted_samples == row.samples
    counts: dict[str, ty.Any] = {
        name: getattr(row, name) if known else None
        for name in executions.COUNTS
    }
    return Bucket(
        number=row.id,
        at=row.at,
        host=found.host,
        instance_uuid=getattr(row, 'instance_uuid', None),
        samples=row.samples,
        instances=getattr(row, 'instances', 1),
        first_at=row.first_at,
        last_at=row.last_at,
        interval_us=row.interval_us,
        guest_us=row.guest_us,
        wait_us=row.wait_us,
        promised_us=row.promised_us,
        promised_guest_us=row.promised_guest_us,
        **{name: getattr(row, name) for name in usage_counts.WORK},
        **counts,
    )


def _host_sample(found: host_time.Found) -> HostSample:
    row = found.sample
    return HostSample(
        number=row.id,
        at=row.at,
        host=found.host,
        cpus=row.cpus,
        cpu_us=row.cpus * row.interval_us,
        **{name: getattr(row, name) for name in _TIMES},
    )


def _host_bucket(found: bucket_queries.Found) -> HostSample:
    row: ty.Any = found.bucket
    return HostSample(
        number=row.id,
        at=row.at,
        host=found.host,
        samples=row.samples,
        first_at=row.first_at,
        last_at=row.last_at,
        cpu_us=row.cpu_us,
        **{name: getattr(row, name) for name in _TIMES},
    )
