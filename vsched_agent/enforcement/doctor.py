# SPDX-License-Identifier: Apache-2.0

"""Diagnose what this host can enforce, and how to fix problems."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import enum
import functools
import itertools

from vsched_agent.enforcement import backends
from vsched_agent.enforcement import base
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import leak_repair as repairs
from vsched_agent.enforcement import partitions
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.host import kernel
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged import reclaiming
from vsched_lib.model import reservation


class Level(enum.StrEnum):
    """Severity of a finding."""

    OK = 'ok'
    NOTE = 'note'
    PROBLEM = 'problem'


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One result of the doctor.

    :param level: its severity.
    :param subject: what was checked.
    :param text: the result, with figures.
    :param remedy: what an operator can do about it.
    """

    level: Level
    subject: str
    text: str
    remedy: str = ''

    def to_dict(self) -> dict[str, str]:
        """Return the finding in JSON types."""
        return {
            field.name: str(getattr(self, field.name))
            for field in dataclasses.fields(self)
        }


#: Returns what it found.
Check = Callable[[], Iterable[Finding]]


@dataclasses.dataclass(frozen=True, slots=True)
class Host:
    """Everything that the doctor reads; tests replace it.

    :param facts: of the kernel.
    :param cgroups: control groups.
    :param rungs: the backends.
    :param books: bandwidth that the kernel admits and threads hold.
    :param threads: lists the threads under SCHED_DEADLINE.
    :param rebuild: repairs leaked bandwidth.
    """

    facts: kernel.KernelFacts
    cgroups: cgroup.Cgroups
    rungs: backends.Ladder
    books: capacity.KernelCapacity
    threads: Callable[[], Sequence[capacity.DeadlineThread]]
    rebuild: Callable[[], None]


def this_host() -> Host:
    """Return the host that this process runs on."""
    books = capacity.KernelCapacity()
    # First of all: later reads may make the kernel recount, which hides a
    # leak.
    books.measured()
    return Host(
        kernel.KernelFacts.read(),
        cgroup.Cgroups(),
        backends.Ladder(),
        books,
        capacity.deadline_threads,
        repairs.rebuild_root_domains,
    )


def examine(host: Host | None = None, repair: bool = False) -> list[Finding]:
    """Check everything that enforcement depends on.

    :param host: the host to check; this one when None.
    :param repair: whether to return leaked bandwidth to the kernel.
    :returns: in the order of the report.
    """
    host = host or this_host()
    checks = static_checks(host.cgroups, lambda: host.facts)
    return [
        *(
            backend_finding(name, host.rungs.support(name))
            for name in host.rungs.backends
        ),
        *itertools.chain.from_iterable(check() for check in checks.values()),
        *_reclaiming(host.threads()),
        *_books(host, repair),
    ]


def static_checks(
    cgroups: cgroup.Cgroups, facts: Callable[[], kernel.KernelFacts]
) -> Mapping[str, Check]:
    """Return the checks that only read files, and need no privileges.

    :param facts: returns those of the kernel.
    :returns: by name, in the order of the report.
    """
    return {
        'kernel': lambda: _kernel(facts()),
        'control groups': lambda: _control_groups(cgroups),
        'tick': lambda: _tick(facts()),
        'perf events': lambda: _perf_events(facts()),
    }


def static_checks_of_agent(facts: kernel.KernelFacts) -> Mapping[str, Check]:
    """Return those that an agent repeats; what may change is read again.

    :param facts: of the kernel, as the agent has read them at its start.
    """
    return static_checks(cgroup.Cgroups(), functools.cache(facts.refreshed))


def render(findings: Iterable[Finding]) -> str:
    """Return the findings as text for a terminal."""
    lines = []
    for one in findings:
        lines.append(
            '%-8s %-12s %s' % (one.level.upper(), one.subject, one.text)
        )
        if one.remedy:
            lines.append('%-21s -> %s' % ('', one.remedy))
    return '\n'.join(lines)


def backend_finding(
    name: reservation.Backend, support: base.Support
) -> Finding:
    """Return whether this host can use a backend, and why not."""
    reasons = '; '.join(support.reasons)
    guarantees = name in reservation.GUARANTEES
    if not support.usable:
        return Finding(
            Level.PROBLEM if guarantees else Level.NOTE,
            str(name),
            'this host cannot use it: %s' % reasons,
        )
    return Finding(
        Level.OK,
        str(name),
        'usable%s%s'
        % (
            ', guarantees CPU time' if guarantees else '',
            ': ' + reasons if reasons else '',
        ),
    )


