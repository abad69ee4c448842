# SPDX-License-Identifier: Apache-2.0

"""Divides the CPU time of Xen's first domain (Dom0) among instances.

The first domain runs the other ends of the instances' devices. Xen counts
what it ran, and that total is divided, so nothing is lost or counted twice:

* Direct: what its threads ran that serve one instance only.
* Shared: what interrupts and other work cost that no thread owns, estimated
  by counts of packets and requests times their prices.
* Own: the rest.

Govindan et al. (VEE 2007, section 3.3) charge such prices times counts to
domains. The prices here are fitted to what the first domain ran beside its
threads, in intervals with different counts.

Times are whole numbers in microseconds, prices in nanoseconds per event.
"""

import collections
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import types
import typing as ty

from vsched_lib.model import overhead

#: Time that the first domain's processes ran in user mode, in seconds. What
#: they do is its own, and the kernel works for them in proportion.
PROCESSES = 'processes_s'
#: Intervals that a fit is made of: some minutes of one second each.
MOST_OBSERVATIONS = 300
LEAST_OBSERVATIONS = 20
#: Intervals between two fits.
FIT_EVERY = 10
#: An event is priced if it occurs this often per second in so many of them. A
#: single packet that comes while the first domain does something else would
#: get a price that explains that something.
FREQUENT_PER_S = 10
FREQUENT_INTERVALS = 10
#: The least ratio of a price and its standard error.
SIGNIFICANT = 3.0

_NONE: Mapping[str, float] = types.MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Work:
    """What the first domain did for an instance in one interval.

    :param direct_us: run time of its threads for the instance.
    :param counts: events by term; see :data:`overhead.EVENTS`.
    """

    direct_us: int
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)


class Charge(ty.NamedTuple):
    """The part of the first domain's time that is an instance's."""

    direct_us: int
    shared_us: int


class Division(ty.NamedTuple):
    """The first domain's time in one interval.

    :param charges: in the order of the instances.
    :param own_us: the rest. All of them add up to the total.
    """

    charges: tuple[Charge, ...]
    own_us: int


def divide(
    total_us: int,
    works: Sequence[Work],
    prices_ns: Mapping[str, float] = _NONE,
) -> Division:
    """Divide the first domain's time among instances and itself.

    Threads are counted by the first domain's clock, which may go on while
    the hypervisor runs others. Where they seem to have run longer than the
    first domain, each counts for its part. Likewise estimates where they
    exceed what threads leave.

    :param total_us: what the first domain ran, at least 0.
    :param prices_ns: by term; missing terms cost 0.
    """
    direct_us = _within([work.direct_us for work in works], total_us)
    left_us = total_us - sum(direct_us)
    shared_us = _within(
        [_estimate_us(work.counts, prices_ns) for work in works], left_us
    )
    return Division(
        tuple(map(Charge._make, zip(direct_us, shared_us, strict=True))),
        left_us - sum(shared_us),
    )


def _estimate_us(
    counts: Mapping[str, int], prices_ns: Mapping[str, float]
) -> int:
    return int(
        sum(
            prices_ns.get(event, 0.0) * counts.get(event, 0)
            for event in overhead.EVENTS
        )
        / 1000
    )


def _within(parts_us: Sequence[int], most_us: int) -> list[int]:
    """Return parts, scaled down to a bound if their sum exceeds it."""
    total_us = sum(parts_us)
    if total_us <= most_us:
        return list(parts_us)
    return [part_us * most_us // total_us for part_us in parts_us]


class Prices:
    """Prices of events, fitted to what the first domain ran.

    They are those of the newest fit that explains the observations well
    (:attr:`overhead.Fit.good`), and 0 before the first one. A load of the
    first domain's own that has nothing to do with events spoils fits and
    does not become their price.

    :param prices_ns: by event, to begin with.
    """

    def __init__(self, prices_ns: Mapping[str, float] = _NONE) -> None:
        #: By event; missing ones cost 0.
        self.prices_ns: Mapping[str, float] = dict(prices_ns)
        self._seen: collections.deque[overhead.Observation] = (
            collections.deque(maxlen=MOST_OBSERVATIONS)
        )
        self._new = 0

    def observe(
        self,
        total_us: int,
        interval_us: int,
        works: Sequence[Work],
        processes_us: int = 0,
    ) -> None:
        """Take one interval into account.

        All intervals have the same weight, so those of more than a second
        count by their mean second: a long one, such as that of a restart of
        the agent, would determine the fit alone.

        :param total_us: what the first domain ran.
        :param processes_us: of that, its processes in user mode.
        """
        beside_us = total_us - sum(work.direct_us for work in works)
        if interval_us <= 0 or beside_us < 0:
            return
        seconds = max(1.0, interval_us / 1e6)
        counts: dict[str, float] = {
            event: sum(work.counts.get(event, 0) for work in works) / seconds
            for event in overhead.EVENTS
        }
        counts[overhead.IDLE] = interval_us / 1e6 / seconds
        counts[PROCESSES] = processes_us / 1e6 / seconds
        self._seen.append(
            overhead.Observation(counts, beside_us * 1e3 / seconds)
        )
        self._new += 1
        if self._new < FIT_EVERY or len(self._seen) < LEAST_OBSERVATIONS:
            return
        self._new = 0
        found = self._fit()
        if found:
            self.prices_ns = found

    def _fit(self) -> Mapping[str, float]:
        """Return the prices of events that are significant, if any are.

        Events that always come together have large errors; without the least
        significant one the others get its part.
        """
        events = [
            event
            for event in overhead.EVENTS
            if sum(one.counts[event] >= FREQUENT_PER_S for one in self._seen)
            >= FREQUENT_INTERVALS
        ]
        while events:
            found = overhead.fit(
                self._seen, (*events, overhead.IDLE, PROCESSES)
            )
            if not found.good:
                break
            priced = {event: found.prices[event] for event in events}
            worst = min(events, key=lambda event: _significance(priced[event]))
            if _significance(priced[worst]) >= SIGNIFICANT:
                return {event: one.cost_ns for event, one in priced.items()}
            events.remove(worst)
        return _NONE


def _significance(price: overhead.Price) -> float:
    if not price.error_ns:
        # Exact, or nothing.
        return SIGNIFICANT if price.cost_ns else 0.0
    return price.cost_ns / price.error_ns
