# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What hosts have measured of themselves, as agents tell it.

Messages of their own, and parts of those of
:mod:`vsched_lib.contract.messages`.
"""

import dataclasses
import enum
import math
import typing as ty

from vsched_lib.contract import wire
from vsched_lib.model import error
from vsched_lib.model import overhead


class ProfileSource(enum.StrEnum):
    """Where the samples of a profile come from."""

    BENCHMARK = 'benchmark'
    LIVE = 'live'


class Probe(enum.StrEnum):
    """What was given the share."""

    THREAD = 'thread'
    VCPU = 'vcpu'


@dataclasses.dataclass(frozen=True, slots=True)
class Profile(wire.Message):
    """What every kind of profile says of itself.

    :param version: counts the host's profiles of one kind and source, from
        1.
    :param load: what ran meanwhile, as the load average of one minute.
    :param quick: a short run, whose bounds are wide.
    :param complete: every point asked for was measured.
    :param features: what it was measured with, by name.
    :param notes: what was not measured, and why; one sentence each.
    """

    uuid: str
    version: int
    source: ProfileSource
    started_at: float
    finished_at: float
    kernel: str
    tick_us: int
    cpus: int
    load: float
    quick: bool
    complete: bool
    features: dict[str, ty.Any] = dataclasses.field(
        default_factory=dict, kw_only=True)
    notes: tuple[str, ...] = dataclasses.field(default=(), kw_only=True)


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorPoint(wire.Message):
    """What was found at one share under one backend and period.

    From ``n`` on the fields are those of
    :class:`vsched_lib.model.error.Statistics`.

    :param share_ppm: what was promised, in ppm of a CPU.
    :param contenders: hogs outside of the reservation meanwhile.
    :param probe: what was given the share.
    :param window_us: the length of one look.
    """

    backend: str
    period_us: int
    share_ppm: int
    contenders: int
    probe: Probe
    window_us: int
    n: int
    mean_ppm: int
    min_ppm: int
    max_ppm: int
    quantiles_ppm: tuple[int, ...]
    abs_p50_ppm: int
    abs_p95_ppm: int
    abs_p99_ppm: int
    long_mean_ppm: int
    counts: tuple[int, ...]
    lowest_ppm: tuple[int, ...]
    largest_ppm: tuple[int, ...]

    @property
    def statistics(self) -> error.Statistics:
        """The point as the model sees it."""
        return error.Statistics(**{
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(error.Statistics)})

    @classmethod
    def of(cls, found: error.Statistics, **where: ty.Any) -> ty.Self:
        """A point from what the model made of its samples.

        :param where: the fields before ``n``.
        """
        return cls(**where, **{
            field.name: getattr(found, field.name)
            for field in dataclasses.fields(found)})


@dataclasses.dataclass(frozen=True, slots=True)
class ErrorProfile(Profile):
    """How wrong one host's CPU allocation was found to be.

    Its features are what the kernel's scheduler can and does.
    """

    points: tuple[ErrorPoint, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadPrice(wire.Message):
    """What one event of a kind costs a host.

    :param term: one of :data:`vsched_lib.model.overhead.TERMS`.
    :param error_ns: its standard error; None when the observations do not
        tell it from other prices.
    """

    term: str
    cost_ns: float
    error_ns: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadPoint(wire.Message):
    """What the host did for a calibration VM under one load.

    :param experiment: ``net-rx``, ``net-tx``, ``disk-read``, ``disk-write``
        or ``idle``.
    :param rate: packets or blocks a second that were asked for.
    :param burst: how many of them at once.
    :param size_bytes: of each.
    :param interval_us: how long it was looked at.
    :param net_rx: what was counted meanwhile; so of the others.
    :param wakeups: how often the host's threads for it began to run.
    :param direct_us: CPU time that they used.
    :param shared_us: its part of the host's work that no thread owns.
    :param predicted_us: what the prices say of both.
    """

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


@dataclasses.dataclass(frozen=True, slots=True)
class OverheadProfile(Profile):
    """What a host's work for the I/O of its instances was found to cost.

    :param good: the prices explain what was seen well enough to be used.
    :param r2: the part of the costs' variance that they explain.
    :param residual_ns: the root mean square of what they do not, per
        observation.
    :param n: observations.
    """

    good: bool
    r2: float
    residual_ns: float
    n: int
    prices: tuple[OverheadPrice, ...] = ()
    points: tuple[OverheadPoint, ...] = ()

    @property
    def fit(self) -> overhead.Fit:
        """The prices as the model sees them."""
        return overhead.Fit(
            {price.term: overhead.Price(
                price.cost_ns, math.inf if price.error_ns is None
                else price.error_ns) for price in self.prices},
            self.r2, self.residual_ns, self.n)
