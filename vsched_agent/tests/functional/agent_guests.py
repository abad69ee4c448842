# SPDX-License-Identifier: Apache-2.0

"""Guests under test, as the host's kernel sees them."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import concurrent.futures
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import threading
import time
import typing as ty
import uuid as uuids

import libvirt
import libvirt_qemu

from vsched_agent.host import cgroup
from vsched_agent.host import schedstat
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.hypervisor.libvirt import metadata
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_agent.tests import fixtures
from vsched_agent.tests import guest_calls

_VCPU = re.compile(r'CPU (\d+)/')
_CGROUPS = cgroup.Cgroups()
#: A reading of threads that took so long counts, in seconds, and how many are
#: taken at most for one.
_QUICK_S, _READINGS = 0.002, 20
#: CPUs: a watch counts at once when no more was stolen, and how many are made
#: at most, of which the one counts that had the least stolen.
_LITTLE_STOLEN, _WATCHES = 0.01, 4
#: A CPU that runs again counts what was stolen of it at its next tick.
_TICKS_S = 0.05


class Vm(vm.RunningDomain):
    """A small guest, and what its threads have.

    :param folder: for its console.
    :param load: what it does: see tools/guest/init.
    :param heartbeat: whether it tells ten times a second that it is alive.
    :param runs: words of each vsched-load that it runs: see
        tools/guest/load.c.
    :param ip: address and prefix of its first network card.
    :param ready_timeout_s: longest wait until it is up.
    :param initramfs: file of the guest's folder that it boots.
    :param fields: of :class:`domain_xml.DomainSpec`.
    """

    def __init__(
        self,
        folder: str,
        load: str = 'idle',
        heartbeat: bool = False,
        runs: Sequence[str] = (),
        ip: str | None = None,
        ready_timeout_s: float = fixtures.BOOT_S,
        initramfs: str = 'initramfs.cpio',
        **fields: ty.Any,
    ) -> None:
        name = 'vsched-test-%s' % uuids.uuid4().hex[:12]
        words = ['vsched.load=%s' % load]
        if heartbeat:
            words.append('vsched.heartbeat=1')
        if ip:
            words.append('vsched.ip=%s' % ip)
        words.extend('vsched.run=%s' % run.replace(' ', ':') for run in runs)
        super().__init__(
            domain_xml.DomainSpec(
                name=name,
                kernel=str(fixtures.GUEST_DIR / 'vmlinux'),
                initrd=str(fixtures.GUEST_DIR / initramfs),
                cmdline=domain_xml.cmdline(*words),
                serial_file=os.path.join(folder, name + '.serial'),
                **fields,
            ),
            fixtures.URI,
            ready_timeout_s=ready_timeout_s,
        )

    def start(self) -> None:
        """Start it, and wait until its guest is up."""
        fixtures.boot(super().start)

    # What it is

    @property
    def pid(self) -> int:
        """QEMU's process, found without the agent's driver."""
        return int(
            pathlib.Path(
                '/run/libvirt/qemu/%s.pid' % self.spec.name
            ).read_text()
        )

    @property
    def vcpu_tids(self) -> list[int]:
        """The threads of its vCPUs, by their names."""
        found = {}
        for tid, name in self._names():
            match = _VCPU.match(name)
            if match:
                found[int(match.group(1))] = tid
        return [tid for _, tid in sorted(found.items())]

    @property
    def io_tids(self) -> list[int]:
        """QEMU's main thread and its iothreads, by their names."""
        return [
            self.pid,
            *sorted(
                tid
                for tid, name in self._names()
                if name.startswith('IO iothread')
            ),
        ]

    def _names(self) -> Iterator[tuple[int, str]]:
        """Yield each thread of QEMU and its name."""
        for task in pathlib.Path('/proc/%d/task' % self.pid).iterdir():
            # One that serves a disk's file may end meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield int(task.name), (task / 'comm').read_text()

    # What it has

    def attrs(self) -> list[syscalls.Attr]:
        """How each vCPU thread is scheduled."""
        return [syscalls.get_attr(tid) for tid in self.vcpu_tids]

    def held(self) -> list[tuple[int, int] | None]:
        """(runtime, period) in us of each vCPU thread under deadline.

        To the nearest: an agent that looks at budgets between ticks has
        them off by a nanosecond every other time.
        """
        return [
            (round(attr.runtime_ns / 1000), round(attr.period_ns / 1000))
            if attr.policy == syscalls.SCHED_DEADLINE
            else None
            for attr in self.attrs()
        ]

    def place(self, controller: str = 'cpu', index: int = 0) -> cgroup.Place:
        """One vCPU thread's control group."""
        return _place(self.vcpu_tids[index], controller)

    def quota(self, index: int = 0) -> tuple[int, int]:
        """(quota, period) of one vCPU's group, in us; -1 for none."""
        place = self.place('cpu', index)
        if place.version == 1:
            return (
                int(place.read('cpu.cfs_quota_us')),
                int(place.read('cpu.cfs_period_us')),
            )
        quota, period = place.read('cpu.max').split()
        return -1 if quota == 'max' else int(quota), int(period)

    def set_quota(
        self, quota_us: int, period_us: int, tid: int | None = None
    ) -> None:
        """A foreign hand on a thread's group, which no daemon can delay.

        :param tid: the thread; the first vCPU's by default.
        """
        place = _place(tid, 'cpu') if tid else self.place()
        values = {
            'cpu.cfs_period_us': '%d' % period_us,
            'cpu.cfs_quota_us': '%d' % quota_us,
        }
        if place.version == 2:
            values = {
                'cpu.max': '%s %d'
                % ('max' if quota_us < 0 else quota_us, period_us)
            }
        for name, text in values.items():
            pathlib.Path(place.file(name)).write_text(text)

    def found(self) -> list[tuple[ty.Any, ...]]:
        """All that vsched may change of each vCPU, for a comparison."""
        return [
            (
                syscalls.get_attr(tid),
                self.quota(index),
                frozenset(os.sched_getaffinity(tid)),
                self.place('cpuset', index).read('cpuset.cpus'),
            )
            for index, tid in enumerate(self.vcpu_tids)
        ]

    # What is done to it

    def set_extra_specs(self, specs: Mapping[str, object]) -> None:
        """Have its metadata say so, as virsh metadata does.

        :param specs: keys of our namespace without it; none removes all.
        """
        self.handle.setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT,
            guest_calls.plain_metadata(
                {'vsched:' + key: str(value) for key, value in specs.items()}
            )
            if specs
            else None,
            guest_calls.PLAIN_KEY,
            metadata.PLAIN_NS,
            libvirt.VIR_DOMAIN_AFFECT_LIVE,
        )

    def set_weight(self, weight: int) -> None:
        """How it fares against other work; libvirt's default is 1024."""
        self.handle.setSchedulerParametersFlags(
            {'cpu_shares': weight}, libvirt.VIR_DOMAIN_AFFECT_LIVE
        )

    def execute(self, *command: str, patience_s: float = 120.0) -> None:
        """Have its guest agent start a program; it may not be up yet."""
        text = json.dumps(
            {
                'execute': 'guest-exec',
                'arguments': {'path': command[0], 'arg': command[1:]},
            }
        )
        give_up = time.monotonic() + patience_s
        while True:
            try:
                libvirt_qemu.qemuAgentCommand(self.handle, text, 10, 0)
            except libvirt.libvirtError as error:
                if (
                    error.get_error_code()
                    != libvirt.VIR_ERR_AGENT_UNRESPONSIVE
                    or time.monotonic() > give_up
                ):
                    raise
                pause(0.1)
            else:
                return

    def clock_source(self) -> str:
        """Return the clock that its kernel reads."""
        return guest_calls.clock_source(self.handle)

    def readies(self) -> int:
        """How many times its guest has come up."""
        return self.console().count(vm.READY)

    def await_readies(
        self, count: int, patience_s: float = fixtures.BOOT_S
    ) -> None:
        """Wait until its guest has come up so many times."""
        give_up = time.monotonic() + patience_s
        while self.readies() < count:
            if time.monotonic() > give_up:
                raise AssertionError(
                    '%s: %r' % (self.spec.name, self.console()[-300:])
                )
            pause(0.05)


