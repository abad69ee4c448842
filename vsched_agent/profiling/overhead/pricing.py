# SPDX-License-Identifier: Apache-2.0

"""A run that finds out what the host's work for I/O costs."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import os
import threading
import time
import typing as ty
import uuid as uuids

from vsched_agent.hypervisor import base
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import runner
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling.overhead import stage as stages
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.model import overhead

#: Returns what instances used since the last call.
Meter = Callable[[Sequence[base.Domain]], Sequence[messages.UsageSample]]


@dataclasses.dataclass(frozen=True, slots=True)
class Seen:
    """What was counted of one guest in a while, as whole numbers."""

    interval_us: int
    net_rx: int
    net_tx: int
    disk_read: int
    disk_write: int
    wakeups: int
    direct_us: int
    shared_us: int

    @classmethod
    def of(cls, sample: messages.UsageSample) -> 'Seen':
        """What a sample says."""
        return cls(
            sample.interval_us,
            sample.net_rx_packets,
            sample.net_tx_packets,
            sample.disk_read_requests,
            sample.disk_write_requests,
            sample.wakeups,
            sample.direct_us,
            sample.shared_us,
        )

    @property
    def cost_ns(self) -> int:
        """What the host spent on it."""
        return 1000 * (self.direct_us + self.shared_us)

    @property
    def observation(self) -> overhead.Observation:
        """In the model's form."""
        return overhead.Observation(
            {
                **{term: getattr(self, term) for term in overhead.EVENTS},
                overhead.WAKEUPS: self.wakeups,
                overhead.IDLE: self.interval_us / 1e6,
            },
            self.cost_ns,
        )


def look(
    stage: stages.Stage,
    meter: Meter,
    mix: Iterable[tuple[int, loads.Load]],
    window_s: float,
    stopping: threading.Event,
) -> list[Seen]:
    """What each guest of a stage costs under some loads.

    :param mix: pairs of a guest's number and a load.
    :raises runner.Cancelled: when it is to stop.
    """
    domains = [one.domain for one in stage.guests]
    with stage.under(mix):
        if stopping.wait(loads.WARM_UP_S):
            raise runner.Cancelled
        meter(domains)
        if stopping.wait(window_s):
            raise runner.Cancelled
        samples = {one.instance_uuid: one for one in meter(domains)}
    return [Seen.of(samples[domain.uuid]) for domain in domains]


class PricingRun:
    """One run.

    :param plan: what it measures.
    :param facts: of the kernel, as profiles have them.
    :param stage: not set up yet.
    :param meter: the agent's own.
    :param kept: what was measured before.
    :param stopping: ends the run when set.
    :param on_progress: called with (part done in ppm, what is done now).
    """

    def __init__(
        self,
        plan: loads.Plan,
        facts: Mapping[str, ty.Any],
        stage: stages.Stage,
        meter: Meter,
        kept: checkpoint.RunFile,
        stopping: threading.Event,
        on_progress: Callable[[int, str], None],
        quick: bool = False,
    ) -> None:
        self._plan = plan
        self._facts = facts
        self._stage = stage
        self._meter = meter
        self._kept = kept
        self._stopping = stopping
        self._on_progress = on_progress
        self._quick = quick

    def run(self, version: int) -> profiles.OverheadProfile:
        """Measure what is not measured yet, and fit prices.

        :param version: what the profile is numbered.
        :raises runner.Cancelled: when it was stopped before it was through.
        :raises errors.VschedError: when it can not be measured here.
        """
        started_at, load = time.time(), os.getloadavg()[0]
        wanted = loads.points(self._plan)
        self._on_progress(0, 'starting the calibration VM')
        with self._stage as stage:
            for number, (key, one) in enumerate(wanted):
                if key in self._kept.done:
                    continue
                self._on_progress(
                    1_000_000 * number // len(wanted),
                    'load %d of %d: %s' % (number + 1, len(wanted), one),
                )
                seen = look(
                    stage,
                    self._meter,
                    [(0, one)],
                    self._plan.window_s,
                    self._stopping,
                )[0]
                self._kept.add(key, dataclasses.astuple(seen))
        measured = [(one, Seen(*self._kept.done[key])) for key, one in wanted]
        return profile_of(
            measured,
            uuid=str(uuids.uuid4()),
            version=version,
            source=profiles.ProfileSource.BENCHMARK,
            started_at=started_at,
            finished_at=time.time(),
            load=load,
            quick=self._quick,
            complete=True,
            **{
                **self._facts,
                'features': {
                    **self._facts['features'],
                    **self._stage.features,
                },
            },
            notes=tuple(self._stage.notes),
        )


#: Loads differ in cost by a factor of a hundred, and each is to be foretold
#: as well as the others.
_FLOOR = 0.3


def fitted(
    seen: Iterable[Seen], terms: Sequence[str] = overhead.TERMS
) -> overhead.Fit:
    """The prices that explain what was counted."""
    return overhead.fit([one.observation for one in seen], terms, _FLOOR)


def profile_of(
    measured: Sequence[tuple[loads.Load, Seen]], **about: ty.Any
) -> profiles.OverheadProfile:
    """The profile that follows from what was measured.

    :param about: the fields that do not.
    """
    found = fitted([seen for _, seen in measured])
    notes = list(about.pop('notes', ()))
    if not found.good:
        notes.append(
            'the fit is poor and no price is used: it explains %.0f %% of '
            'the variance of %d observations, %.0f %% are needed'
            % (100 * found.r2, found.n, 100 * overhead.GOOD_R2)
        )
    return profiles.OverheadProfile(
        good=found.good,
        r2=found.r2,
        residual_ns=found.residual_ns,
        n=found.n,
        prices=prices_of(found),
        notes=tuple(notes),
        points=tuple(_point(load, seen, found) for load, seen in measured),
        **about,
    )


def prices_of(found: overhead.Fit) -> tuple[profiles.OverheadPrice, ...]:
    """A fit's prices as profiles have them."""
    return tuple(
        profiles.OverheadPrice(
            term,
            price.cost_ns,
            price.error_ns if math.isfinite(price.error_ns) else None,
        )
        for term, price in found.prices.items()
    )


def _point(
    load: loads.Load, seen: Seen, found: overhead.Fit
) -> profiles.OverheadPoint:
    return profiles.OverheadPoint(
        experiment=str(load.experiment),
        rate=load.rate,
        burst=load.burst,
        size_bytes=load.size_bytes,
        **dataclasses.asdict(seen),
        predicted_us=round(found.predict_ns(seen.observation.counts) / 1000),
    )
