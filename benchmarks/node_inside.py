# SPDX-License-Identifier: Apache-2.0

"""What ``benchmarks.node`` measures in the lab node.

    python -m benchmarks.node_inside SECONDS LOAD_S FILE

Writes figures as JSON. Accounts are compared for LOAD_S seconds, everything
else lasts SECONDS.
"""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks import node_yields
from vsched_agent.accounting import usage
from vsched_agent.enforcement import base
from vsched_agent.enforcement import deadline
from vsched_agent.host import kernel
from vsched_agent.host import schedstat
from vsched_agent.profiling.error import hogs
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests import guest_calls
from vsched_lib.model import reservation

#: What the guest is promised, and a share that is small for a tick.
PROMISED = reservation.Reservation(12_000, 20_000)
SMALL = reservation.Reservation(1_000, 20_000)
_FEATURES = pathlib.Path('/sys/kernel/debug/sched/features')
_BRIDGE = 'vsched-bench0'
#: Guests boot in emulation.
_READY_S = 240.0
#: A neighbour is suspended, and resumed, so often.
_TURN_S = 5.0
_DISK_BYTES = 1 << 24


def main() -> int:
    """Measure, and write the figures.

    :returns: the exit code
    """
    seconds, load_s = map(float, sys.argv[1:3])
    path = pathlib.Path(sys.argv[3])
    figures = {
        **_guests(seconds, load_s),
        **node_yields.measure(seconds),
        **_timers(seconds),
    }
    path.write_text(json.dumps(figures), encoding='utf-8')
    return 0