def _place(tid: int, controller: str) -> cgroup.Place:
    place = _CGROUPS.place(tid, controller)
    if place is None:
        raise AssertionError('no group under %s' % controller)
    return place


def start_all(guests: Sequence[Vm]) -> None:
    """Start guests side by side, and wait for all."""
    with concurrent.futures.ThreadPoolExecutor(len(guests)) as pool:
        for started in [pool.submit(one.start) for one in guests]:
            started.result()


def start_in_turn(guests: Sequence[vm.RunningDomain]) -> None:
    """Start guests that burn as soon as they are up.

    Each boots alone, while those before it are suspended: with all CPUs taken
    an emulated guest of several vCPUs may not come up.
    """
    for one in guests:
        one.start()
        one.handle.suspend()
    for one in guests:
        one.handle.resume()


def require_clock_source(guests: Sequence[Vm]) -> None:
    """Refuse to time anything in guests with an emulated clock.

    :raises RuntimeError: naming the guest and its clock source.
    """
    for one in guests:
        found = one.clock_source()
        if found != domain_xml.CLOCK_SOURCE:
            raise RuntimeError(
                '%s: clock source %s, expected %s'
                % (one.spec.name, found, domain_xml.CLOCK_SOURCE)
            )


@contextlib.contextmanager
def hypervisor(
    patience_s: float = 120.0,
) -> ty.Iterator[driver.LibvirtHypervisor]:
    """Yield the agent's driver when it is connected."""
    found = driver.LibvirtHypervisor(fixtures.URI)
    found.start(lambda *changes: None)
    try:
        give_up = time.monotonic() + patience_s
        while True:
            try:
                found.domains()
                break
            except base.HypervisorUnavailable:
                if time.monotonic() > give_up:
                    raise
                pause(0.1)
        yield found
    finally:
        found.stop()


