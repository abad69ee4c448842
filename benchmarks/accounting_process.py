# SPDX-License-Identifier: Apache-2.0

"""Accounting alone, in a process of its own, and what it cost.

``python -m benchmarks.accounting_process '{"kind": "trees", "vms": 50, ...}'``
prints one JSON object. What is measured is what the agent's loop does for
accounting once a second, and nothing else of the agent.
"""

from collections.abc import Callable
import contextlib
import dataclasses
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import sys
import tempfile
import threading
import time
import typing as ty

import libvirt

from benchmarks import quickstart
from vsched_agent.accounting import disk
from vsched_agent.accounting import host
from vsched_agent.accounting import network
from vsched_agent.accounting import qemu
from vsched_agent.accounting import usage
from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import driver as libvirt_driver
from vsched_agent.hypervisor.libvirt import events
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm

#: The threads of a QEMU with four vCPUs, a disk and a network card, beside
#: its main thread. The first ones wake up once a second.
NAMES = (
    'CPU 0/KVM',
    'CPU 1/KVM',
    'CPU 2/KVM',
    'CPU 3/KVM',
    'IO iothread1',
    'vhost-1',
    'IO mon_iothread',
    'call_rcu',
    'worker',
)
BUSY = 6

#: What a sample needs, of libvirt's domain statistics.
STATISTICS = (
    libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_VCPU
    | libvirt.VIR_DOMAIN_STATS_INTERFACE
    | libvirt.VIR_DOMAIN_STATS_BLOCK
)

#: The measurement is over.
_DONE = threading.Event()


@dataclasses.dataclass(frozen=True)
class Task:
    """What to run.

    :param kind: ``trees``: processes with the threads of a QEMU, without a
        guest. ``libvirt``: real VMs, whose statistics are read both ways.
    :param vms: how many.
    :param seconds: to measure, each way.
    """

    kind: str
    vms: int
    seconds: int


def _pretend(pipe: ty.Any) -> None:
    """Be a process with the threads of a QEMU, until the pipe closes."""
    # The parent's ways to end are not this one's.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.stack_size(64 * 1024)
    tids = []

    def live(name: str, busy: bool, ready: threading.Event) -> None:
        tid = threading.get_native_id()
        pathlib.Path('/proc/self/task/%d/comm' % tid).write_text(name)
        tids.append(tid)
        ready.set()
        while True:
            time.sleep(1 if busy else 3600)

    for place, name in enumerate(NAMES):
        ready = threading.Event()
        threading.Thread(
            target=live, daemon=True, args=(name, place < BUSY, ready)
        ).start()
        ready.wait()
    pipe.send(tids)
    with contextlib.suppress(EOFError):
        pipe.recv()
    # The parent's cleanups are not this one's.
    os._exit(0)


@contextlib.contextmanager
def _trees(count: int) -> ty.Iterator[list[base.Domain]]:
    """Processes that look like instances."""
    context = multiprocessing.get_context('fork')
    pipes, domains, children = [], [], []
    try:
        for number in range(count):
            here, there = context.Pipe()
            child = context.Process(
                target=_pretend, args=(there,), daemon=True
            )
            child.start()
            there.close()
            pipes.append(here)
            children.append(child)
            tids = here.recv()
            domains.append(
                base.Domain(
                    'uuid-%d' % number,
                    'tree-%d' % number,
                    child.pid or 0,
                    tuple(base.Vcpu(*pair) for pair in enumerate(tids[:4])),
                    iothread_tids=(tids[4],),
                    interfaces=(base.Interface('tap%d' % number),),
                    disks=('vda',),
                )
            )
        yield domains
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.join()


def _write_counters(folder: str, count: int, packets_moved: int) -> None:
    (pathlib.Path(folder) / 'net' / 'dev').write_text(
        'head\nhead\n'
        + ''.join(
            'tap%d: 123456 %d 0 0 0 0 0 0 123456 %d 0 0 0 0 0 0\n'
            % (number, packets_moved, packets_moved)
            for number in range(count)
        )
    )


def _run_trees(task: Task) -> dict[str, ty.Any]:
    moved = 0

    def ask(uuids: ty.Collection[str]) -> disk.Counters:
        return {
            uuid: {'vda': base.DiskCounters(moved, moved)} for uuid in uuids
        }

    with (
        _trees(task.vms) as domains,
        tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder,
    ):
        (pathlib.Path(folder) / 'net').mkdir()
        _write_counters(folder, task.vms, 0)
        meter = usage.UsageMeter(
            qemu.ProcessReader(),
            host.HostMeter(),
            network.PacketMeter(folder),
            disk.RequestMeter(disk.BackgroundPoller(ask)),
        )
        with contextlib.closing(meter):
            for _ in range(2):
                meter.sample(domains, {})
                time.sleep(1)
            began, spent_s = time.monotonic(), time.process_time()
            idle_s = 0.0
            for number in range(task.seconds):
                moved += 100
                aside_s = time.process_time()
                _write_counters(folder, task.vms, moved)
                idle_s += time.process_time() - aside_s
                samples = meter.sample(domains, {})
                time.sleep(max(0.0, began + number + 1 - time.monotonic()))
            used_s = time.process_time() - spent_s - idle_s
            elapsed_s = time.monotonic() - began
            told = sum(
                map(len, (one.threads for one in meter.readings.values()))
            )
    if len(samples) != task.vms or told != task.vms * (len(NAMES) + 1):
        raise RuntimeError('%d samples of %d threads' % (len(samples), told))
    return _figures(task.vms, used_s, elapsed_s)


