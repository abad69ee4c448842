# SPDX-License-Identifier: Apache-2.0

"""What is given the shares: threads of this host, or a real vCPU."""

from collections.abc import Iterator
import contextlib
import functools
import itertools
import os
import pathlib

from oslo_log import log as logging

from vsched_agent.hypervisor import qemu_process
from vsched_agent.privileged import cgroup
from vsched_agent.profiling.error import hogs
from vsched_agent.profiling.error import plan
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_lib.contract import errors

LOG = logging.getLogger(__name__)

_numbers = itertools.count(1)


class ThreadProbe:
    """A CPU hog, the only thread of its process.

    :param hog: started.
    """

    def __init__(self, hog: hogs.Hog) -> None:
        self._hog = hog

    @property
    def tid(self) -> int:
        """The thread."""
        return self._hog.pid


class Threads:
    """Makes probes of threads.

    :param group_top: where the cpu controller's groups are; None when there
        is none.
    """

    def __init__(self, group_top: str | None) -> None:
        self._group_top = group_top
        if group_top is not None:
            removed = cgroup.remove_stale_probe_groups(group_top)
            if removed:
                LOG.warning(
                    '%d groups of a profiler that was killed are removed',
                    removed,
                )

    @contextlib.contextmanager
    def __call__(self, task: plan.Task) -> Iterator[ThreadProbe]:
        """A probe for a task, in a group of its own where it needs one.

        :raises errors.Refused: when it can not be made.
        """
        with contextlib.ExitStack() as stack:
            group = None
            if task.backend is plan.Backend.CFS:
                group = self._group()
                # After the hog's end: only an empty group can be removed.
                stack.callback(cgroup.remove_probe_group, group)
            hog = stack.enter_context(hogs.Hog())
            if group is not None:
                failed = cgroup.make_probe_group(group, hog.pid)
                if failed:
                    raise errors.Refused(
                        'group %s can not be made: %s'
                        % (group, os.strerror(failed['errno'])),
                        errors.Code.BACKEND_UNAVAILABLE,
                    )
            yield ThreadProbe(hog)

    def _group(self) -> str:
        if self._group_top is None:
            raise errors.Refused(
                'no cgroup hierarchy has the cpu controller',
                errors.Code.BACKEND_UNAVAILABLE,
            )
        return os.path.join(
            self._group_top,
            'vsched-probe-%d-%d' % (os.getpid(), next(_numbers)),
        )


class VcpuProbe:
    """A virtual CPU that burns.

    :param tid: its thread.
    """

    def __init__(self, tid: int) -> None:
        self.tid = tid


class Calibration:
    """Makes probes of the only vCPU of a calibration VM.

    :param kernel: of the guest.
    :param initrd: likewise; it burns with ``vsched.load=burn``.
    :param uri: libvirt's.
    :param serial_folder: where its console is kept meanwhile.
    :param run_dir: where libvirt's QEMU driver keeps its pid files.
    :param virt_type: ``kvm``, ``qemu``, or ``auto``: KVM where the guest
        really boots under it, else emulation.
    :param ready_timeout_s: longest wait for the guest.
    :ivar features: what the VMs were run by, once there was one.
    :ivar notes: why it is not what instances are run by.
    """

    def __init__(
        self,
        kernel: str,
        initrd: str,
        uri: str,
        serial_folder: str,
        run_dir: str,
        virt_type: str = 'auto',
        ready_timeout_s: float = 60.0,
    ) -> None:
        self.features: dict[str, str] = {}
        self.notes: list[str] = []
        self._virt_type = virt_type
        self._kernel = kernel
        self._initrd = initrd
        self._uri = uri
        self._serial_folder = serial_folder
        self._run_dir = pathlib.Path(run_dir)
        self._ready_timeout_s = ready_timeout_s
        for path in (kernel, initrd):
            if not os.path.exists(path):
                raise errors.VschedError(
                    'there is no %s for the calibration VM: set guest_kernel '
                    'and guest_initrd in [profiling]' % path,
                    errors.Code.BACKEND_UNAVAILABLE,
                )

    @contextlib.contextmanager
    def __call__(self, task: plan.Task) -> Iterator[VcpuProbe]:
        """A VM of its own for a task.

        libvirt ends it when this process ends, however that happens.

        :raises errors.Refused: when it does not get up.
        """
        with contextlib.ExitStack() as stack:
            yield VcpuProbe(_vcpu_tid(self._running(stack), self._run_dir))

    def _running(self, stack: contextlib.ExitStack) -> domain_xml.DomainSpec:
        try:
            return vm.start_by(
                self.features.get('virt_type', self._virt_type),
                functools.partial(self._start, stack),
                self._ready_timeout_s,
                self.notes,
            )
        except (vm.GuestNotReady, vm.NotStarted) as problem:
            raise errors.Refused(
                'the calibration VM is not up: %s' % problem,
                errors.Code.BACKEND_UNAVAILABLE,
            ) from None

    def _start(
        self,
        stack: contextlib.ExitStack,
        virt_type: str,
        ready_timeout_s: float,
    ) -> domain_xml.DomainSpec:
        name = 'vsched-calibration-%d-%d' % (os.getpid(), next(_numbers))
        serial = os.path.join(self._serial_folder, name + '.console')
        spec = domain_xml.DomainSpec(
            name,
            self._kernel,
            self._initrd,
            cmdline=domain_xml.cmdline('vsched.load=burn'),
            virt_type=virt_type,
            serial_file=serial,
        )
        with contextlib.ExitStack() as made:
            made.callback(_unlink, serial)
            made.enter_context(
                vm.RunningDomain(
                    spec, self._uri, ready_timeout_s=ready_timeout_s
                )
            )
            stack.push(made.pop_all())
        self.features = {'virt_type': virt_type}
        return spec


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _vcpu_tid(spec: domain_xml.DomainSpec, run_dir: pathlib.Path) -> int:
    process = qemu_process.find(spec.uuid, spec.name, run_dir)
    vcpus = (
        {}
        if process is None
        else qemu_process.vcpus_by_comm(qemu_process.comms(process.pid))
    )
    if 0 not in vcpus:
        raise errors.Refused(
            'the calibration VM %s has no vCPU thread' % spec.name,
            errors.Code.THREADS_GONE,
        )
    return vcpus[0]