@contextlib.contextmanager
def sleeper() -> ty.Iterator[int]:
    """Yield a thread that sleeps."""
    wake = threading.Event()
    thread = threading.Thread(target=wake.wait)
    thread.start()
    try:
        yield thread.native_id or 0
    finally:
        wake.set()
        thread.join()


def pause(seconds: float) -> None:
    """Let the guests run for a while."""
    threading.Event().wait(seconds)


@dataclasses.dataclass(frozen=True)
class Got:
    """What threads got over a few seconds.

    :param shares: of one CPU, for each.
    :param stolen: CPUs that the machine under this one took meanwhile; no
        scheduler here can give what is not there.
    """

    shares: list[float]
    stolen: float


def measure(tids: Sequence[int], seconds: float = 3.0) -> Got:
    """Watch what threads get.

    While the machine under this one takes CPU time, no more is seen than that
    it does: such a watch is repeated.
    """
    found = _watch(tids, seconds)
    for _ in range(_WATCHES - 1):
        if found.stolen <= _LITTLE_STOLEN:
            break
        again = _watch(tids, seconds)
        if again.stolen < found.stolen:
            found = again
    return found


def _watch(tids: Sequence[int], seconds: float) -> Got:
    # Around the readings: what is taken between two of them counts.
    before_s = stolen_s()
    began, before = _run_ns(tids)
    pause(seconds)
    ended, after = _run_ns(tids)
    pause(_TICKS_S)
    return Got(
        [
            (two - one) / 1e9 / (ended - began)
            for one, two in zip(before, after, strict=True)
        ],
        (stolen_s() - before_s) / (ended - began),
    )


def _run_ns(tids: Sequence[int]) -> tuple[float, list[int]]:
    """Return a moment, and how long threads had run by then.

    Beside guests that burn this thread may have to wait between its look at
    the clock and those at the threads: the quickest of some readings counts.
    """
    quickest, found = math.inf, (0.0, [0])
    for _ in range(_READINGS):
        began = time.monotonic()
        run_ns = [schedstat.read(tid).run_ns for tid in tids]
        took = time.monotonic() - began
        if took < quickest:
            quickest, found = took, (began, run_ns)
        if quickest < _QUICK_S:
            break
    return found


def stolen_s() -> float:
    """CPU time that the machine under this one took since the boot."""
    # proc(5): the eighth figure of the first line, in clock ticks.
    with open('/proc/stat', encoding='ascii') as file:
        return int(file.readline().split()[8]) / os.sysconf('SC_CLK_TCK')


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children without a word (SIGKILL)."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def stop_all(guests: Sequence[Vm]) -> None:
    """End guests side by side."""
    with concurrent.futures.ThreadPoolExecutor(len(guests)) as pool:
        for stopped in [pool.submit(one.stop) for one in guests]:
            stopped.result()
