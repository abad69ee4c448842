# SPDX-License-Identifier: Apache-2.0

"""CPU time of an instance's threads, for any hypervisor.

A :class:`Reader` reads the counters of one kind of hypervisor: Linux counts
the threads of a QEMU process; Xen counts its own domains, and Dom0 what it
does for them. Everything else (samples, shares of the host's work,
reservations for I/O threads) is computed from a :class:`Reading`.
"""

import abc
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import typing as ty

from vsched_agent.hypervisor import base
from vsched_lib.contract import messages


class Role(enum.StrEnum):
    """What a host thread does for its instance.

    WORKER is QEMU's pool, which reads and writes files. KVM is its own
    threads: the timer interrupts of an emulated PIT, and the recovery of huge
    pages. OTHER is the rest, and threads that have ended.
    """

    VCPU = 'vcpu'
    EMULATOR = 'emulator'
    IOTHREAD = 'iothread'
    VHOST = 'vhost'
    WORKER = 'worker'
    KVM = 'kvm'
    OTHER = 'other'


class ThreadUse(ty.NamedTuple):
    """CPU use of one thread since the last reading.

    :param tid: the kernel's number of the thread.
    :param run_ns: time that it ran.
    :param wait_ns: time that it was runnable and did not run.
    :param timeslices: how often it began to run.
    """

    tid: int
    role: Role
    run_ns: int
    wait_ns: int
    timeslices: int


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """CPU use of an instance's threads in one interval.

    :param at_ns: end of the interval, on the monotonic clock.
    :param interval_ns: its length.
    :param threads: present threads, vCPUs too.
    :param direct_ns: run time of the host's threads for the instance,
        ended ones included, so it may exceed the sum over ``threads``.
    :param vcpus_are_threads: whether this kernel schedules the vCPUs. If not,
        how often they began to run and how long they waited is unknown, and
        both are 0; and the host's threads run in a domain of their own, whose
        CPU time this kernel cannot reserve.
    """

    instance_uuid: str
    at_ns: int
    interval_ns: int
    threads: tuple[ThreadUse, ...]
    direct_ns: int
    vcpus_are_threads: bool = True

    def total(self, *roles: Role) -> ThreadUse:
        """Return the sum over all threads of some roles, with tid 0.

        :param roles: at least one; the result carries the first.
        """
        uses = [one for one in self.threads if one.role in roles]
        return ThreadUse(
            0,
            roles[0],
            sum(one.run_ns for one in uses),
            sum(one.wait_ns for one in uses),
            sum(one.timeslices for one in uses),
        )

    @property
    def guest(self) -> ThreadUse:
        """Return the sum over all vCPU threads."""
        return self.total(Role.VCPU)

    def by_role_ns(self) -> dict[Role, int]:
        """Return run time by role, with that of ended threads as OTHER.

        The roles except VCPU add up to ``direct_ns``, or to more because
        the clocks are not read at the same moment.
        """
        found = {role: self.total(role).run_ns for role in Role}
        listed_ns = sum(found.values()) - found[Role.VCPU]
        found[Role.OTHER] += max(0, self.direct_ns - listed_ns)
        return found


class Reader(abc.ABC):
    """Reads the CPU use of instances of one kind of hypervisor.

    Used by one thread at a time.
    """

    @abc.abstractmethod
    def read(self, domain: base.Domain) -> Reading | None:
        """Return the CPU use of an instance's threads since the last call.

        :returns: None at the first call for an instance.
        """

    @abc.abstractmethod
    def keep(self, uuids: Collection[str]) -> None:
        """Forget all instances but these."""

    @abc.abstractmethod
    def checkpoint(self) -> dict[str, ty.Any]:
        """Return the counters of the last reading, as JSON types."""

    @abc.abstractmethod
    def resume(self, checkpoint: Mapping[str, ty.Any]) -> None:
        """Continue from the counters of an earlier process.

        The next reading of an instance in the checkpoint covers the time
        since then. Call it before the first reading, and on the same boot
        of the host only.

        :param checkpoint: what :meth:`checkpoint` returned.
        :raises ValueError, TypeError, LookupError: when it is malformed;
            nothing has changed then.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Forget everything and close all files."""


class CpuMeter(abc.ABC):
    """Measures the time of all CPUs of the host between two passes.

    Used by one thread at a time.
    """

    @abc.abstractmethod
    def read(self) -> ty.Any:
        """Return the CPUs' time since the last call, for :meth:`account`.

        :returns: None at the first call, and when reading fails.
        """

    @abc.abstractmethod
    def account(
        self, total: ty.Any, samples: list[messages.UsageSample]
    ) -> messages.HostUsage:
        """Divide the CPUs' time among instances and the host.

        :param total: the interval that the samples are of.
        :param samples: each is given its share of the host's work.
        """

    def missed(  # noqa: B027
        self, samples: Sequence[messages.UsageSample]
    ) -> None:
        """Take samples into account that have no time of the host.

        The next interval of the host may cover theirs.

        :param samples: of a pass for which :meth:`read` has returned None.
        """

    @abc.abstractmethod
    def checkpoint(self) -> dict[str, ty.Any] | None:
        """Return the counters of the last call, as JSON types."""

    @abc.abstractmethod
    def resume(self, checkpoint: Mapping[str, ty.Any] | None) -> None:
        """Continue from what :meth:`checkpoint` returned.

        :raises ValueError, TypeError, LookupError: when it is malformed.
        """