def _kernel(facts: kernel.KernelFacts) -> Iterator[Finding]:
    yield Finding(
        Level.OK,
        'kernel',
        'Linux %s, %d CPUs online' % (facts.release, len(facts.online)),
    )
    if not facts.options:
        yield Finding(Level.NOTE, 'kernel', 'its options are unknown')
    else:
        for option, without in _OPTIONS.items():
            if facts.options.get(option, 'n') == 'n':
                yield Finding(
                    Level.NOTE,
                    'kernel',
                    'CONFIG_%s is off: %s' % (option, without),
                )
        if facts.options.get('RT_GROUP_SCHED') == 'y':
            yield Finding(
                Level.OK,
                'kernel',
                'CONFIG_RT_GROUP_SCHED is on: SCHED_FIFO needs an rt_runtime '
                'in its control group, SCHED_DEADLINE does not',
            )
    if facts.rt_runtime_us < 0:
        yield Finding(
            Level.NOTE,
            'sysctl',
            'kernel.sched_rt_runtime_us is -1: the kernel admits anything, '
            'and reservations may starve the host',
            'sysctl kernel.sched_rt_runtime_us=950000',
        )
    else:
        yield Finding(
            Level.OK,
            'sysctl',
            'real-time threads may use %d of every %d '
            'us of a CPU; periods from %d to %d us'
            % (
                facts.rt_runtime_us,
                facts.rt_period_us,
                facts.dl_period_min_us,
                facts.dl_period_max_us,
            ),
        )
    if facts.fair_servers:
        mcpu = sum(
            round(1000 * runtime_ns / period_ns)
            for runtime_ns, period_ns in facts.fair_servers.values()
            if period_ns
        )
        yield Finding(
            Level.OK,
            'fair server',
            'ordinary threads are kept %d mcpu over '
            '%d CPUs' % (mcpu, len(facts.fair_servers)),
        )


#: The budget_check_us that the doctor recommends: with a shorter one the
#: helper is throttled halfway through a check when the class is full.
CHECK_US = 500

#: Options whose absence matters to an operator, and the effect.
_OPTIONS = {
    'CFS_BANDWIDTH': 'backend cfs has no quotas',
    'CPUSETS': 'backend deadline cannot hold pinned vCPUs',
    'SCHED_HRTICK': "budgets expire at the scheduler's tick at best",
}


def _control_groups(cgroups: cgroup.Cgroups) -> Iterator[Finding]:
    versions = sorted(cgroups.versions)
    yield Finding(
        Level.OK if versions else Level.PROBLEM,
        'cgroup',
        'version %s' % ' and '.join(map(str, versions))
        if versions
        else 'no control groups are mounted',
        '' if versions else 'mount them below /sys/fs/cgroup',
    )
    for controller, use in (
        ('cpu', 'backend cfs'),
        ('cpuset', 'pinned vCPUs'),
    ):
        mount = cgroups.mount(controller)
        if mount is None:
            yield Finding(
                Level.NOTE,
                'cgroup',
                'no %s controller: no %s' % (controller, use),
            )
        else:
            yield Finding(
                Level.OK,
                'cgroup',
                '%s controller: v%d at %s'
                % (controller, mount.version, mount.point),
            )
    yield from _pinning(cgroups)


def _pinning(cgroups: cgroup.Cgroups) -> Iterator[Finding]:
    """Report how this host holds pinned vCPUs."""
    mount = cgroups.mount('cpuset')
    if mount is None:
        return
    cpus = cgroups.unpartitioned_cpus()
    apart = cpu_list.online() - cpus if cpus else frozenset()
    in_partitions = (
        '; CPUs %s are in partitions' % cpu_list.render(apart) if apart else ''
    )
    if cpus is None:
        how = 'pinned vCPUs are confined by cpusets and admitted globally'
    elif partitions.remote(mount.point):
        how = (
            'pinned vCPUs are confined by cpusets and admitted globally; '
            'those on CPUs of [enforcement] partition_cpus can have their CPU '
            'as a partition'
        )
    else:
        how = (
            'pinned vCPUs are confined by cpusets and admitted globally; a '
            'partition of a single vCPU needs Linux 6.7 and a running '
            'instance to see it. All of machine.slice can be a partition'
        )
    yield Finding(Level.OK, 'pinning', how + in_partitions)


def _tick(facts: kernel.KernelFacts) -> Iterator[Finding]:
    least = ', '.join(
        '%d of %d us' % (runtime_us, period_us)
        for period_us, runtime_us in facts.least_runtime_us.items()
    )
    if facts.hrtick_dl:
        yield Finding(
            Level.OK,
            'tick',
            'a tick is %d us, and budgets expire by a timer '
            'of their own (HRTICK_DL)' % facts.tick_us,
        )
        return
    yield Finding(
        Level.NOTE,
        'tick',
        'a tick is %d us: a budget is overrun by up to that and the thread '
        'waits until it is earned back; shares over seconds are exact, '
        'bursts are not. Accepted are runtimes from %s'
        % (facts.tick_us, least),
        _finer(facts),
    )


