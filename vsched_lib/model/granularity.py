# SPDX-License-Identifier: Apache-2.0

"""How finely the periods of instances that wait on packets are divided.

A thread with Q/k every P/k has the bandwidth of Q every P, and waits for its
next runtime a kth as long. Nothing else is gained or lost: an instance that
only computes gets more context switches. A runtime that is smaller than the
CPU time of one request makes each request wait for a further period, which is
worse than no division.

Instances are ranked by their network intensity
(:mod:`vsched_lib.model.communication`). The ranks distribute a bounded number
of added periods. That bound is what an instance can cost others by receiving
packets for no reason (:mod:`vsched_lib.model.delay_bound`); its bandwidth is
the same at every granularity.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_lib.model import reservation

GRANULARITIES = reservation.GRANULARITIES

_NS_PER_S = 1_000_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """What a backend on one host can express.

    :param runtime_ns: the smallest part of a runtime.
    :param period_ns: the smallest part of a period.
    :param tick_ns: how late the host ends an exhausted runtime; a part of a
        period is no shorter.
    :param step_ns: parameters are multiples of this.
    """

    runtime_ns: int = 1_024
    period_ns: int = 100_000
    tick_ns: int = 0
    step_ns: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Policy:
    """When periods are divided.

    :param least_pps: packets per second from which an instance counts as
        waiting on packets.
    :param headroom: runtime of a part over the CPU time of one request.
    :param rise_s: for how long an instance has to qualify for a finer
        division.
    :param hold_s: for how long a division is kept when the instance does not
        qualify any more, and how long after a coarser division a finer one
        may follow.
    :param added_periods: how many periods per second and CPU division may
        add in total.
    :raises ValueError: on a figure out of range.
    """

    least_pps: float = 10.0
    headroom: float = 1.2
    rise_s: float = 2.0
    hold_s: float = 10.0
    added_periods: float = 500.0

    def __post_init__(self) -> None:
        if self.headroom < 1:
            raise ValueError('headroom: %r is below 1' % self.headroom)
        for name in ('least_pps', 'rise_s', 'hold_s', 'added_periods'):
            if getattr(self, name) < 0:
                raise ValueError(
                    '%s: %r is below 0' % (name, getattr(self, name))
                )


def finest(
    reserved: reservation.Reservation, limits: Limits, least_ns: float = 0
) -> int:
    """Return the finest division of a reservation that is possible.

    :param least_ns: what one part of the runtime has to cover.
    :returns: 1 when nothing finer is possible.
    """
    runtime_ns = reserved.runtime_us * reservation.NS_PER_US
    period_ns = reserved.period_us * reservation.NS_PER_US
    for granularity in reversed(GRANULARITIES):
        part_ns = runtime_ns // granularity
        unit_ns = granularity * limits.step_ns
        if (
            runtime_ns % unit_ns == 0
            and period_ns % unit_ns == 0
            and part_ns >= max(limits.runtime_ns, least_ns)
            and period_ns // granularity
            >= max(limits.period_ns, limits.tick_ns)
            and (
                part_ns >= limits.tick_ns
                or limits.tick_ns * period_ns
                <= reservation.MAX_DEBT_US * reservation.NS_PER_US * runtime_ns
            )
        ):
            return granularity
    return 1


def periods_per_s(reserved: reservation.Reservation) -> float:
    """Return how many periods per second the undivided reservation has."""
    return _NS_PER_S / (reserved.period_us * reservation.NS_PER_US)


class Demand(ty.NamedTuple):
    """What one instance may get, and what it has.

    :param intensity: see :class:`communication.Load`.
    :param bound: the finest granularity that its reservations permit.
    :param stay: the finest one that its requests permit at present.
    :param rise: likewise, with head-room.
    :param periods_s: periods per second of all its threads, undivided.
    :param granularity: what it has.
    """

    uuid: str
    intensity: float
    bound: int
    stay: int
    rise: int
    periods_s: float
    granularity: int = 1

    def added(self, granularity: int) -> float:
        """Return the periods per second that a granularity adds."""
        return self.periods_s * (granularity - 1)


@dataclasses.dataclass(slots=True)
class _Pending:
    """A change that an instance qualifies for.

    :param kind: the reason, as its time to wait depends on it.
    :param since_s: since when.
    """

    kind: str
    since_s: float


def distribute(
    policy: Policy, demands: Iterable[Demand], cpus: int
) -> dict[str, int]:
    """Return the granularity that each instance should have.

    All that qualify get 2 before any gets 4, the most intensive first, while
    the host's bound on added periods permits it.
    """
    left = policy.added_periods * cpus
    ranked = sorted(demands, key=lambda one: (-one.intensity, one.uuid))
    found = {one.uuid: 1 for one in ranked}
    for granularity in GRANULARITIES[1:]:
        for one in ranked:
            permitted = (
                one.stay if granularity <= one.granularity else one.rise
            )
            cost = one.added(granularity) - one.added(granularity // 2)
            if (
                one.intensity >= policy.least_pps
                and one.intensity > 0
                and found[one.uuid] == granularity // 2
                and granularity <= min(one.bound, permitted)
                and cost <= left
            ):
                found[one.uuid] = granularity
                left -= cost
    return found


class Shaper:
    """Decides on granularities, with hysteresis.

    :param policy: when periods are divided.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._pending: dict[str, _Pending] = {}
        self._fell_s: dict[str, float] = {}

    def forget(self, uuid: str) -> None:
        """Forget an instance."""
        self._pending.pop(uuid, None)
        self._fell_s.pop(uuid, None)

    def decide(
        self, now_s: float, demands: Sequence[Demand], cpus: int
    ) -> Mapping[str, int]:
        """Return the granularities that change now.

        :param demands: of all instances whose periods may be divided.
        """
        desired = distribute(self._policy, demands, cpus)
        after = {one.uuid: one.granularity for one in demands}
        rising = []
        for one in demands:
            kind, waits_s = self._kind(one, desired[one.uuid])
            if not self._due(one.uuid, kind, now_s, waits_s):
                continue
            if kind == 'rank':
                rising.append(one)
                continue
            after[one.uuid] = (
                desired[one.uuid]
                if kind == 'idle'
                else min(one.granularity, one.bound, one.stay)
            )
            self._fell_s[one.uuid] = now_s
        # Rises last: what others still have counts against the bound.
        left = self._policy.added_periods * cpus - sum(
            one.added(after[one.uuid]) for one in demands
        )
        rising.sort(key=lambda one: (-one.intensity, one.uuid))
        for one in rising:
            for granularity in reversed(GRANULARITIES):
                cost = one.added(granularity) - one.added(one.granularity)
                if (
                    one.granularity < granularity <= desired[one.uuid]
                    and cost <= left
                ):
                    after[one.uuid] = granularity
                    left -= cost
                    break
        changes = {
            one.uuid: after[one.uuid]
            for one in demands
            if after[one.uuid] != one.granularity
        }
        for uuid in changes:
            self._pending.pop(uuid, None)
        return changes

    def _kind(self, one: Demand, desired: int) -> tuple[str, float]:
        """Return why an instance's granularity should change, and the wait."""
        policy = self._policy
        if one.granularity > one.bound:
            return 'bound', 0.0
        if one.granularity > one.stay:
            return 'burst', policy.rise_s
        if desired < one.granularity:
            return 'idle', policy.hold_s
        if desired > one.granularity:
            return 'rank', policy.rise_s
        return '', 0.0

    def _due(self, uuid: str, kind: str, now_s: float, waits_s: float) -> bool:
        if not kind:
            self._pending.pop(uuid, None)
            return False
        pending = self._pending.get(uuid)
        if pending is None or pending.kind != kind:
            pending = self._pending[uuid] = _Pending(kind, now_s)
        fell_s = self._fell_s.get(uuid)
        if (
            kind == 'rank'
            and fell_s is not None
            and now_s < fell_s + self._policy.hold_s
        ):
            return False
        return now_s >= pending.since_s + waits_s
