# SPDX-License-Identifier: Apache-2.0

"""The interface between the agent and the hypervisor."""

import abc
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty


class HypervisorUnavailable(Exception):
    """The hypervisor does not answer now; try again later."""


@dataclasses.dataclass(frozen=True, slots=True)
class Vcpu:
    """One vCPU of a running instance and the host thread that runs it.

    :param index: the vCPU's number in the guest.
    :param tid: the host thread.
    :param pinned_cpus: host CPUs that the instance's definition pins it to;
        None when it may run anywhere.
    :param bound: pinned temporarily by ballooning, not by the definition.
    """

    index: int
    tid: int
    pinned_cpus: frozenset[int] | None = None
    bound: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Interface:
    """The host's end of an instance's network device.

    :param device: its name on the host.
    :param same_view: its receive counters are the instance's (macvtap); else
        they are the instance's transmit counters (tap).
    """

    device: str
    same_view: bool = False


class DiskCounters(ty.NamedTuple):
    """Requests that one disk has completed since its instance started."""

    reads: int
    writes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Server:
    """Nova's names of an instance; None where it does not say.

    :param name: the name that its owner gave it.
    :param project_id: the project that owns it.
    :param flavor_name: the name of its flavor.
    """

    name: str | None = None
    project_id: str | None = None
    flavor_name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """One running instance.

    :param uuid: the instance's UUID, in its canonical form.
    :param name: the hypervisor's name for it.
    :param pid: the process that runs it.
    :param vcpus: those with a thread, in the order of their index.
    :param emulator_tids: the process's threads that are neither vCPU nor
        iothread.
    :param iothread_tids: threads dedicated to block I/O.
    :param extra_specs: full extra-spec names to text, from the instance's
        own metadata; empty when it carries none.
    :param interfaces: its network devices with an end on the host.
    :param disks: names of its disks in statistics.
    :param metadata_problem: why the metadata cannot be read, or None.
    :param vcpu_quota: quota and period of each vCPU in its definition, in us;
        None when not set.
    :param server: Nova's names of it.
    """

    uuid: str
    name: str
    pid: int
    vcpus: tuple[Vcpu, ...]
    emulator_tids: tuple[int, ...] = ()
    iothread_tids: tuple[int, ...] = ()
    extra_specs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    metadata_problem: str | None = None
    interfaces: tuple[Interface, ...] = ()
    disks: tuple[str, ...] = ()
    vcpu_quota: tuple[int, int] | None = None
    server: Server = Server()


#: Called from the driver's own thread with the UUID of an instance that
#: started, stopped, or changed its vCPUs or metadata, or with None when
#: anything may have changed (the connection was lost or restored).
ChangeCallback = Callable[[str | None], ty.Any]


class Hypervisor(abc.ABC):
    """The interface of all drivers. Thread-safe."""

    #: The driver's name in reports: qemu, xen.
    kind: str

    @abc.abstractmethod
    def start(self, on_change: ChangeCallback) -> None:
        """Start to watch; reconnect while the hypervisor is unavailable.

        :param on_change: see :data:`ChangeCallback`.
        """

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop watching, and close all connections and threads."""

    @property
    @abc.abstractmethod
    def connected(self) -> bool:
        """Whether the hypervisor is connected."""

    @abc.abstractmethod
    def domains(self) -> Sequence[Domain]:
        """Return every running instance.

        :raises HypervisorUnavailable: when it does not answer.
        """

    @abc.abstractmethod
    def domain(self, uuid: str) -> Domain | None:
        """Return one running instance, or None when it does not run.

        :raises HypervisorUnavailable: when it does not answer.
        """

    @abc.abstractmethod
    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, DiskCounters]]:
        """Return disk counters by instance and disk.

        One call for many instances; each instance's process has to answer.

        :param uuids: the instances. Those that do not run, have no disks
            or do not answer now are left out.
        :raises HypervisorUnavailable: when it does not answer.
        """


class HostTime(ty.NamedTuple):
    """The CPUs of a host, and what its first domain has run on them.

    :param cpus: their number.
    :param first_domain_ns: since the boot, over all of its vCPUs.
    """

    cpus: int
    first_domain_ns: int


class DomainTimes(abc.ABC):
    """The CPU time that a hypervisor which schedules vCPUs itself counts.

    For drivers of hypervisors that run below the agent's own kernel. That
    kernel has no threads for vCPUs and does not see the host's CPUs.
    """

    @abc.abstractmethod
    def vcpu_times_ns(self, uuid: str) -> tuple[int, ...] | None:
        """Return what each vCPU of an instance has run since its start.

        :returns: by index; None when the instance does not run.
        :raises HypervisorUnavailable: when it does not answer.
        """

    @abc.abstractmethod
    def host_time(self) -> HostTime:
        """Return the host's CPUs and the time of the first domain.

        :raises HypervisorUnavailable: when it does not answer.
        """
