# SPDX-License-Identifier: Apache-2.0

"""Division of a host's unclaimed capacity among instances' I/O threads.

What no instance has claimed can be taken back at any time. While there is
enough, every instance gets what it asks for. Otherwise instances that need
least come first, so that one cannot displace others by more I/O, and those
whose threads hardly run come last. No instance gets less than what its threads
use: a budget below that stops a thread that would get idle time without one.
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


class Grant(enum.Enum):
    """What an instance's I/O threads get."""

    NOTHING = 'nothing'
    LEAST = 'least'
    HELD = 'held'
    FULL = 'full'


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """What the I/O threads of one instance ask for, in CPUs.

    :param least: what they use. They get nothing rather than less.
    :param full: the same with head-room.
    :param held: what they have; 0 for nothing.
    :param idle: whether they hardly run.
    """

    least: Fraction
    full: Fraction
    held: Fraction = _NOTHING
    idle: bool = False

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
        return self.idle, self.least * (_DISPLACES if self.held else 1)

    def amount(self, grant: Grant) -> Fraction:
        """Return what a grant is, in CPUs."""
        return {
            Grant.NOTHING: _NOTHING,
            Grant.LEAST: self.least,
            Grant.HELD: self.held,
            Grant.FULL: self.full,
        }[grant]


def divide(demands: Mapping[str, Demand], free: Fraction) -> dict[str, Grant]:
    """Return what each instance gets.

    :param demands: by instance
    :param free: the unclaimed capacity, what they hold included, in CPUs
    """
    if sum((demand.full for demand in demands.values()), _NOTHING) <= free:
        return dict.fromkeys(demands, Grant.FULL)
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
