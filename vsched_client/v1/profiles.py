# SPDX-License-Identifier: Apache-2.0

"""Profiles of hosts: how wrong CPU allocation is, and what I/O costs."""

from collections.abc import Iterator
from collections.abc import Sequence
import typing as ty

from vsched_client.v1 import base
from vsched_client.v1 import jobs

ERROR, OVERHEAD = 'error', 'overhead'
KINDS = (ERROR, OVERHEAD)


class ErrorBound(ty.TypedDict):
    """Bounds of errors; None when there are too few windows."""

    confidence_pct: int
    lower_ppm: int | None
    size_ppm: int | None


class ErrorPoint(ty.TypedDict):
    """The errors at one share, backend and period."""

    backend: str
    period_us: int
    share_ppm: int
    contenders: int
    probe: str
    window_us: int
    n: int
    mean_ppm: int
    min_ppm: int
    max_ppm: int
    quantiles_ppm: list[int]
    abs_p50_ppm: int
    abs_p95_ppm: int
    abs_p99_ppm: int
    long_mean_ppm: int
    counts: list[int]
    lowest_ppm: list[int]
    largest_ppm: list[int]
    bounds: list[ErrorBound]


class OverheadPrice(ty.TypedDict):
    """The CPU time that one event costs."""

    term: str
    cost_ns: float
    error_ns: float | None


class OverheadPoint(ty.TypedDict):
    """One measurement of what I/O costs."""

    experiment: str
    rate: int
    burst: int
    size_bytes: int
    interval_us: int
    net_rx: int
    net_tx: int
    disk_read: int
    disk_write: int
    wakeups: int
    direct_us: int
    shared_us: int
    predicted_us: int


class _Profile(ty.TypedDict, total=False):
    uuid: str
    host: str
    source: str
    version: int
    started_at: str
    finished_at: str
    kernel: str
    tick_us: int
    cpus: int
    load: float
    quick: bool
    complete: bool
    features: dict[str, ty.Any]
    notes: list[str]


class ErrorProfile(_Profile, total=False):
    """An error profile; those of a page have no points."""

    edges_ppm: list[int]
    quantile_parts_ppm: list[int]
    points: list[ErrorPoint]


class OverheadProfile(_Profile, total=False):
    """An overhead profile; those of a page have no points."""

    good: bool
    r2: float
    residual_ns: float
    n: int
    prices: list[OverheadPrice]
    points: list[OverheadPoint]


Profile = ErrorProfile | OverheadProfile


class Profiles(base.Noun):
    """``/v1/hosts/{name}/profiles/{kind}``."""

    def list(
        self,
        host: str,
        kind: str,
        source: str | None = None,
        limit: int | None = None,
    ) -> Iterator[Profile]:
        """Iterate over the profiles that are kept, newest first.

        :param kind: one of :data:`KINDS`.
        :param source: ``benchmark`` or ``live``; None for both.
        :param limit: the most profiles to return; None for all.
        """
        return ty.cast(
            Iterator[Profile],
            self._api.pages(
                '%s_profiles' % kind,
                'hosts',
                host,
                'profiles',
                kind,
                'versions',
                query={'source': source},
                limit=limit,
            ),
        )

    def newest(
        self,
        host: str,
        kind: str,
        source: str | None = None,
        version: int | None = None,
    ) -> Sequence[Profile]:
        """Return the newest profile of each source, with its points.

        :param source: only of this one.
        :param version: the newest of this version, not of all.
        """
        answer = self._api.call(
            'GET',
            'hosts',
            host,
            'profiles',
            kind,
            query={'source': source, 'version': version},
        )
        return ty.cast(
            Sequence[Profile], answer.get('%s_profiles' % kind) or ()
        )

    def csv(
        self,
        host: str,
        kind: str,
        source: str | None = None,
        version: int | None = None,
    ) -> str:
        """Return the points of one profile as a table in CSV.

        :param source: ``benchmark`` if None.
        """
        return self._api.send(
            'GET',
            'hosts',
            host,
            'profiles',
            kind,
            query={'source': source, 'version': version, 'format': 'csv'},
            headers={'Accept': 'text/csv'},
        ).text

    def create(self, host: str, kind: str, **fields: ty.Any) -> jobs.Job:
        """Have a host measure itself; return the job.

        :param fields: what is measured, see the API reference.
        """
        return ty.cast(
            jobs.Job,
            self._api.one(
                'job', 'POST', 'hosts', host, 'profiles', kind, body=fields
            ),
        )
