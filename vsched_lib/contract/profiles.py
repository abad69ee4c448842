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

Messages like those of :mod:`vsched_lib.contract.messages`, which has the
error profiles.
"""

import dataclasses
import enum
import math
import typing as ty

from vsched_lib.contract import wire
from vsched_lib.model import overhead


class ProfileSource(enum.StrEnum):
    """Where the samples of a profile come from."""

    BENCHMARK = 'benchmark'
    LIVE = 'live'


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
class OverheadProfile(wire.Message):
    """What a host's work for the I/O of its instances was found to cost.

    :param version: counts the host's profiles of one source, from 1.
    :param features: what it was measured with, by name.
    :param load: what ran meanwhile, as the load average of one minute.
    :param quick: a short run.
    :param complete: every point asked for was measured.
    :param good: the prices explain what was seen well enough to be used.
    :param r2: the part of the costs' variance that they explain.
    :param residual_ns: the root mean square of what they do not, per
        observation.
    :param n: observations.
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
    good: bool
    r2: float
    residual_ns: float
    n: int
    features: dict[str, ty.Any] = dataclasses.field(default_factory=dict)
    prices: tuple[OverheadPrice, ...] = ()
    points: tuple[OverheadPoint, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fit(self) -> overhead.Fit:
        """The prices as the model sees them."""
        return overhead.Fit(
            {price.term: overhead.Price(
                price.cost_ns, math.inf if price.error_ns is None
                else price.error_ns) for price in self.prices},
            self.r2, self.residual_ns, self.n)
