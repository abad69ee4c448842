# SPDX-License-Identifier: Apache-2.0

"""Profiles of hosts, as agents report them.

Messages of their own, and parts of those of
:mod:`vsched_lib.contract.messages`.
"""

import dataclasses
import enum
import math
import typing as ty

from vsched_lib.contract import bounds
from vsched_lib.contract import wire
from vsched_lib.model import error
from vsched_lib.model import overhead


class ProfileSource(enum.StrEnum):
    """Where the samples of a profile come from."""

    BENCHMARK = 'benchmark'
    LIVE = 'live'


class Probe(enum.StrEnum):
    """The load that had the share."""

    THREAD = 'thread'
    VCPU = 'vcpu'


@dataclasses.dataclass(frozen=True, slots=True)
class Profile(wire.Message):
    """Base of all kinds of profiles.

    :param version: counts the host's profiles of one kind and source, from
        1.
    :param load: what ran meanwhile, as the load average of one minute.
    :param quick: a short run, whose bounds are wide.
    :param complete: every requested point was measured.
    :param features: what it was measured with, by name.
    :param notes: what was not measured, and why; one sentence each.
    """

    uuid: bounds.Uuid
    version: bounds.Number
    source: ProfileSource
    started_at: bounds.Seconds
    finished_at: bounds.Seconds
    kernel: bounds.Name
    tick_us: bounds.Microseconds
    cpus: bounds.Cpus
    load: bounds.Load
    quick: bool
    complete: bool
    features: bounds.Figures = dataclasses.field(
        default_factory=dict, kw_only=True
    )
    notes: ty.Annotated[tuple[bounds.Sentence, ...], bounds.Items(10_000)] = (
        dataclasses.field(default=(), kw_only=True)
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorPoint(wire.Message):
    """The errors at one share with one backend and period.

    From ``n`` on the fields are those of
    :class:`vsched_lib.model.error.Statistics`.

    :param share_ppm: what was reserved, in ppm of a CPU.
    :param contenders: hogs outside of the reservation meanwhile.
    :param probe: the load that had the share.
    :param window_us: the length of one sample.
    """

    backend: bounds.Word
    period_us: bounds.Microseconds
    share_ppm: bounds.Count
    contenders: bounds.Count
    probe: Probe
    window_us: bounds.Interval
    n: bounds.Samples
    mean_ppm: bounds.Error
    min_ppm: bounds.Error
    max_ppm: bounds.Error
    quantiles_ppm: ty.Annotated[tuple[bounds.Error, ...], bounds.Items(256, 1)]
    abs_p50_ppm: bounds.Error
    abs_p95_ppm: bounds.Error
    abs_p99_ppm: bounds.Error
    long_mean_ppm: bounds.Error
    counts: ty.Annotated[tuple[bounds.Samples, ...], bounds.Items(256, 1)]
    lowest_ppm: ty.Annotated[tuple[bounds.Error, ...], bounds.Items(256, 1)]
    largest_ppm: ty.Annotated[tuple[bounds.Error, ...], bounds.Items(256, 1)]

    @property
    def statistics(self) -> error.Statistics:
        """The statistics for the model."""
        return error.Statistics(
            **{
                field.name: getattr(self, field.name)
                for field in dataclasses.fields(error.Statistics)
            }
        )

    @classmethod
    def of(cls, found: error.Statistics, **where: ty.Any) -> ty.Self:
        """Return a point from the statistics of its samples.

        :param where: the fields before ``n``.
        """
        return cls(
            **where,
            **{
                field.name: getattr(found, field.name)
                for field in dataclasses.fields(found)
            },
        )


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorProfile(Profile):
    """The errors of one host's CPU allocation.

    Its features are those of the kernel's scheduler.
    """

    points: ty.Annotated[tuple[ErrorPoint, ...], bounds.Items(5_120)] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadPrice(wire.Message):
    """What one event of a kind costs a host.

    :param term: one of :data:`vsched_lib.model.overhead.TERMS`.
    :param error_ns: its standard error; None when the observations do not
        distinguish it from other prices.
    """

    term: bounds.Word
    cost_ns: bounds.Price
    error_ns: bounds.Figure | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadPoint(wire.Message):
    """What the host did for a calibration VM under one load.

    :param experiment: ``net-rx``, ``net-tx``, ``disk-read``, ``disk-write``
        or ``idle``.
    :param rate: packets or blocks a second that were requested.
    :param burst: how many of them at once.
    :param size_bytes: of each.
    :param interval_us: length of the measurement.
    :param net_rx: what was counted meanwhile; likewise the others.
    :param wakeups: how often the host's threads for it began to run.
    :param direct_us: CPU time that they used.
    :param shared_us: its part of the host's work that no thread owns.
    :param predicted_us: the cost of both by the prices.
    """

    experiment: bounds.Word
    rate: bounds.Count
    burst: bounds.Count
    size_bytes: bounds.Count
    interval_us: bounds.Interval
    net_rx: bounds.Count
    net_tx: bounds.Count
    disk_read: bounds.Count
    disk_write: bounds.Count
    wakeups: bounds.Count
    direct_us: bounds.CpuTime
    shared_us: bounds.CpuTime
    predicted_us: bounds.CpuTime


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadProfile(Profile):
    """The measured cost of a host's work for the I/O of instances.

    :param good: the prices explain the observations well enough.
    :param r2: the part of the costs' variance that they explain.
    :param residual_ns: the root mean square of the residuals.
    :param n: observations.
    """

    good: bool
    r2: bounds.Figure
    residual_ns: bounds.Figure
    n: bounds.Samples
    prices: ty.Annotated[tuple[OverheadPrice, ...], bounds.Items(64)] = ()
    points: ty.Annotated[tuple[OverheadPoint, ...], bounds.Items(1_000)] = ()

    @property
    def fit(self) -> overhead.Fit:
        """The prices for the model."""
        return overhead.Fit(
            {
                price.term: overhead.Price(
                    price.cost_ns,
                    math.inf if price.error_ns is None else price.error_ns,
                )
                for price in self.prices
            },
            self.r2,
            self.residual_ns,
            self.n,
        )