def _figures(vms: int, used_s: float, elapsed_s: float) -> dict[str, ty.Any]:
    return {
        'vms': vms,
        'core_pct': round(100 * used_s / elapsed_s, 4),
        'us_per_vm': round(1e6 * used_s / elapsed_s / vms, 2),
    }


def _daemon_pid() -> int:
    for entry in pathlib.Path('/proc').iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (
                entry / 'comm'
            ).read_text().strip() in ('libvirtd', 'virtqemud'):
                return int(entry.name)
    raise RuntimeError('there is no daemon of libvirt')


def _cpu_s(pid: int) -> float:
    return time.clock_gettime((~pid << 3) | 2)


def _watch(
    seconds: int, daemon: int, guests: list[int], work: Callable[[], ty.Any]
) -> tuple[float, float, float]:
    """Do something once a second.

    :returns: CPU seconds of this process, of the daemon and of the guests.
    """

    def now() -> tuple[float, float, float]:
        return (time.process_time(), _cpu_s(daemon), sum(map(_cpu_s, guests)))

    before, began = now(), time.monotonic()
    for number in range(seconds):
        work()
        time.sleep(max(0.0, began + number + 1 - time.monotonic()))
    after = now()
    return (after[0] - before[0], after[1] - before[1], after[2] - before[2])


def _run_libvirt(task: Task) -> dict[str, ty.Any]:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix='vsched-bench-')
        )
        for number in range(task.vms):
            stack.enter_context(_guest(folder, number))
        driver = libvirt_driver.LibvirtHypervisor()
        changed = threading.Event()
        driver.start(lambda _uuid: changed.set())
        stack.callback(driver.stop)
        changed.wait(10)
        events.LOOP.acquire()
        stack.callback(events.LOOP.release)
        connection = libvirt.open('qemu:///system')
        stack.callback(connection.close)
        domains = [
            one
            for one in driver.domains()
            if one.name.startswith('vsched-bench-')
        ]
        if len(domains) != task.vms:
            raise RuntimeError('%d of %d VMs run' % (len(domains), task.vms))
        meter = stack.enter_context(
            contextlib.closing(usage.meter_of(driver, False))
        )
        handles = [connection.lookupByUUIDString(one.uuid) for one in domains]
        # Asks about every disk in every pass, as the statistics do.
        alike = stack.enter_context(
            contextlib.closing(usage.meter_of(driver, False, blocking=True))
        )
        for one in (meter, alike):
            one.sample(domains, {})
        daemon, pids = _daemon_pid(), [one.pid for one in domains]
        idle = _watch(task.seconds, daemon, pids, lambda: None)
        ours = _watch(
            task.seconds, daemon, pids, lambda: meter.sample(domains, {})
        )
        like = _watch(
            task.seconds, daemon, pids, lambda: alike.sample(domains, {})
        )
        theirs = _watch(
            task.seconds,
            daemon,
            pids,
            lambda: connection.domainListGetStats(
                handles,
                STATISTICS,
                libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT,
            ),
        )
        figures: dict[str, ty.Any] = {'vms': task.vms}
        for name, spent in (
            ('ours', ours),
            ('ours_all_disks', like),
            ('domstats', theirs),
        ):
            parts = [
                1e6 * max(0.0, one - other) / task.seconds / task.vms
                for one, other in zip(spent, idle, strict=True)
            ]
            figures.update(
                {
                    name + '_us_per_vm': round(parts[0] + parts[1], 1),
                    name + '_of_it_daemon_us': round(parts[1], 1),
                    name + '_in_qemu_us': round(parts[2], 1),
                }
            )
        for name, ours_name in (
            ('as_run_ratio', 'ours'),
            ('like_for_like_ratio', 'ours_all_disks'),
        ):
            figures[name] = round(
                figures['domstats_us_per_vm']
                / figures[ours_name + '_us_per_vm'],
                2,
            )
        return figures


def _guest(folder: str, number: int) -> vm.RunningDomain:
    name = 'vsched-bench-%d' % number
    image = pathlib.Path(folder, name + '.img')
    with open(image, 'wb') as file:
        file.truncate(1 << 20)
    return vm.RunningDomain(
        domain_xml.DomainSpec(
            name=name,
            kernel=os.path.join(quickstart.GUEST, 'vmlinux'),
            initrd=os.path.join(quickstart.GUEST, 'initramfs.cpio'),
            cmdline=domain_xml.cmdline('vsched.load=idle'),
            disks=(domain_xml.Disk(str(image), direct=False),),
            serial_file=str(pathlib.Path(folder, name)),
        ),
        ready_timeout_s=120,
    )


def _end_with_input() -> None:
    # Not sys.stdin.read(): its lock would be held in children that fork.
    while os.read(0, 4096):
        pass
    # As a signal does, so that everything that was started is ended.
    if not _DONE.is_set():
        signal.raise_signal(signal.SIGTERM)


def _terminate(number: int, _frame: ty.Any) -> ty.NoReturn:
    sys.exit(128 + number)


def main() -> int:
    """Run the task that the argument describes."""
    signal.signal(signal.SIGTERM, _terminate)
    threading.Thread(target=_end_with_input, daemon=True).start()
    task = Task(**json.loads(sys.argv[1]))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    run = {'trees': _run_trees, 'libvirt': _run_libvirt}[task.kind]
    figures = run(task)
    _DONE.set()
    print(json.dumps(figures))
    return 0


if __name__ == '__main__':
    sys.exit(main())
