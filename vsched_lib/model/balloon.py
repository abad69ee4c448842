# SPDX-License-Identifier: Apache-2.0

"""Divide too few CPUs among the vCPUs of several instances.

N_i = W_i·T/ΣW over the CPUs that the instances share, T being what is left
by those that do not take part; rounded by largest remainder, within what
each instance accepts. CPUs are assigned at the same time: N_i vCPUs are
of use only if they can be bound to N_i CPUs of their own.
"""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import math

from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Share:
    """An instance that shares the CPUs.

    :param configured: number of its vCPUs, the most that it can use.
    :param weight: its part relative to the others'.
    :param min_vcpus: the fewest it accepts.
    :param cpus: host CPUs that it may use; None for all.
    :param taken: None for one that takes part; else the CPUs that it keeps
        busy, whatever the others need.
    :raises ValueError: on a figure out of range.
    """

    uuid: str
    configured: int
    weight: int = 100
    min_vcpus: int = 1
    cpus: frozenset[int] | None = None
    taken: int | None = None

    def __post_init__(self) -> None:
        for name in ('configured', 'weight', 'min_vcpus'):
            if getattr(self, name) < 1:
                raise ValueError(
                    '%s: %d is below 1' % (name, getattr(self, name))
                )
        if self.taken is not None and self.taken < 0:
            raise ValueError('taken: %d is negative' % self.taken)

    @property
    def floor(self) -> int:
        """The fewest vCPUs that it keeps."""
        return min(self.min_vcpus, self.configured)


@dataclasses.dataclass(frozen=True, slots=True)
class Part:
    """What an instance gets.

    :param vcpus: how many it keeps online.
    :param cpus: one for each of them, exclusively; empty when there are
        not enough for that.
    """

    vcpus: int
    cpus: tuple[int, ...] = ()


def divide(shares: Iterable[Share], cpus: Sequence[int]) -> dict[str, Part]:
    """Divide CPUs among the instances that take part.

    :param shares: every instance that is busy.
    :param cpus: the host's, ordered by topology.
    :returns: by instance that takes part.
    """
    ordered = sorted(shares, key=lambda share: share.uuid)
    table = _Table(cpus, ordered)
    for share in ordered:
        table.seat(share.uuid, share.taken or 0)
    counts: dict[str, int] = {}
    sharing = [share for share in ordered if share.taken is None]
    for group in _groups(sharing, table):
        union = frozenset().union(*(table.allowed(one) for one in group))
        counts |= _rounded(group, table, len(union & table.free))
    for share in sharing:
        table.seat(share.uuid, counts[share.uuid])
    # CPUs that one instance cannot use because of its affinity go to others.
    waiting = [
        share
        for share in sharing
        if len(table.seats(share.uuid)) < table.most(share)
    ]
    while waiting:
        next_one = min(
            waiting,
            key=lambda share: Fraction(
                len(table.seats(share.uuid)), share.weight
            ),
        )
        if not table.seat(next_one.uuid, 1) or len(
            table.seats(next_one.uuid)
        ) >= table.most(next_one):
            waiting.remove(next_one)
    parts = {}
    for share in sharing:
        seats = table.seats(share.uuid)
        vcpus = max(len(seats), share.floor)
        parts[share.uuid] = Part(vcpus, seats if len(seats) == vcpus else ())
    return parts


def conserved(
    reserved: reservation.Reservation, before: int, after: int
) -> reservation.Reservation:
    """Return the reservation of ``after`` vCPUs with the same bandwidth.

    Q' = min(P, Q·n/n'), rounded down. Apart from that rounding all is
    conserved if ``after`` is at least :func:`fewest`.
    """
    return dataclasses.replace(
        reserved,
        runtime_us=min(
            reserved.period_us, reserved.runtime_us * before // after
        ),
    )


def fewest(reserved: reservation.Reservation, vcpus: int) -> int:
    """Return the fewest vCPUs that can use the bandwidth of ``vcpus``."""
    return max(1, math.ceil(reserved.bandwidth(vcpus)))


def kept_online(configured: Iterable[int], count: int) -> frozenset[int]:
    """Return which vCPUs stay online: the lowest ``count``, at least 0.

    :param configured: indexes of the instance's vCPUs.
    """
    return frozenset(sorted(configured)[: max(1, count)])


