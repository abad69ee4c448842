# SPDX-License-Identifier: Apache-2.0

"""Prices that follow what the host's instances show.

They begin at those of the newest benchmark and are kept apart from them: a
profile of their own (``live``) says what they have become, and how well they
explain what was seen.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import os
import time
import typing as ty
import uuid as uuids

from vsched_agent.profiling.overhead import pricing
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.model import overhead

#: As long an interval may be, in microseconds, to be one.
_LENGTHS_US = (500_000, 2_000_000)


class LivePrices:
    """Refines prices by what instances use.

    Samples a bounded number of instances in each pass, others in the next
    one, so that its cost does not grow with the host.

    :param instances: the largest number of them.
    """

    def __init__(self, instances: int) -> None:
        self._instances = instances
        self._next = 0
        self._start: profiles.OverheadProfile | None = None
        self._refinement: overhead.Refinement | None = None
        self._begin()

    def follow(self, start: profiles.OverheadProfile | None) -> None:
        """Begin at a profile's prices, unless that is where it began.

        :param start: one that may be used; None ends it.
        """
        if start is self._start:
            return
        self._start = start
        self._refinement = (
            None if start is None else overhead.Refinement(start.fit)
        )
        self._begin()

    def look(self, samples: Sequence[messages.UsageSample]) -> None:
        """Take a pass's samples into account."""
        usable = [
            one
            for one in samples
            if _LENGTHS_US[0] <= one.interval_us <= _LENGTHS_US[1]
        ]
        if self._refinement is None or not usable:
            return
        first = self._next % len(usable)
        chosen = (usable[first:] + usable[:first])[: self._instances]
        self._next = first + len(chosen)
        for sample in chosen:
            seen = pricing.Seen.of(sample).observation
            surprise = self._refinement.observe(seen)
            self._n += 1
            self._left += surprise**2
            # Welford's running variance.
            off = seen.cost_ns - self._mean
            self._mean += off / self._n
            self._spread += off * (seen.cost_ns - self._mean)

    def profile(
        self, version: int, facts: Mapping[str, ty.Any]
    ) -> profiles.OverheadProfile | None:
        """What the prices are now; None when nothing was seen.

        :param facts: of the kernel, as in a profile.
        """
        if self._refinement is None or not self._n:
            return None
        r2 = 1 - self._left / self._spread if self._spread else 0.0
        found = overhead.Fit(
            {
                term: overhead.Price(cost_ns, float('inf'))
                for term, cost_ns in self._refinement.prices_ns.items()
            },
            r2,
            (self._left / self._n) ** 0.5,
            self._n,
        )
        return profiles.OverheadProfile(
            uuid=str(uuids.uuid4()),
            version=version,
            source=profiles.ProfileSource.LIVE,
            started_at=self._since,
            finished_at=time.time(),
            load=os.getloadavg()[0],
            quick=False,
            complete=True,
            good=found.good,
            r2=r2,
            residual_ns=found.residual_ns,
            n=self._n,
            prices=pricing.prices_of(found),
            **facts,
        )

    def _begin(self) -> None:
        self._since = time.time()
        self._n = 0
        self._left = self._mean = self._spread = 0.0