def _guests(seconds: float, load_s: float) -> dict[str, float]:
    """Return what a guest gets among others, and whether the sums agree."""
    with (
        _bridge(),
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
        # The user of QEMU reaches the disk, which libvirt gives to it.
        os.chmod(folder, 0o711)
        disk = pathlib.Path(folder, 'disk')
        disk.write_bytes(os.urandom(_DISK_BYTES))
        guests = [
            agent_guests.Vm(
                folder, virt_type='kvm', ready_timeout_s=_READY_S, **fields
            )
            for fields in (
                {'load': 'burn'},
                {'load': 'burn'},
                {
                    'load': 'burn',
                    'networks': (domain_xml.Network(_BRIDGE),),
                    'ip': '198.18.0.2/24',
                    # Files are read by QEMU's pool, whose threads end.
                    'disks': (domain_xml.Disk(str(disk), direct=False),),
                    'runs': (
                        'send 198.18.0.1 9 200 1 64 0',
                        'read /dev/vda 50 1 4096 0',
                    ),
                },
            )
        ]
        for one in guests:
            stack.callback(one.stop)
            one.start()
        (tid,) = guests[0].vcpu_tids
        backend = deadline.DeadlineBackend()
        targets = [base.Target(0, tid)]
        prior = backend.prior(targets)
        backend.apply_each([(target, PROMISED) for target in targets])
        try:
            return {
                **_share(guests[0], tid, seconds),
                **_conservation(guests[1], load_s),
            }
        finally:
            backend.restore(targets, prior)


def _share(vm: agent_guests.Vm, tid: int, seconds: float) -> dict[str, float]:
    """Return what a busy vCPU got, by the host and by the guest.

    Each counts by its own clock, between its own readings: its reservation is
    the same all the time.
    """
    began_guest_s, began_steal_s = guest_calls.steal(vm.handle, _READY_S)
    began_s, began_ns = time.monotonic(), schedstat.read(tid).run_ns
    time.sleep(seconds)
    ended_s, ended_ns = time.monotonic(), schedstat.read(tid).run_ns
    ended_guest_s, ended_steal_s = guest_calls.steal(vm.handle, _READY_S)
    share = (ended_ns - began_ns) / 1e9 / (ended_s - began_s)
    steal = (ended_steal_s - began_steal_s) / (ended_guest_s - began_guest_s)
    return {
        'share': share,
        'steal': steal,
        # The guest is busy all the time: what it did not get was stolen.
        'steal_gap_pct': 100 * abs(1 - share - steal),
    }


def _conservation(
    neighbour: agent_guests.Vm, seconds: float
) -> dict[str, float]:
    """Return by how much the accounts differ from the control groups' books.

    What the host used itself is what is left of its busy time, so that the
    sum of the accounts proves nothing. The groups count by ways of their own:
    those of guests the exact run time of threads, the root group ticks.

    :param neighbour: suspended half of the time, so that there is idle time.
    """
    with agent_guests.hypervisor() as hypervisor:
        meter = usage.meter_of(
            hypervisor, kernel.KernelFacts.read().irq_time, blocking=True
        )
        try:
            began_us = _around(lambda: meter.sample(hypervisor.domains(), {}))
            whole_us = idle_us = busy_us = charged_us = 0
            suspended = False
            began_s = time.monotonic()
            while True:
                passed_s = time.monotonic() - began_s
                if suspended != (passed_s % (2 * _TURN_S) >= _TURN_S):
                    suspended = not suspended
                    if suspended:
                        neighbour.handle.suspend()
                    else:
                        neighbour.handle.resume()
                time.sleep(1.0)
                ended_us = _around(
                    lambda: meter.sample(hypervisor.domains(), {})
                )
                host = meter.host
                if host is None:
                    raise RuntimeError('the CPU time of the host is unknown')
                whole_us += host.cpus * host.interval_us
                idle_us += host.idle_us
                charged_us += host.guest_us + host.direct_us
                busy_us += (
                    host.guest_us
                    + host.direct_us
                    + host.shared_us
                    + host.own_us
                )
                if passed_s >= seconds:
                    break
            if suspended:
                neighbour.handle.resume()
            root_us, guests_us = (
                ended - began
                for began, ended in zip(began_us, ended_us, strict=True)
            )
        finally:
            meter.close()
    host_gap_pct = 100 * abs(busy_us - root_us) / whole_us
    guests_gap_pct = 100 * abs(charged_us - guests_us) / whole_us
    return {
        'conservation_gap_pct': max(host_gap_pct, guests_gap_pct),
        'host_gap_pct': host_gap_pct,
        'guests_gap_pct': guests_gap_pct,
        'idle_pct': 100 * idle_us / whole_us,
        'load_s': time.monotonic() - began_s,
    }


def _around(sample: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU time of all groups and of guests at a sample, in us.

    Means of before and after: a sample takes its time beside busy guests.
    """
    before = _usage_us(''), _usage_us('machine.slice')
    sample()
    after = _usage_us(''), _usage_us('machine.slice')
    return (before[0] + after[0]) / 2, (before[1] + after[1]) / 2


def _usage_us(group: str) -> int:
    """Return the CPU time of a control group."""
    text = pathlib.Path('/sys/fs/cgroup', group, 'cpu.stat').read_text()
    return int(text.split()[1])


def _timers(seconds: float) -> dict[str, float]:
    """Return the error of a small share without and with HRTICK_DL."""
    found = {}
    had = 'HRTICK_DL' in _FEATURES.read_text().split()
    try:
        for name, feature in (
            ('tick_p99_pct', 'NO_HRTICK_DL'),
            ('hrtick_p99_pct', 'HRTICK_DL'),
        ):
            _FEATURES.write_text(feature)
            found[name] = _small_share_p99_pct(seconds)
    finally:
        _FEATURES.write_text('HRTICK_DL' if had else 'NO_HRTICK_DL')
    return found


def _small_share_p99_pct(seconds: float) -> float:
    backend = deadline.DeadlineBackend()
    share = SMALL.runtime_us / SMALL.period_us
    errors_pct = []
    with contextlib.ExitStack() as stack:
        probe, *_ = [stack.enter_context(hogs.Hog()) for _ in range(3)]
        targets = [base.Target(0, probe.pid)]
        backend.apply_each([(target, SMALL) for target in targets])
        time.sleep(1.0)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            at_s, run_ns = time.monotonic(), schedstat.read(probe.pid).run_ns
            time.sleep(1.0)
            wall_s = time.monotonic() - at_s
            got = (schedstat.read(probe.pid).run_ns - run_ns) / 1e9 / wall_s
            errors_pct.append(100 * abs(got - share) / share)
    # The probe ends in the class, which leaks nothing.
    return statistics.quantiles(errors_pct, n=100, method='inclusive')[-1]


@contextlib.contextmanager
def _bridge() -> Iterator[None]:
    for words in (
        ('link', 'add', _BRIDGE, 'type', 'bridge'),
        ('address', 'add', '198.18.0.1/24', 'dev', _BRIDGE),
        ('link', 'set', _BRIDGE, 'up'),
    ):
        subprocess.run(['ip', *words], check=True)
    try:
        yield
    finally:
        subprocess.run(['ip', 'link', 'delete', _BRIDGE], check=True)


if __name__ == '__main__':
    sys.exit(main())
