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

"""The seam between the agent and what runs the virtual machines."""

import abc
from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty


class HypervisorUnavailable(Exception):
    """The hypervisor can not be asked just now; try again later."""


@dataclasses.dataclass(frozen=True, slots=True)
class Vcpu:
    """One vCPU of a running instance and the host thread that runs it.

    :param index: the vCPU's number in the guest.
    :param tid: the host thread.
    :param pinned_cpus: host CPUs the instance's definition confines it to;
        None when it may run anywhere.
    :param bound: ballooning has confined it there and not its definition;
        whoever did lets it loose again.
    """

    index: int
    tid: int
    pinned_cpus: frozenset[int] | None = None
    bound: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Interface:
    """A network device of the host that is one end of an instance's.

    :param device: its name on the host.
    :param same_view: what it received, the instance received (macvtap);
        else it received what the instance sent (tap).
    """

    device: str
    same_view: bool = False


class DiskCounters(ty.NamedTuple):
    """Requests that one disk has completed since its instance started."""

    reads: int
    writes: int


@dataclasses.dataclass(frozen=True, slots=True)
class Domain:
    """One running instance.

    :param uuid: the instance's UUID, in its canonical form.
    :param name: the hypervisor's name for it.
    :param pid: the process that runs it.
    :param vcpus: in the order of their index; those with a thread.
    :param emulator_tids: the process's threads that are neither vCPU nor
        iothread.
    :param iothread_tids: threads dedicated to block I/O.
    :param extra_specs: full extra-spec names to text, from the instance's
        own metadata; empty when it carries none.
    :param interfaces: its network devices that the host can see.
    :param disks: the names by which its disks are counted.
    :param metadata_problem: why the metadata can not be read, if so.
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


#: Called from the driver's own thread with the UUID of an instance that
#: started, stopped, or changed its vCPUs or metadata, or with None when
#: anything may have changed (the connection was lost or is back).
ChangeCallback = Callable[[str | None], ty.Any]


class Hypervisor(abc.ABC):
    """What every driver offers. All calls are safe from any thread."""

    #: The driver's name in reports: qemu, xen.
    kind: str

    @abc.abstractmethod
    def start(self, on_change: ChangeCallback) -> None:
        """Begin to watch; keeps trying when the hypervisor is away.

        :param on_change: see :data:`ChangeCallback`.
        """

    @abc.abstractmethod
    def stop(self) -> None:
        """Stop watching and let go of every connection and thread."""

    @property
    @abc.abstractmethod
    def connected(self) -> bool:
        """Whether the last call or event found the hypervisor there."""

    @abc.abstractmethod
    def domains(self) -> Sequence[Domain]:
        """Every running instance.

        :raises HypervisorUnavailable: when it can not be asked.
        """

    @abc.abstractmethod
    def domain(self, uuid: str) -> Domain | None:
        """One running instance, or None when it does not run.

        :raises HypervisorUnavailable: when it can not be asked.
        """

    @abc.abstractmethod
    def disk_counters(self, uuids: Collection[str],
                      ) -> Mapping[str, Mapping[str, DiskCounters]]:
        """What the disks of instances have done, by instance and disk.

        Many in one call; it costs each instance's process some work.

        :param uuids: the instances. Those that do not run, have no disks
            or can not be asked just now are left out of the answer.
        :raises HypervisorUnavailable: when it can not be asked.
        """
