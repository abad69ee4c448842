# SPDX-License-Identifier: Apache-2.0

"""Division of a host's unclaimed capacity among instances' I/O threads.

What no instance has claimed can be taken back at any time. While there is
enough, every instance gets what it asks for. Otherwise instances that need
least come first, so that one cannot displace others by more I/O, and those
whose threads hardly run come last. No instance gets less than what its threads
use: a budget below that stops a thread that would get idle time without one.

What remains when all have their head-room is room for bursts: capacity in
which threads handle requests that arrive at the same time. It is granted
last, and taken back first. Where it does not suffice for all, each gets a part
of its room before any gets all of it.
"""

from collections.abc import Mapping
import dataclasses
import enum
from fractions import Fraction

_NOTHING = Fraction(0)
#: A newcomer comes before an instance that holds something if it needs less
#: than this part of what that needs. Two of about the same need would displace
#: each other again and again.
_DISPLACES = Fraction(1, 2)
#: Room for bursts is granted while so much more is free than is added, as a
#: part of that. Who has it keeps it without that, so that it does not come and
#: go with small changes of the capacity.
_SPARE = Fraction(1, 4)


class Grant(enum.Enum):
    """What an instance's I/O threads get."""

    NOTHING = 'nothing'
    LEAST = 'least'
    HELD = 'held'
    FULL = 'full'
    PART = 'part'
    PEAK = 'peak'


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """What the I/O threads of one instance ask for, in CPUs.

    :param least: what they use. They get nothing rather than less.
    :param full: the same with head-room.
    :param held: what they have; 0 for nothing.
    :param idle: whether they hardly run.
    :param peak: what they use with room for bursts; no room when it is not
        more than ``full``.
    :param part: with a part of that room; none when it is not between
        ``full`` and ``peak``.
    """

    least: Fraction
    full: Fraction
    held: Fraction = _NOTHING
    idle: bool = False
    peak: Fraction = _NOTHING
    part: Fraction = _NOTHING

    @property
    def room(self) -> Fraction:
        """Return the room for bursts, beyond head-room."""
        return max(_NOTHING, self.peak - self.full)

    @property
    def entry(self) -> Fraction:
        """Return what has to be free for them to get anything.

        More than what lets them keep something: otherwise a small change of
        the capacity would have them change again and again.
        """
        return self.least if self.held else self.full

    @property
    def rank(self) -> tuple[bool, Fraction]:
        """Return the place in the order; the smallest comes first."""
        return self._rank(bool(self.held))

    @property
    def room_rank(self) -> tuple[bool, Fraction]:
        """Return the place in the order in which room for bursts is given."""
        return self._rank(self.held > self.full)

    def _rank(self, has: bool) -> tuple[bool, Fraction]:
        return self.idle, self.least * (_DISPLACES if has else 1)

    def amount(self, grant: Grant) -> Fraction:
        """Return what a grant is, in CPUs."""
        return {
            Grant.NOTHING: _NOTHING,
            Grant.LEAST: self.least,
            Grant.HELD: self.held,
            Grant.FULL: self.full,
            Grant.PART: self.part,
            Grant.PEAK: self.full + self.room,
        }[grant]

    @property
    def first_room(self) -> list[Grant]:
        """Return the grants of a part of the room, the largest first."""
        if not self.full < self.part < self.peak:
            return self.more_room
        if self.full < self.held < self.part:
            return [Grant.PART, Grant.HELD]
        return [Grant.PART]

    @property
    def more_room(self) -> list[Grant]:
        """Return the grants of room, the largest first."""
        if self.full < self.held < self.peak:
            # It may need more room than there is, and keeps what it has.
            return [Grant.PEAK, Grant.HELD]
        return [Grant.PEAK]


def divide(demands: Mapping[str, Demand], free: Fraction) -> dict[str, Grant]:
    """Return what each instance gets.

    :param demands: by instance
    :param free: the unclaimed capacity, what they hold included, in CPUs
    """
    left = free - sum((demand.full for demand in demands.values()), _NOTHING)
    if left >= 0:
        grants = dict.fromkeys(demands, Grant.FULL)
        return {**grants, **_with_room(demands, left)}
    grants = dict.fromkeys(demands, Grant.NOTHING)
    left = free
    order = sorted(demands, key=lambda uuid: (demands[uuid].rank, uuid))
    for uuid in order:
        demand = demands[uuid]
        if demand.entry <= left:
            grants[uuid] = Grant.LEAST if demand.held else Grant.FULL
            left -= demand.entry
    # What remains is head-room: first for those who have some, so that few
    # reservations change.
    for grant in (Grant.HELD, Grant.FULL):
        for uuid in order:
            demand = demands[uuid]
            if grants[uuid] is Grant.NOTHING or (
                grant is Grant.HELD
                and not demand.least <= demand.held <= demand.full
            ):
                continue
            more = demand.amount(grant) - demand.amount(grants[uuid])
            if 0 <= more <= left:
                grants[uuid] = grant
                left -= more
    return grants


def _with_room(
    demands: Mapping[str, Demand], left: Fraction
) -> dict[str, Grant]:
    """Return the grants of those that get room for bursts.

    :param left: what is free when all have their head-room.
    """
    grants: dict[str, Grant] = {}
    order = sorted(
        (uuid for uuid, demand in demands.items() if demand.room),
        key=lambda uuid: (demands[uuid].room_rank, uuid),
    )
    for choices in (
        {uuid: demands[uuid].first_room for uuid in order},
        {uuid: demands[uuid].more_room for uuid in order},
    ):
        for uuid in order:
            demand = demands[uuid]
            granted = demand.amount(grants.get(uuid, Grant.FULL))
            for grant in choices[uuid]:
                amount = demand.amount(grant)
                added = max(_NOTHING, amount - max(demand.held, demand.full))
                if (
                    amount > granted
                    and amount - granted + _SPARE * added <= left
                ):
                    grants[uuid] = grant
                    left -= amount - granted
                    break
    return grants