def _groups(shares: Sequence[Share], table: '_Table') -> list[list[Share]]:
    """Return groups that share CPUs with each other, directly or not."""
    groups: list[tuple[set[int], list[Share]]] = []
    for share in shares:
        cpus, members = set(table.allowed(share)), [share]
        apart = []
        for group in groups:
            if group[0] & cpus:
                cpus |= group[0]
                members = group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (cpus, members)]
    return [members for _, members in groups]


def _rounded(
    group: Sequence[Share], table: '_Table', total: int
) -> dict[str, int]:
    quotas = _quotas(group, [table.most(share) for share in group], total)
    counts = {share.uuid: math.floor(quotas[share.uuid]) for share in group}
    rest = min(total, math.ceil(sum(quotas.values(), Fraction(0)))) - sum(
        counts.values()
    )
    by_remainder = sorted(
        group,
        key=lambda share: (
            counts[share.uuid] - quotas[share.uuid],
            -share.weight,
            share.uuid,
        ),
    )
    for share in by_remainder[: max(0, rest)]:
        counts[share.uuid] += 1
    return counts


def _quotas(
    group: Sequence[Share], most: Sequence[int], total: int
) -> Mapping[str, Fraction]:
    """Return W_i·T/ΣW within the bounds of each, exact."""
    bounds = [
        (min(share.floor, top), top)
        for share, top in zip(group, most, strict=True)
    ]

    def at(level: Fraction) -> list[Fraction]:
        return [
            max(Fraction(low), min(Fraction(high), share.weight * level))
            for share, (low, high) in zip(group, bounds, strict=True)
        ]

    # The sum is piecewise linear in the level: it bends only where a share
    # reaches a bound.
    bends = sorted(
        {
            Fraction(bound, share.weight)
            for share, pair in zip(group, bounds, strict=True)
            for bound in pair
        }
    )
    low, high = 0, len(bends) - 1
    while low < high:
        middle = (low + high) // 2
        if sum(at(bends[middle]), Fraction(0)) < total:
            low = middle + 1
        else:
            high = middle
    found = at(bends[low])
    surplus = sum(found, Fraction(0)) - total
    if surplus > 0 and low > 0:
        before = at(bends[low - 1])
        growth = sum(found, Fraction(0)) - sum(before, Fraction(0))
        # Linear between two bends; below the first there are floors only.
        part = 1 - surplus / growth
        found = [
            one + (two - one) * part
            for one, two in zip(before, found, strict=True)
        ]
    return {
        share.uuid: quota for share, quota in zip(group, found, strict=True)
    }


class _Table:
    """The assignment of vCPUs to CPUs, at most one to each."""

    def __init__(self, cpus: Sequence[int], shares: Sequence[Share]) -> None:
        self._cpus = tuple(dict.fromkeys(cpus))
        self._allowed = {
            share.uuid: tuple(
                cpu
                for cpu in self._cpus
                if share.cpus is None or cpu in share.cpus
            )
            for share in shares
        }
        self._owner: dict[int, str] = {}

    @property
    def free(self) -> frozenset[int]:
        return frozenset(self._cpus) - self._owner.keys()

    def allowed(self, share: Share) -> frozenset[int]:
        return frozenset(self._allowed[share.uuid])

    def most(self, share: Share) -> int:
        return min(share.configured, len(self._allowed[share.uuid]))

    def seats(self, uuid: str) -> tuple[int, ...]:
        return tuple(cpu for cpu in self._cpus if self._owner.get(cpu) == uuid)

    def seat(self, uuid: str, count: int) -> int:
        """Assign CPUs to ``count`` more vCPUs, moving others if needed.

        :returns: how many got one.
        """
        for done in range(count):
            if not self._one(uuid):
                return done
        return count

    def _one(self, uuid: str) -> bool:
        # Breadth first: the shortest chain of moves that ends at a free CPU.
        came_from: dict[int, int | None] = {}
        queue: list[int] = []
        for cpu in self._allowed[uuid]:
            if self._owner.get(cpu) != uuid:
                came_from[cpu] = None
                queue.append(cpu)
        queue.sort(key=lambda cpu: cpu in self._owner)
        for cpu in queue:
            owner = self._owner.get(cpu)
            if owner is None:
                self._move(uuid, cpu, came_from)
                return True
            for other in self._allowed[owner]:
                if other not in came_from and self._owner.get(other) != owner:
                    came_from[other] = cpu
                    queue.append(other)
        return False

    def _move(
        self, uuid: str, cpu: int, came_from: Mapping[int, int | None]
    ) -> None:
        place: int | None = cpu
        while place is not None:
            before = came_from[place]
            self._owner[place] = (
                uuid if before is None else self._owner[before]
            )
            place = before
