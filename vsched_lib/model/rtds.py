# SPDX-License-Identifier: Apache-2.0

"""Parameters of Xen's scheduler RTDS, and what a host can guarantee by it.

Each vCPU has a budget in every period. RTDS schedules the vCPUs with budget
left by their deadlines on all CPUs of a pool (global EDF), and with
``extratime`` also those that have used up theirs, behind all others. It has no
admission control: the sum over all domains, those without a reservation
included, has to be checked before parameters are set.
"""

from collections.abc import Hashable
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
from fractions import Fraction
import typing as ty

from vsched_lib.model import reservation

K = ty.TypeVar('K', bound=Hashable)

#: What RTDS gives to each new vCPU.
DEFAULT_PERIOD_US, DEFAULT_BUDGET_US = 10_000, 4_000

#: The smallest budget that Xen accepts for a vCPU, RTDS_MIN_BUDGET of
#: xen/common/sched/rt.c, and the longest period of a reservation.
LEAST_BUDGET_US, MOST_PERIOD_US = 10, 10_000_000

#: Below these a reservation is accepted with a warning. Xen handles two
#: timers in each period of each vCPU. The kernel of a guest with less budget,
#: or a smaller share, and without extratime reports stalls of RCU and soft
#: lockups: it was seen with 0.5 ms of 10 ms.
FLOOR_PERIOD_US, FLOOR_BUDGET_US = 1_000, 1_000
FLOOR_SHARE = Fraction(1, 10)


class HasUtilisation(ty.Protocol):
    """Parameters that give a right to a part of the host's CPUs."""

    @property
    def utilisation(self) -> Fraction:
        """Return it in CPUs, exact."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parameters:
    """What RTDS has of one vCPU.

    Xen bounds what is set of a vCPU, and not what is set of a domain: what is
    read may be anything but 0.

    :param period_us: in microseconds.
    :param budget_us: in each period, in microseconds.
    :param extratime: whether it gets CPU time that would else be idle.
    """

    period_us: int
    budget_us: int
    extratime: bool

    @classmethod
    def of(cls, reserved: reservation.Reservation) -> ty.Self:
        """Return the parameters that enforce a reservation.

        :raises ValueError: when a part of it is no whole number of
            microseconds, the unit of Xen, or Xen accepts none such.
        """
        runtime_ns, period_ns = reserved.divided_ns
        if runtime_ns % reservation.NS_PER_US or (
            period_ns % reservation.NS_PER_US
        ):
            raise ValueError(
                '%d us in %d us, divided by %d, are no whole microseconds'
                % (
                    reserved.runtime_us,
                    reserved.period_us,
                    reserved.granularity,
                )
            )
        found = cls(
            period_ns // reservation.NS_PER_US,
            runtime_ns // reservation.NS_PER_US,
            reserved.mode is reservation.Mode.WORK_CONSERVING,
        )
        if not (
            LEAST_BUDGET_US
            <= found.budget_us
            <= found.period_us
            <= MOST_PERIOD_US
        ):
            raise ValueError(
                'a budget of %d us in a period of %d us is outside of %d..%d '
                'us'
                % (
                    found.budget_us,
                    found.period_us,
                    LEAST_BUDGET_US,
                    MOST_PERIOD_US,
                )
            )
        return found

    @property
    def utilisation(self) -> Fraction:
        """Return the guaranteed share, in CPUs, exact; at most 1."""
        return min(Fraction(1), Fraction(self.budget_us, self.period_us))

    @property
    def mode(self) -> reservation.Mode:
        """Return the mode of a reservation with these parameters."""
        return (
            reservation.Mode.WORK_CONSERVING
            if self.extratime
            else reservation.Mode.CAPPED
        )


#: What a new vCPU has.
DEFAULT = Parameters(DEFAULT_PERIOD_US, DEFAULT_BUDGET_US, True)


def admissible(cpus: int, others: Iterable[Parameters]) -> Fraction:
    """Return what reservations may have in total, in CPUs, exact.

    :param cpus: of the pool.
    :param others: parameters of all vCPUs without a reservation: they have
        the same right to their budgets.
    :returns: 0 when the others have all or more.
    """
    return max(
        Fraction(0),
        cpus - sum((one.utilisation for one in others), Fraction(0)),
    )


def restorable(
    cpus: int,
    present: Mapping[K, HasUtilisation],
    former: Mapping[K, HasUtilisation],
) -> tuple[list[K], Fraction]:
    """Return which vCPUs can have their former parameters again.

    Also which domains, of schedulers whose parameters are those of domains.

    All that need no more than they have can. Of the others, those with the
    smallest change can, as long as the sum of all budgets does not exceed the
    CPUs.

    :param cpus: of the pool.
    :param present: parameters of all vCPUs of the host.
    :param former: parameters of those to restore, which are all present.
    :returns: the vCPUs, the smallest change first, and what is left of the
        CPUs when they are restored, exact; 0 when there is nothing left.
    """
    changes = {
        key: one.utilisation - present[key].utilisation
        for key, one in former.items()
    }
    left = cpus - sum(
        (one.utilisation for one in present.values()), Fraction(0)
    )
    fitting = []
    for key, change in sorted(changes.items(), key=lambda item: item[1]):
        if change > 0 and change > left:
            break
        left -= change
        fitting.append(key)
    return fitting, max(Fraction(0), left)


def cautions(reserved: reservation.Reservation) -> list[str]:
    """Return what an operator should know of a small reservation.

    :returns: sentences with the figure and the floor.
    """
    found = []
    if reserved.period_us < FLOOR_PERIOD_US:
        found.append(
            'a period of %d us, less than %d, costs the host two timer '
            'interrupts in each period of each vCPU'
            % (reserved.period_us, FLOOR_PERIOD_US)
        )
    if reserved.mode is reservation.Mode.CAPPED and (
        reserved.runtime_us < FLOOR_BUDGET_US
        or reserved.utilisation < FLOOR_SHARE
    ):
        found.append(
            'a guest capped at %d us in %d us may report stalls and lockups: '
            'use at least %d us, at least a share of %d %%, or mode '
            'work_conserving'
            % (
                reserved.runtime_us,
                reserved.period_us,
                FLOOR_BUDGET_US,
                FLOOR_SHARE * 100,
            )
        )
    return found
