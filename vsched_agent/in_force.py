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


"""What the kernel was made to hold for an instance, as values."""

from collections.abc import Sequence
import dataclasses
from fractions import Fraction
import math

from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_lib.model import admission
from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Holding:
    """What the kernel was made to hold for the vCPUs of one instance.

    :param promise: what the kernel holds, margins included.
    :param asked: what the instance was promised; None when an earlier agent
        put it in force.
    :param guest: what the vCPUs hold instead while they pay for the host's
        work; None when that is the promise.
    """

    backend: reservation.Backend
    promise: reservation.Reservation
    pid: int
    targets: tuple[base.Target, ...]
    asked: reservation.Reservation | None = None
    guest: reservation.Reservation | None = None

    @property
    def now(self) -> reservation.Reservation:
        """What each vCPU's thread holds now."""
        return self.guest or self.promise

    @property
    def guaranteed(self) -> bool:
        """Whether it takes of what the host can promise."""
        return self.backend in reservation.GUARANTEES

    @property
    def claim(self) -> admission.Claim:
        """The holding as admission sees it."""
        return claim(self.promise, self.targets)

    @property
    def bandwidth(self) -> Fraction:
        """Σ Q/P over the vCPUs, in CPUs."""
        return self.promise.bandwidth(len(self.targets))

    def lowered(self, runtime_us: int) -> 'Holding':
        """The same with less, or all, of the promise left to the guest."""
        promise = self.promise
        return dataclasses.replace(self, guest=None if (
            runtime_us >= promise.runtime_us) else dataclasses.replace(
                promise, runtime_us=runtime_us))

    def same_as(self, current: 'Holding') -> bool:
        """Whether an instance that holds another one needs no change."""
        return (current.backend == self.backend and
                figures(current.promise) == figures(self.promise) and
                figures(current.now) == figures(self.now) and
                current.targets == self.targets)

    def surplus(self, io: 'IoHolding') -> Fraction:
        """What guest and I/O threads hold beyond the promise, in CPUs."""
        return max(Fraction(0), self.now.bandwidth(len(self.targets)) +
                   io.bandwidth - self.bandwidth)

    def inside(self, io: 'IoHolding',
               spare: Fraction = Fraction(0)) -> 'Holding':
        """The same with no more left to the guest than I/O threads leave.

        :param spare: room beside the promise, in CPUs.
        """
        left = (self.bandwidth + max(Fraction(0), spare) - io.bandwidth
                ) / len(self.targets)
        return self.lowered(min(self.now.runtime_us, max(1, math.floor(
            left * self.promise.period_us))))

    def as_before(self, current: 'Holding') -> 'Holding':
        """The same with the part of the promise left that was left before.

        :param current: what the instance holds now.
        """
        now, promise = current.now, self.promise
        if current.asked is None:
            # Of an earlier agent only what was left is known.
            if (now.period_us, now.mode, current.backend) == (
                    promise.period_us, promise.mode, self.backend):
                return self.lowered(now.runtime_us)
            return self
        return self.lowered(math.ceil(
            promise.runtime_us * now.runtime_us /
            current.promise.runtime_us))


@dataclasses.dataclass(frozen=True, slots=True)
class IoHolding:
    """What the threads that serve one instance's I/O hold.

    :param pid: the instance's process.
    :param promises: by thread.
    :param on_top: it takes room of its own on the host; else it is inside
        of what the instance is promised.
    """

    pid: int
    promises: tuple[base.Promised, ...]
    on_top: bool

    @property
    def bandwidth(self) -> Fraction:
        """Σ Q/P over the threads, in CPUs."""
        # Nearly always all have one period; a fraction for each of them
        # would cost more than all else that is done for an instance.
        runtimes_us: dict[int, int] = {}
        for _, promise in self.promises:
            runtimes_us[promise.period_us] = (
                runtimes_us.get(promise.period_us, 0) + promise.runtime_us)
        return sum((Fraction(runtime_us, period_us) for
                    period_us, runtime_us in runtimes_us.items()),
                   Fraction(0))

    @property
    def claims(self) -> list[admission.Claim]:
        """The holding as admission sees it."""
        return [claim(promise, (target,))
                for target, promise in self.promises]

    def of(self, tid: int) -> reservation.Reservation | None:
        """What one thread holds."""
        for target, promise in self.promises:
            if target.tid == tid:
                return promise
        return None


@dataclasses.dataclass(frozen=True, slots=True)
class Drift:
    """One instance whose threads were not as they should be.

    :param tids: the threads.
    :param found: what was found, in words.
    """

    instance_uuid: str
    tids: tuple[int, ...]
    found: str


def targets_of(domain: hypervisor.Domain) -> tuple[base.Target, ...]:
    """The vCPU threads of an instance as enforcement sees them."""
    return tuple(base.Target(
        vcpu.index, vcpu.tid, vcpu.pinned_cpus, vcpu.bound)
        for vcpu in domain.vcpus)


def claim(promise: reservation.Reservation,
          targets: Sequence[base.Target]) -> admission.Claim:
    """What threads under one promise take of a host."""
    return admission.Claim(promise, tuple(
        next(iter(target.pinned_cpus))
        if target.pinned_cpus is not None and len(target.pinned_cpus) == 1
        else None for target in targets))


def figures(one: base.Enforced | reservation.Reservation,
            ) -> tuple[int, int, reservation.Mode]:
    """What has to agree between the kernel and a promise."""
    return one.runtime_us, one.period_us, one.mode


def same(held: base.Enforced | None,
         promise: reservation.Reservation) -> bool:
    """Whether the kernel holds a promise."""
    return held is not None and figures(held) == figures(promise)


def words(held: base.Enforced | None) -> str:
    """What the kernel holds, for people."""
    if held is None:
        return 'no reservation'
    return '%s %d us every %d us' % (
        held.mode, held.runtime_us, held.period_us)
