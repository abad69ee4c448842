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

"""How much the host's threads for an instance need, and who pays for it.

Two questions. What must a thread that serves an instance's I/O be promised,
judged by what it used and waited? And what is left to the guest when the
host's work counts against its reservation? Shares are parts of one CPU.
"""

import collections
from collections.abc import Mapping
import dataclasses
import math

from vsched_lib.model import reservation

#: A debt is paid back over so many seconds.
SPREAD_S = 5.0
#: Nobody owes more than what he is promised in so many seconds.
MOST_DEBT_S = 10.0
#: What is left to a guest at the least, as a part of its promise: without
#: it nobody could ask for less I/O.
GUEST_FLOOR = 0.1
#: How far one interval moves what the host's work is expected to be. Where
#: the guest's own work causes it, this converges while a second of the
#: guest's costs the host less than three.
_WEIGHT = 0.5
#: A guest's runtime is changed from this part of its promise on; what is
#: not worth a change adds up to debt and is seen to then.
_GUEST_STEP = 0.005

# A thread that uses this part of its budget and waits this part of its time
# wants more than it has.
_USED = 0.7
_WAITED = 0.05
#: A budget grows from this part on, and shrinks from that.
_GROW, _SHRINK = 0.05, 0.25


@dataclasses.dataclass(frozen=True, slots=True)
class IoPolicy:
    """How budgets of I/O threads are sized.

    :param headroom: budget over need, above 1.
    :param window_s: what was needed at the most in so many seconds counts;
        a budget does not shrink sooner.
    :param floor: the least share of one thread.
    :param most: the largest share of one thread.
    :raises ValueError: on a figure that makes no sense.
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
            raise ValueError('floor: %r and most: %r are not 0 < floor <= '
                             'most <= 1' % (self.floor, self.most))


class IoNeed:
    """What one thread needs, from what it did.

    :param policy: how its budget is sized.
    """

    def __init__(self, policy: IoPolicy) -> None:
        self._policy = policy
        # (length in s, share) of each interval in the window.
        self._seen: collections.deque[tuple[float, float]] = (
            collections.deque())
        self._seen_s = 0.0
        self._changed_s = 0.0
        self._starves = False

    def observe(self, run_us: float, wait_us: float, interval_us: float,
                held: float = 0.0) -> None:
        """Take one interval into account.

        What a thread would have used had it not waited, nobody can see:
        one that starves is taken to need twice what it got, and no more
        than it was ready to use. So its budget grows by steps.

        :param run_us: time that it ran.
        :param wait_us: time that it was runnable and did not run.
        :param held: its share in that interval; 0 when it had none.
        """
        if interval_us <= 0:
            return
        ran, waited = run_us / interval_us, wait_us / interval_us
        need = ran
        self._starves = waited > _WAITED and (
            ran >= _USED * held if held else waited > ran)
        if self._starves:
            need = min(ran + waited, max(2 * ran, self._policy.floor))
        length_s = interval_us / 1e6
        self._seen.append((length_s, need))
        self._seen_s += length_s
        self._changed_s += length_s
        while (len(self._seen) > 1 and
               self._seen_s - self._seen[0][0] >= self._policy.window_s):
            self._seen_s -= self._seen.popleft()[0]

    @property
    def last(self) -> float:
        """What it needed in the last interval."""
        return self._seen[-1][1] if self._seen else 0.0

    @property
    def starves(self) -> bool:
        """Whether it wanted more than it got in the last interval."""
        return self._starves

    def share(self, held: float = 0.0) -> float:
        """What it should be promised from now on.

        :param held: what it is promised now; 0 when it is nothing.
        :returns: ``held`` when that is good enough.
        """
        policy = self._policy
        wanted = min(policy.most, max(policy.floor, policy.headroom * max(
            (need for _, need in self._seen), default=0.0)))
        if (held and wanted <= held * (1 + _GROW) and not (
                wanted < held * (1 - _SHRINK) and
                self._changed_s >= policy.window_s)):
            return held
        self._changed_s = 0.0
        return wanted


def io_runtime_us(share: float, period_us: int, tick_us: int) -> int:
    """The budget that is a share of a CPU, never one that builds up debt.

    :param tick_us: the host's scheduler tick.
    """
    return min(period_us, max(
        # A product of floats is off by less than this, which is no time.
        math.ceil(round(share * period_us, 3)),
        reservation.least_runtime_us(period_us, tick_us)))


def within(shares: Mapping[int, float], bound: float) -> dict[int, float]:
    """Shares by thread, all cut by the same part where they exceed a bound.
    """
    total = sum(shares.values())
    if total <= bound:
        return dict(shares)
    return {tid: share * bound / total for tid, share in shares.items()}


class Ledger:
    """What one instance and the host's work for it used, against its promise.

    What is used beyond the promise becomes debt; what is left unused is no
    credit, as no reservation saves time up.
    """

    def __init__(self) -> None:
        self.debt_us = 0.0
        #: The share that the host's work is expected to take.
        self.overhead = 0.0

    def settle(self, guest_us: float, host_us: float, interval_us: float,
               promised: float, owes: bool = True) -> None:
        """Take one interval into account.

        :param guest_us: what the guest used.
        :param host_us: what the host used for it.
        :param promised: the share both may have, over all vCPUs.
        :param owes: whether it pays back what was too much. A guest that
            may use idle time owes nothing for that.
        """
        if interval_us <= 0:
            return
        self.overhead += _WEIGHT * (host_us / interval_us - self.overhead)
        most_us = promised * MOST_DEBT_S * 1e6
        balance_us = self.debt_us + guest_us + host_us - (
            promised * interval_us)
        self.debt_us = min(most_us, max(0.0, balance_us)) if owes else 0.0

    def guest_share(self, promised: float, coming: float = 0.0) -> float:
        """What is left to the guest for a while.

        :param promised: as of :meth:`settle`.
        :param coming: what the host's work takes from now on at the least,
            because its threads have just been given more.
        :returns: of the same vCPUs together.
        """
        left = promised - max(self.overhead, coming) - (
            self.debt_us / 1e6 / SPREAD_S)
        return max(GUEST_FLOOR * promised, min(promised, left))


def guest_runtime_us(promise: reservation.Reservation,
                     backend: reservation.Backend, vcpus: int,
                     share: float, held_us: int, tick_us: int) -> int:
    """The runtime of each vCPU that leaves a guest a share.

    :param promise: what it is promised, which is the most.
    :param backend: what holds it.
    :param share: over all vCPUs.
    :param held_us: the runtime it has now; small differences are not worth
        a change.
    :param tick_us: the host's scheduler tick.
    """
    wanted_us = math.floor(share * promise.period_us / vcpus)
    least_us = max(
        math.ceil(GUEST_FLOOR * promise.runtime_us),
        reservation.least_runtime_us(promise.period_us, tick_us),
        reservation.LIMITS[backend].runtime_us_min
        if backend in reservation.LIMITS else 1)
    wanted_us = min(promise.runtime_us, max(least_us, wanted_us))
    step_us = _GUEST_STEP * promise.runtime_us
    if promise.runtime_us - wanted_us < step_us:
        return promise.runtime_us
    return wanted_us if abs(wanted_us - held_us) >= step_us else held_us
