# SPDX-License-Identifier: Apache-2.0

"""Calibration VMs with a private network and a private disk each.

All of it is bound to this process: libvirt ends the VMs with its connection
and their disks have no name once they run, the peer and the bridge end with
their helper. What a killed one left in the moment before that is removed at
the next start.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import os
import pathlib
import re
import typing as ty

from oslo_log import log as logging

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor import device_counters
from vsched_agent.hypervisor import qemu_process
from vsched_agent.profiling.guest import commands as guest_commands
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_agent.profiling.overhead import idle
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling.overhead import peer
from vsched_agent.profiling.overhead import traffic
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

DISK_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_LOAD = '/bin/vsched-load'
_IMAGE = re.compile(r'vsched-calibration-([0-9]{1,7})-[0-9]+\.img\Z', re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Props:
    """What a stage is made of.

    :param kernel: of the guests.
    :param initrd: likewise; has :program:`vsched-load`.
    :param uri: libvirt's.
    :param run_dir: where libvirt's QEMU driver keeps its pid files.
    :param console_folder: where guests' consoles are kept meanwhile.
    :param disk_folder: where their disks are, until they run.
    :param virt_type: ``kvm``, ``qemu``, or ``auto``: the first that works.
    :param ready_timeout_s: longest wait for a guest.
    """

    kernel: str
    initrd: str
    uri: str
    run_dir: str
    console_folder: str
    disk_folder: str
    virt_type: str = 'auto'
    ready_timeout_s: float = 60.0

    def check(self) -> None:
        """See whether it is all there.

        :raises errors.VschedError: naming what is not.
        """
        for path in (self.kernel, self.initrd):
            if not os.path.exists(path):
                raise errors.VschedError(
                    'there is no %s for the calibration VM: set guest_kernel '
                    'and guest_initrd in [profiling]' % path,
                    errors.Code.BACKEND_UNAVAILABLE,
                )


class Guest:
    """One calibration VM that is up.

    :param running: the VM.
    :param domain: as the agent's meters see it.
    :param address: in the private network.
    """

    def __init__(
        self, running: vm.RunningDomain, domain: base.Domain, address: str
    ) -> None:
        devices = device_counters.Devices.of(running.handle)
        self.domain = dataclasses.replace(
            domain,
            disks=devices.disks,
            interfaces=tuple(
                base.Interface(name) for name in devices.interfaces
            ),
        )
        self.address = address
        self._running = running
        self._devices = devices

    def disk_counters(self) -> Mapping[str, base.DiskCounters]:
        """What its disks have done so far."""
        return self._devices.read_disks(self._running.handle)

    def begin(self, *words: str) -> guest_commands.GuestCommand:
        """Have it begin a load, until it is stopped."""
        return guest_commands.GuestCommand(
            self._running.handle, (_LOAD, *words, '0')
        )


class Stage:
    """Some calibration VMs and their peer; a context manager.

    :param props: what it is made of.
    :param guests: how many VMs.
    :raises errors.VschedError: when it can not be set up here.
    """

    def __init__(self, props: Props, guests: int = 1) -> None:
        props.check()
        self._props = props
        self._wanted = guests
        self._stack = contextlib.ExitStack()
        #: What it came to be made of, for the profile.
        self.features: dict[str, ty.Any] = {}
        self.notes: list[str] = []
        self.guests: list[Guest] = []

    def __enter__(self) -> ty.Self:
        try:
            self._remove_stale()
            self._network = self._stack.enter_context(peer.Network())
            for number in range(self._wanted):
                self.guests.append(self._guest(number))
            self._keep_awake()
        except (vm.GuestNotReady, vm.NotStarted, OSError) as problem:
            # OSError: no room, no folder or no right for the disk.
            self._stack.close()
            raise errors.VschedError(
                'the calibration VM is not up: %s' % problem,
                errors.Code.BACKEND_UNAVAILABLE,
            ) from None
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *problem: object) -> None:
        self._stack.close()

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, base.DiskCounters]]:
        """As :meth:`base.Hypervisor.disk_counters`, of the guests."""
        return {
            one.domain.uuid: one.disk_counters()
            for one in self.guests
            if one.domain.uuid in uuids
        }

    @contextlib.contextmanager
    def under(self, mix: Iterable[tuple[int, loads.Load]]) -> Iterator[None]:
        """Have guests do I/O.

        :param mix: pairs of a guest's number, from 0, and a load.
        :raises errors.VschedError: when one does not do it.
        """
        commands = []
        try:
            for number, load in mix:
                commands += self._begin(self.guests[number], load)
            yield
            for command in commands:
                command.stop()
        except guest_commands.CommandFailed as problem:
            raise errors.VschedError(
                str(problem), errors.Code.BACKEND_UNAVAILABLE
            ) from None
        finally:
            self._network.quiet()

    def _keep_awake(self) -> None:
        if idle.is_virtual():
            self._stack.enter_context(idle.awake())
            self.features['kept_awake'] = True
            self.notes.append(
                'the CPUs were kept from idling, as this machine is virtual'
            )

    def _begin(
        self, one: Guest, load: loads.Load
    ) -> list[guest_commands.GuestCommand]:
        figures = [str(load.rate), str(load.burst), str(load.size_bytes)]
        if load.experiment is loads.Experiment.NET_RX:
            self._network.send(
                one.address, load.rate, load.burst, load.size_bytes
            )
            return []
        if load.experiment is loads.Experiment.NET_TX:
            return [
                one.begin(
                    'send', peer.PEER_ADDRESS, str(traffic.PORT), *figures
                )
            ]
        if load.experiment is loads.Experiment.IDLE:
            return []
        return [
            one.begin(
                load.experiment.removeprefix('disk-'), '/dev/vda', *figures
            )
        ]

    def _guest(self, number: int) -> Guest:
        return vm.start_by(
            self.features.get('virt_type', self._props.virt_type),
            functools.partial(self._start, number),
            self._props.ready_timeout_s,
            self.notes,
        )

    def _start(
        self, number: int, virt_type: str, ready_timeout_s: float
    ) -> Guest:
        name = 'vsched-calibration-%d-%d' % (os.getpid(), number)
        console = os.path.join(self._props.console_folder, name + '.console')
        disk = os.path.join(self._props.disk_folder, name + '.img')
        address = peer.guest_address(number)
        with contextlib.ExitStack() as names:
            names.callback(_unlink, console)
            names.callback(_unlink, disk)
            direct = _fill(disk)
            spec = domain_xml.DomainSpec(
                name,
                self._props.kernel,
                self._props.initrd,
                cmdline=domain_xml.cmdline(
                    'vsched.ip=%s/%d' % (address, peer.PREFIX),
                    'vsched.run=sink:%d:0' % traffic.PORT,
                ),
                virt_type=virt_type,
                serial_file=console,
                iothreads=1,
                networks=(domain_xml.Network(self._network.bridge),),
                disks=(domain_xml.Disk(disk, direct, iothread=1),),
            )
            running = vm.RunningDomain(
                spec, self._props.uri, ready_timeout_s=ready_timeout_s
            )
            running.start()
            self._stack.callback(running.stop)
        self.features = {
            'virt_type': virt_type,
            'disk': 'direct' if direct else 'cached',
        }
        return Guest(running, self._domain(spec), address)

    def _domain(self, spec: domain_xml.DomainSpec) -> base.Domain:
        process = qemu_process.find(
            spec.uuid, spec.name, pathlib.Path(self._props.run_dir)
        )
        if process is None:
            raise errors.VschedError(
                'the calibration VM %s has no process' % spec.name,
                errors.Code.THREADS_GONE,
            )
        comms = qemu_process.comms(process.pid)
        return base.Domain(
            spec.uuid,
            spec.name,
            process.pid,
            tuple(
                base.Vcpu(index, tid)
                for index, tid in sorted(
                    qemu_process.vcpus_by_comm(comms).items()
                )
            ),
            iothread_tids=qemu_process.iothreads_by_comm(comms),
        )

    def _remove_stale(self) -> None:
        for name in os.listdir(self._props.disk_folder):
            match = _IMAGE.match(name)
            if match and not os.path.exists('/proc/' + match[1]):
                LOG.warning(
                    '%s of a profiler that was killed is removed', name
                )
                _unlink(os.path.join(self._props.disk_folder, name))


def _fill(path: str) -> bool:
    """Write a disk's image: of a sparse one nothing would be read.

    :returns: whether its file system lets it past the page cache.
    """
    chunk = os.urandom(_CHUNK_BYTES)
    with open(path, 'xb') as file:
        for _ in range(DISK_BYTES // _CHUNK_BYTES):
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.close(os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
