# SPDX-License-Identifier: Apache-2.0

"""What ``benchmarks.node`` measures in the lab node.

    python -m benchmarks.node_inside SECONDS FILE

Writes figures as JSON. Everything lasts SECONDS.
"""

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

from vsched_agent.accounting import usage
from vsched_agent.enforcement import base
from vsched_agent.enforcement import deadline
from vsched_agent.host import kernel
from vsched_agent.host import schedstat
from vsched_agent.profiling.error import hogs
from vsched_agent.profiling.guest import commands
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests.functional import agent_guests
from vsched_lib.model import reservation

#: What the guest is promised, and a share that is small for a tick.
PROMISED = reservation.Reservation(12_000, 20_000)
SMALL = reservation.Reservation(1_000, 20_000)
_FEATURES = pathlib.Path('/sys/kernel/debug/sched/features')
_BRIDGE = 'vsched-bench0'
#: Guests boot in emulation.
_READY_S = 240.0
#: Of the first line of /proc/stat, see proc(5).
_STEAL = 8


def main() -> int:
    """Measure, and write the figures.

    :returns: the exit code
    """
    seconds, path = float(sys.argv[1]), pathlib.Path(sys.argv[2])
    figures = {**_guests(seconds), **_timers(seconds)}
    path.write_text(json.dumps(figures), encoding='utf-8')
    return 0


def _guests(seconds: float) -> dict[str, float]:
    """Return what a guest gets among others, and whether the sums agree."""
    with (
        _bridge(),
        tempfile.TemporaryDirectory() as folder,
        contextlib.ExitStack() as stack,
    ):
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
                    'runs': ('send 198.18.0.1 9 200 1 64 86400',),
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
                **_conservation(seconds),
            }
        finally:
            backend.restore(targets, prior)


def _share(vm: agent_guests.Vm, tid: int, seconds: float) -> dict[str, float]:
    """Return what a busy vCPU got, by the host and by the guest."""
    began_s, began_run_s, began_steal_s = _accounts(vm, tid)
    time.sleep(seconds)
    ended_s, ended_run_s, ended_steal_s = _accounts(vm, tid)
    wall_s = ended_s - began_s
    run_s = ended_run_s - began_run_s
    steal_s = ended_steal_s - began_steal_s
    return {
        'share': run_s / wall_s,
        'steal': steal_s / wall_s,
        # The guest is busy all the time: what it did not get was stolen.
        'steal_gap_pct': 100 * abs(steal_s - (wall_s - run_s)) / wall_s,
    }


def _accounts(vm: agent_guests.Vm, tid: int) -> tuple[float, float, float]:
    """Return the time, the CPU time and the guest's steal time, in seconds.

    The guest answers late: the former two are means of before and after.
    """
    before_s, before_ns = time.monotonic(), schedstat.read(tid).run_ns
    text = commands.GuestCommand(
        vm.handle, ('/bin/cat', '/proc/stat'), _READY_S
    ).wait(_READY_S)
    after_s, after_ns = time.monotonic(), schedstat.read(tid).run_ns
    ticks = int(text.splitlines()[0].split()[_STEAL])
    return (
        (before_s + after_s) / 2,
        (before_ns + after_ns) / 2e9,
        ticks / os.sysconf('SC_CLK_TCK'),
    )


def _conservation(seconds: float) -> dict[str, float]:
    """Return by how much the accounts differ from the control groups' books.

    What the host used itself is what is left of its busy time, so that the
    sum of the accounts proves nothing. The groups count by a way of their own.
    """
    with agent_guests.hypervisor() as hypervisor:
        meter = usage.meter_of(
            hypervisor, kernel.KernelFacts.read().irq_time, blocking=True
        )
        try:
            meter.sample(hypervisor.domains(), {})
            root_us, guests_us = _usage_us(''), _usage_us('machine.slice')
            whole_us = busy_us = charged_us = 0
            until_s = time.monotonic() + seconds
            while time.monotonic() < until_s:
                time.sleep(1.0)
                meter.sample(hypervisor.domains(), {})
                host = meter.host
                if host is None:
                    continue
                whole_us += host.cpus * host.interval_us
                charged_us += host.guest_us + host.direct_us
                busy_us += (
                    host.guest_us
                    + host.direct_us
                    + host.shared_us
                    + host.own_us
                )
            gaps_us = (
                busy_us - (_usage_us('') - root_us),
                charged_us - (_usage_us('machine.slice') - guests_us),
            )
        finally:
            meter.close()
    return {
        'conservation_gap_pct': 100 * max(map(abs, gaps_us)) / whole_us,
        'guests_gap_pct': 100 * abs(gaps_us[1]) / whole_us,
    }


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
