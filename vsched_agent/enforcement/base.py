# SPDX-License-Identifier: Apache-2.0

"""The interface between the reconciler and the enforcement backends.

Every change can be read back and undone: a backend returns the state that a
thread had before the first change and what is in force now, and restores the
former.
"""

import abc
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import typing as ty

from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One thread to enforce on.

    :param index: the vCPU's number; for I/O threads, their position among
        them.
    :param tid: the host thread.
    :param pinned_cpus: host CPUs it must stay on; None for any.
    :param bound: pinned temporarily, by other code that also restores the
        former affinity; a backend must not restore it.
    """

    index: int
    tid: int
    pinned_cpus: frozenset[int] | None = None
    bound: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Support:
    """Whether this host can use a backend.

    :param reasons: when not usable, what is missing and how to fix it; else
        what an operator should know.
    """

    usable: bool
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Enforced:
    """The parameters of one thread, read back from the kernel.

    :param runtime_ns: budget.
    :param period_ns: period.
    :param mode: capped or work_conserving.
    """

    runtime_ns: int
    period_ns: int
    mode: reservation.Mode

    @classmethod
    def of(cls, reserved: reservation.Reservation) -> ty.Self:
        """Return the parameters that enforce a reservation."""
        return cls(*reserved.divided_ns, reserved.mode)

    @property
    def runtime_us(self) -> int:
        """Return the budget, rounded to the nearest microsecond."""
        return _us(self.runtime_ns)

    @property
    def period_us(self) -> int:
        """Return the period, rounded to the nearest microsecond."""
        return _us(self.period_ns)

    def figures(
        self, granularity: int = 1
    ) -> tuple[int, int, reservation.Mode]:
        """Return runtime, period and mode of what these are parts of.

        :param granularity: how many parts.
        :returns: in microseconds, rounded to the nearest: budget expiry
            checks change parameters by a nanosecond.
        """
        return (
            _us(self.runtime_ns * granularity),
            _us(self.period_ns * granularity),
            self.mode,
        )


def _us(ns: int) -> int:
    return (ns + reservation.NS_PER_US // 2) // reservation.NS_PER_US


#: One thread and its reservation.
Assignment = tuple[Target, reservation.Reservation]

#: State of one thread before the first change; JSON types only.
Prior = Mapping[str, ty.Any]


class NotRestored(Exception):
    """The former state of some threads does not fit on the host any more.

    Each of them keeps all of what it has; the others are restored.

    :param detail: one sentence with the figures.
    :ivar tids: the threads that are not restored.
    :ivar figures: the numbers, ready for JSON.
    """

    def __init__(
        self, detail: str, tids: Iterable[int], figures: Mapping[str, int]
    ) -> None:
        super().__init__(detail)
        self.tids = frozenset(tids)
        self.figures = dict(figures)


class Backend(abc.ABC):
    """A mechanism that enforces reservations. Safe from any thread."""

    name: reservation.Backend
    #: Whether what is in force under this backend must be an agent's. Else
    #: operators and other programs may have set it.
    only_agents_set = False

    @abc.abstractmethod
    def supports(self) -> Support:
        """Check now whether the backend works on this host."""

    @abc.abstractmethod
    def prior(self, targets: Sequence[Target]) -> dict[int, Prior]:
        """Return by thread the state that :meth:`restore` has to restore.

        Threads that have ended are left out.
        """

    @abc.abstractmethod
    def apply_each(self, assignments: Sequence[Assignment]) -> None:
        """Apply a reservation to each thread, or to none.

        For a thread already under this backend only the parameters change.

        :param assignments: of one instance.
        :raises errors.Refused: with its cause; every thread then has its
            former state.
        """

    def resume(self, assignments: Sequence[Assignment]) -> None:  # noqa: B027
        """Resume the continuous work of a backend after an agent's restart.

        Nothing is applied.

        :param assignments: the reservations in force.
        """

    def abandon(self, targets: Sequence[Target]) -> None:  # noqa: B027
        """Regard threads as having no reservation; change nothing.

        :param targets: of an instance whose reservation is in force no more,
            as the kernel did not take it again.
        """

    def refresh(self) -> None:  # noqa: B027
        """Do periodic work; called once in each pass of the agent."""

    def close(self) -> None:  # noqa: B027
        """Stop all work; reservations stay in force."""

    @abc.abstractmethod
    def read(self, targets: Sequence[Target]) -> dict[int, Enforced | None]:
        """Return by thread what is in force now.

        None when the thread is not under this backend. Threads that have
        ended are left out. Called once a second for every managed thread:
        needs no privilege and starts no process.
        """

    @abc.abstractmethod
    def restore(
        self, targets: Sequence[Target], prior: Mapping[int, Prior]
    ) -> None:
        """Restore the former state, without leaking bandwidth.

        Threads that have ended are skipped; a thread without a prior state
        gets the kernel's default.

        :raises NotRestored: when the former state of some does not fit.
        """

    def growth(
        self, targets: Sequence[Target], prior: Mapping[int, Prior]
    ) -> Fraction:
        """Return how much more of the host's CPUs :meth:`restore` needs.

        :returns: in CPUs; negative when it releases some. 0 where the former
            state always fits.
        """
        return Fraction(0)

    def clean_up(self, prior: Mapping[int, Prior]) -> None:  # noqa: B027
        """Undo what outlives the threads of an instance that has ended.

        :param prior: the former states of its threads.
        """
