# SPDX-License-Identifier: Apache-2.0

"""Budgets of I/O threads, and how they are charged to instances.

A thread that serves an instance's I/O gets a budget by what it used and
waited. Where there is room, the budget also covers requests that arrive at the
same time, which a mean does not show. The guest gets what the host's work
leaves of its reservation. Shares are parts of one CPU.
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

from vsched_lib.model import reservation

#: Seconds over which a debt is paid back.
SPREAD_S = 5.0
#: The largest debt, in seconds of the reservation.
MOST_DEBT_S = 10.0
#: The least that a guest keeps, as a part of its reservation: it needs CPU
#: time to reduce its I/O.
GUEST_FLOOR = 0.1
#: How far one interval moves what the host's work is expected to be. Where
#: the guest's own work causes it, this converges while a second of the
#: guest's costs the host less than three.
_WEIGHT = 0.5
#: The smallest change of a guest's runtime, as a part of its reservation;
#: smaller differences add up to debt, which is paid back.
_GUEST_STEP = 0.005
#: The same of domains of Xen: the toolstack starts some processes for each
#: change, which the first domain runs.
_DOMAIN_STEP = 0.02

#: The largest need in a short window that a budget covers, as a multiple of
#: the mean.
MOST_PEAK = 5.0
#: Length of such a window, in seconds: the shortest period into which one of
#: 20 ms is divided on most hosts.
PEAK_WINDOW_S = 0.005
#: The part of all windows in which more may be needed, and its quantile of
#: the standard normal distribution.
_PEAK_MISSES, _PEAK_QUANTILE = 0.01, 2.326
#: From so many requests in a window on their number is about normally
#: distributed.
_PEAK_MANY = 100.0

# A thread that uses this part of its budget and waits this part of its time
# needs more than it has.
_USED = 0.7
_WAITED = 0.05
# A thread that uses less than this part of the smallest budget is idle.
_IDLE = 0.1
# In an interval in which it ran for less than this part of the most that it
# ran in one, it served less than usual.
_BUSY = 0.5
#: A budget grows from this part on, and shrinks from that.
_GROW, _SHRINK = 0.05, 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class IoPolicy:
    """How budgets of I/O threads are sized.

    :param headroom: budget over need, above 1.
    :param window_s: length of the window whose largest need counts; a budget
        does not shrink sooner.
    :param floor: the least share of one thread.
    :param most: the largest share of one thread.
    :raises ValueError: on a figure out of range.
    """

    headroom: float = 1.5
    window_s: float = 30.0
    floor: float = 0.02
    most: float = 0.9

    def __post_init__(self) -> None:
        if self.headroom < 1:
            raise ValueError('headroom: %r is below 1' % self.headroom)
        if self.window_s <= 0:
            raise ValueError('window_s: %r is not above 0' % self.window_s)
        if not 0 < self.floor <= self.most <= 1:
            raise ValueError(
                'floor: %r and most: %r are not 0 < floor <= '
                'most <= 1' % (self.floor, self.most)
            )


class IoNeed:
    """What one thread needs, estimated from what it did.

    :param policy: how its budget is sized.
    """

    def __init__(self, policy: IoPolicy) -> None:
        self._policy = policy
        # (length in s, share, part of the time that it ran) of each interval
        # in the window.
        self._seen: collections.deque[tuple[float, float, float]] = (
            collections.deque()
        )
        self._seen_s = 0.0
        self._changed_s = 0.0
        self._starves = False

    def observe(
        self,
        run_us: float,
        wait_us: float,
        interval_us: float,
        held: float = 0.0,
    ) -> None:
        """Take one interval into account.

        What a thread would have used without waiting is unknown: one that
        starves is taken to need twice what it got, and no more than it was
        runnable. So its budget grows by steps.

        :param run_us: time that it ran.
        :param wait_us: time that it was runnable and did not run.
        :param held: its share in that interval; 0 when it had none.
        """
        if interval_us <= 0:
            return
        ran, waited = run_us / interval_us, wait_us / interval_us
        need = ran
        self._starves = waited > _WAITED and (
            ran >= _USED * held if held else waited > ran
        )
        if self._starves:
            need = min(ran + waited, max(2 * ran, self._policy.floor))
        length_s = interval_us / 1e6
        self._seen.append((length_s, need, ran))
        self._seen_s += length_s
        self._changed_s += length_s
        while (
            len(self._seen) > 1
            and self._seen_s - self._seen[0][0] >= self._policy.window_s
        ):
            self._seen_s -= self._seen.popleft()[0]

    @property
    def last(self) -> float:
        """What it needed in the last interval."""
        return self._seen[-1][1] if self._seen else 0.0

    @property
    def starves(self) -> bool:
        """Whether it needed more than it got in the last interval."""
        return self._starves

    @property
    def least(self) -> float:
        """The share that it needs, without head-room."""
        return self._bounded(1.0)

    @property
    def idle(self) -> bool:
        """Whether it has hardly run in the window."""
        return self._most() < _IDLE * self._policy.floor

    def share(self, held: float = 0.0) -> float:
        """Return the share to reserve from now on.

        :param held: the share that is reserved now, or 0.
        :returns: ``held`` when that is close enough.
        """
        policy = self._policy
        needed = self._bounded(policy.headroom)
        if (
            held
            and needed <= held * (1 + _GROW)
            and not (
                needed < held * (1 - _SHRINK)
                and self._changed_s >= policy.window_s
            )
        ):
            return held
        self._changed_s = 0.0
        return needed

    def share_with_room(
        self, full: float, bursts: float, before: float = 0.0
    ) -> float:
        """Return the share with room for bursts.

        :param full: from :meth:`share`.
        :param bursts: the need in a short window over the mean.
        :param before: what was returned last, or 0.
        :returns: ``before`` when that has room and is close enough; never
            less than ``full``.
        """
        needed = max(full, min(self._policy.most, bursts * self._mean()))
        if before > full and (
            before * (1 - _SHRINK) <= needed <= before * (1 + _GROW)
        ):
            return before
        return needed

    def _mean(self) -> float:
        """Return the part of the time that it ran while it was busy.

        A guess of what it would have needed does not count.
        """
        least = _BUSY * max((ran for _, _, ran in self._seen), default=0.0)
        busy = [
            (length_s, ran) for length_s, _, ran in self._seen if ran >= least
        ]
        busy_s = sum(length_s for length_s, _ in busy)
        return sum(length_s * ran for length_s, ran in busy) / (busy_s or 1.0)

    def _most(self) -> float:
        return max((need for _, need, _ in self._seen), default=0.0)

    def _bounded(self, factor: float) -> float:
        return min(
            self._policy.most, max(self._policy.floor, factor * self._most())
        )


def peak(requests_per_s: float, window_s: float = PEAK_WINDOW_S) -> float:
    """Return the need for requests in a short window over the mean.

    Requests that arrive independently of each other are a Poisson process. In
    a window of w seconds m = rate * w of them arrive on average, and more
    than n with the probability 1 - sum(exp(-m) * m**i / i! for i <= n). The
    window needs n / m of the mean, with the least n for which that is at most
    1 %.

    :param requests_per_s: their rate.
    :param window_s: length of the window.
    :returns: from 1 to :data:`MOST_PEAK`.
    """
    mean = requests_per_s * window_s
    if mean >= _PEAK_MANY:
        return 1 + _PEAK_QUANTILE / math.sqrt(mean)
    count, term = 0, math.exp(-mean)
    below = term
    while 1 - below > _PEAK_MISSES:
        count += 1
        term *= mean / count
        below += term
    return min(MOST_PEAK, max(1.0, count / mean)) if count else 1.0


def io_runtime_us(share: float, period_us: int, tick_us: int) -> int:
    """Return the budget of a share, large enough not to build up debt.

    :param tick_us: the host's scheduler tick.
    """
    return min(
        period_us,
        max(
            # Rounding absorbs the error of the floating-point product.
            math.ceil(round(share * period_us, 3)),
            reservation.least_runtime_us(period_us, tick_us),
        ),
    )


def within(shares: Mapping[int, float], bound: float) -> dict[int, float]:
    """Return shares by thread, scaled down to a bound if they exceed it."""
    total = sum(shares.values())
    if total <= bound:
        return dict(shares)
    return {tid: share * bound / total for tid, share in shares.items()}


class Ledger:
    """Use of an instance and of the host's work for it, and its debt.

    Use beyond the reservation becomes debt; what is left unused is no credit,
    as reservations do not accumulate.
    """

    def __init__(self) -> None:
        self.debt_us = 0.0
        #: The expected share of the host's work.
        self.overhead = 0.0

    def observe(
        self,
        guest_us: float,
        host_us: float,
        interval_us: float,
        reserved: float,
        owes: bool = True,
    ) -> None:
        """Take one interval into account.

        :param guest_us: what the guest used.
        :param host_us: what the host used for it.
        :param reserved: the share of both together, over all vCPUs.
        :param owes: whether excess becomes debt. It does not for a guest
            that may use idle time.
        """
        if interval_us <= 0:
            return
        self.overhead += _WEIGHT * (host_us / interval_us - self.overhead)
        most_us = reserved * MOST_DEBT_S * 1e6
        balance_us = (
            self.debt_us + guest_us + host_us - (reserved * interval_us)
        )
        self.debt_us = min(most_us, max(0.0, balance_us)) if owes else 0.0

    def guest_share(self, reserved: float, coming: float = 0.0) -> float:
        """Return the share that is left to the guest.

        :param reserved: as of :meth:`observe`.
        :param coming: the least share of the host's work from now on, as its
            threads have just been given more.
        :returns: of the same vCPUs together.
        """
        left = (
            reserved
            - max(self.overhead, coming)
            - (self.debt_us / 1e6 / SPREAD_S)
        )
        return max(GUEST_FLOOR * reserved, min(reserved, left))


def guest_runtime_us(
    reserved: reservation.Reservation,
    backend: reservation.Backend,
    vcpus: int,
    share: float,
    held_us: int,
    tick_us: int,
) -> int:
    """Return the runtime of each vCPU that gives the guest a share.

    :param reserved: its reservation, the upper limit.
    :param backend: what holds it.
    :param share: over all vCPUs.
    :param held_us: the runtime it has now, kept if the difference is small.
    :param tick_us: the host's scheduler tick.
    """
    runtime_us = math.floor(share * reserved.period_us / vcpus)
    least_us = max(
        math.ceil(GUEST_FLOOR * reserved.runtime_us),
        reservation.least_runtime_us(reserved.period_us, tick_us),
        reservation.LIMITS[backend].runtime_us_min
        if backend in reservation.LIMITS
        else 1,
    )
    runtime_us = min(reserved.runtime_us, max(least_us, runtime_us))
    step = _GUEST_STEP if backend in reservation.OF_LINUX else _DOMAIN_STEP
    step_us = step * reserved.runtime_us
    if reserved.runtime_us - runtime_us < step_us:
        return reserved.runtime_us
    return runtime_us if abs(runtime_us - held_us) >= step_us else held_us
