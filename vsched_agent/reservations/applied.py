# SPDX-License-Identifier: Apache-2.0

"""The reservations that are in force, as values."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import enum
from fractions import Fraction
import math

from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_lib.model import admission
from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """The reservation in force for the vCPUs of one instance.

    :param reserved: per vCPU, margins included.
    :param asked: the same without margins; None when an earlier agent
        applied it.
    :param guest: what the vCPUs have instead while the instance is charged
        for the host's work; None when they have all of ``reserved``.
    :param granularity: how many parts of it each thread gets in a period.
    """

    backend: reservation.Backend
    reserved: reservation.Reservation
    pid: int
    targets: tuple[base.Target, ...]
    asked: reservation.Reservation | None = None
    guest: reservation.Reservation | None = None
    granularity: int = 1

    @property
    def now(self) -> reservation.Reservation:
        """Return what each vCPU's thread has at present."""
        now = self.guest or self.reserved
        if self.granularity == now.granularity:
            return now
        return dataclasses.replace(now, granularity=self.granularity)

    @property
    def assignments(self) -> list[base.Assignment]:
        """Return what each vCPU's thread has at present, with the thread."""
        now = self.now
        return [(target, now) for target in self.targets]

    @property
    def guaranteed(self) -> bool:
        """Return whether it is kept in each period."""
        return self.backend in reservation.GUARANTEES

    @property
    def admitted(self) -> bool:
        """Return whether it uses the host's capacity."""
        return self.backend in reservation.ADMITTED

    @property
    def claim(self) -> admission.Claim:
        """Return the holding as a claim for the admission test."""
        return claim(self.reserved, self.targets)

    @property
    def bandwidth(self) -> Fraction:
        """Return Σ Q/P over the vCPUs, in CPUs."""
        return self.reserved.bandwidth(len(self.targets))

    def lowered(self, runtime_us: int) -> 'Holding':
        """Return a copy that leaves each vCPU at most ``runtime_us``."""
        reserved = self.reserved
        return dataclasses.replace(
            self,
            guest=None
            if (runtime_us >= reserved.runtime_us)
            else dataclasses.replace(reserved, runtime_us=runtime_us),
        )

    def same_as(self, current: 'Holding') -> bool:
        """Return whether applying this in place of another changes nothing."""
        return (
            current.backend == self.backend
            and figures(current.reserved) == figures(self.reserved)
            and figures(current.now) == figures(self.now)
            and current.granularity == self.granularity
            and current.targets == self.targets
        )

    def surplus(self, io: 'IoHolding') -> Fraction:
        """Return what guest and I/O threads have in excess, in CPUs."""
        return max(
            Fraction(0),
            self.now.bandwidth(len(self.targets))
            + io.bandwidth
            - self.bandwidth,
        )

    def inside(
        self, io: 'IoHolding', spare: Fraction = Fraction(0)
    ) -> 'Holding':
        """Return a copy that leaves the guest what the I/O threads leave.

        :param spare: capacity beyond the reservation, in CPUs.
        """
        left = (self.bandwidth + max(Fraction(0), spare) - io.bandwidth) / len(
            self.targets
        )
        return self.lowered(
            min(
                self.now.runtime_us,
                max(1, math.floor(left * self.reserved.period_us)),
            )
        )

    def as_before(self, current: 'Holding') -> 'Holding':
        """Return a copy that leaves the guest the same fraction as before.

        :param current: what is in force.
        """
        now, reserved = current.now, self.reserved
        if current.asked is None:
            # Of an earlier agent's only the present runtime is known.
            if (now.period_us, now.mode, current.backend) == (
                reserved.period_us,
                reserved.mode,
                self.backend,
            ):
                return self.lowered(now.runtime_us)
            return self
        return self.lowered(
            math.ceil(
                reserved.runtime_us
                * now.runtime_us
                / current.reserved.runtime_us
            )
        )


class IoRoom(enum.Enum):
    """The capacity that an instance's I/O threads use.

    INSIDE: part of the instance's reservation. ON_TOP: a claim of their own.
    UNCLAIMED: what no instance has claimed; it can be taken back at any time.
    """

    INSIDE = 'inside'
    ON_TOP = 'on_top'
    UNCLAIMED = 'unclaimed'


@dataclasses.dataclass(frozen=True, slots=True)
class IoHolding:
    """The reservations in force for one instance's I/O threads.

    :param pid: the instance's process.
    :param reservations: by thread.
    :param room: the capacity that they use.
    """

    pid: int
    reservations: tuple[base.Assignment, ...]
    room: IoRoom

    @property
    def bandwidth(self) -> Fraction:
        """Return Σ Q/P over the threads, in CPUs."""
        return total((reserved, 1) for _, reserved in self.reservations)

    @property
    def claims(self) -> list[admission.Claim]:
        """Return the holding as a claim for the admission test."""
        return [claim(one, (target,)) for target, one in self.reservations]

    def of(self, tid: int) -> reservation.Reservation | None:
        """Return one thread's reservation."""
        for target, reserved in self.reservations:
            if target.tid == tid:
                return reserved
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """An instance whose threads did not have their reservations.

    :param tids: the threads.
    :param found: what they had, as a sentence.
    """

    instance_uuid: str
    tids: tuple[int, ...]
    found: str


def targets_of(domain: hypervisor.Domain) -> tuple[base.Target, ...]:
    """Return the vCPU threads of an instance as enforcement targets."""
    return tuple(
        base.Target(vcpu.index, vcpu.tid, vcpu.pinned_cpus, vcpu.bound)
        for vcpu in domain.vcpus
    )


def claim(
    reserved: reservation.Reservation, targets: Sequence[base.Target]
) -> admission.Claim:
    """Return what threads with one reservation take of a host."""
    return admission.Claim(
        reserved,
        tuple(
            next(iter(target.pinned_cpus))
            if target.pinned_cpus is not None and len(target.pinned_cpus) == 1
            else None
            for target in targets
        ),
    )


def total(shares: Iterable[tuple[reservation.Reservation, int]]) -> Fraction:
    """Return Σ Q/P over threads, in CPUs.

    :param shares: reservations, and the number of threads that have each.
    """
    # Usually all have the same period; one Fraction per thread would
    # dominate the time spent on an instance.
    runtimes_us: dict[int, int] = {}
    for reserved, threads in shares:
        runtimes_us[reserved.period_us] = (
            runtimes_us.get(reserved.period_us, 0)
            + threads * reserved.runtime_us
        )
    return sum(
        (
            Fraction(runtime_us, period_us)
            for period_us, runtime_us in runtimes_us.items()
        ),
        Fraction(0),
    )


def claimed(claims: Iterable[admission.Claim]) -> Fraction:
    """Return Σ Q/P over all threads of claims, in CPUs."""
    return total((one.reservation, len(one.pins)) for one in claims)


def figures(one: reservation.Reservation) -> tuple[int, int, reservation.Mode]:
    """Return what has to agree between the kernel and a reservation."""
    return one.runtime_us, one.period_us, one.mode


def same(held: base.Enforced | None, other: reservation.Reservation) -> bool:
    """Return whether the kernel has a reservation in force."""
    return held is not None and held.figures(other.granularity) == figures(
        other
    )


def describe(held: base.Enforced | None) -> str:
    """Return what the kernel has in force, as readable text."""
    if held is None:
        return 'no reservation'
    return '%s %d us every %d us' % (
        held.mode,
        held.runtime_us,
        held.period_us,
    )