def _finer(facts: kernel.KernelFacts) -> str:
    ways = []
    if facts.options.get('SCHED_HRTICK') == 'y':
        ways.append(
            'this kernel can expire budgets by a timer%s: write HRTICK_DL to '
            '/sys/kernel/debug/sched/features, where debugfs is mounted and '
            'not locked down'
            % (
                ' (whether it does cannot be read)'
                if facts.hrtick_dl is None
                else ''
            )
        )
    elif facts.tick_us > 1000:
        ways.append(
            'a kernel with CONFIG_HZ=1000 makes bursts four times finer'
        )
    if facts.tick_us > CHECK_US:
        ways.append(
            '[enforcement] budget_check_us = %d checks budgets when they '
            'expire, for at most a tenth of a CPU' % CHECK_US
        )
    return '; or '.join(ways)


#: The strictest kernel.perf_event_paranoid of the upstream kernel, in which
#: CAP_PERFMON suffices. Debian's and Ubuntu's kernels know higher ones, which
#: require CAP_SYS_ADMIN, and Debian's default is 3.
PERFMON_PARANOID = 2


def _perf_events(facts: kernel.KernelFacts) -> Iterator[Finding]:
    """Report whether the helper with CAP_PERFMON can open perf events."""
    level = facts.perf_event_paranoid
    without = (
        'error profiles are measured by clocks that are as coarse as a tick, '
        'running instances give no samples, and budgets are checked by '
        'polling'
    )
    if level is None:
        yield Finding(
            Level.NOTE, 'perf events', 'this kernel has none: %s' % without
        )
    elif level > PERFMON_PARANOID:
        yield Finding(
            Level.NOTE,
            'perf events',
            'kernel.perf_event_paranoid is %d: the kernel requires '
            'CAP_SYS_ADMIN for them, which the helper does not have; %s'
            % (level, without),
            'sysctl kernel.perf_event_paranoid=%d, and the same line in a '
            'file in /etc/sysctl.d' % PERFMON_PARANOID,
        )
    else:
        yield Finding(
            Level.OK,
            'perf events',
            'kernel.perf_event_paranoid is %d: the helper with CAP_PERFMON '
            'can open them' % level,
        )


def _reclaiming(
    threads: Sequence[capacity.DeadlineThread],
) -> Iterator[Finding]:
    """Report reclaiming threads left by a killed agent and helper."""
    found = [
        one for one in threads if one.reclaims and one.comm not in _HELPERS
    ]
    if found and not any(one.comm == reclaiming.COMM for one in threads):
        yield Finding(
            Level.PROBLEM,
            'idle time',
            '%d threads (%s) take CPU time from '
            'ordinary threads: they reclaim bandwidth, and no agent stops '
            'that when the host is busy'
            % (len(found), ', '.join(str(one.tid) for one in found)),
            'start the agent, or run "vsched-agent restore"',
        )


#: Threads of helpers, which always reclaim a little.
_HELPERS = (checking.COMM, reclaiming.COMM)


def _books(host: Host, repair: bool) -> Iterator[Finding]:
    threads = host.threads()
    measured = host.books.measured()
    yield Finding(
        Level.OK if measured.total_units else Level.PROBLEM,
        'bandwidth',
        'the kernel still admits %d mcpu; %d threads hold %d mcpu of '
        'SCHED_DEADLINE'
        % (
            _mcpu(measured.free_units),
            len(threads),
            _mcpu(measured.live_units),
        ),
    )
    for thread in threads:
        yield Finding(
            Level.OK,
            'thread',
            '%d (process %d, %s) holds %d mcpu'
            % (thread.tid, thread.pid, thread.comm, _mcpu(thread.units)),
        )
    if measured.recovered_units:
        yield Finding(
            Level.NOTE,
            'leak',
            '%d mcpu (%d units of 2**-20 CPU) were held '
            'by no thread; this kernel recounts when its bound is read, '
            'and has recovered them'
            % (_mcpu(measured.recovered_units), measured.recovered_units),
        )
    if not measured.leaked_units:
        yield Finding(Level.OK, 'leak', 'no bandwidth is leaked')
        return
    lost = (
        '%d mcpu (%d units of 2**-20 CPU) are held by no thread: the '
        'kernel should admit %d mcpu in total'
        % (
            measured.leaked_mcpu,
            measured.leaked_units,
            _mcpu(measured.expected_units or 0),
        )
    )
    if not repair:
        yield Finding(
            Level.PROBLEM, 'leak', lost, 'vsched-agent doctor --repair'
        )
        return
    try:
        host.rebuild()
    except repairs.NotRepairable as error:
        yield Finding(Level.PROBLEM, 'leak', lost, str(error))
        return
    host.books.invalidate()
    after = host.books.measured()
    yield Finding(
        Level.PROBLEM if after.leaked_units else Level.OK,
        'leak',
        '%s; after the repair %d mcpu' % (lost, after.leaked_mcpu),
        'reboot the host' if after.leaked_units else '',
    )


def _mcpu(units: int) -> int:
    return (units * reservation.MCPU_PER_CPU) >> reservation.KERNEL_BW_SHIFT
