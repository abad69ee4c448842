# SPDX-License-Identifier: Apache-2.0

"""Checks of a host that only read files, and need no privileges."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
import functools

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import partitions
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.host import kernel

#: The budget_check_us that the doctor recommends: with a shorter one the
#: helper is throttled halfway through a check when the class is full.
CHECK_US = 500

#: Options whose absence matters to an operator, and the effect.
_OPTIONS = {
    'CFS_BANDWIDTH': 'backend cfs has no quotas',
    'CPUSETS': 'backend deadline cannot hold pinned vCPUs',
    'SCHED_HRTICK': "budgets expire at the scheduler's tick at best",
}

#: The strictest kernel.perf_event_paranoid of the upstream kernel, in which
#: CAP_PERFMON suffices. Debian's and Ubuntu's kernels know higher ones, which
#: require CAP_SYS_ADMIN, and Debian's default is 3.
PERFMON_PARANOID = 2


def static_checks(
    cgroups: cgroup.Cgroups, facts: Callable[[], kernel.KernelFacts]
) -> Mapping[str, diagnosis.Check]:
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


def static_checks_of_agent(
    facts: kernel.KernelFacts,
) -> Mapping[str, diagnosis.Check]:
    """Return those that an agent repeats; what may change is read again.

    :param facts: of the kernel, as the agent has read them at its start.
    """
    return static_checks(cgroup.Cgroups(), functools.cache(facts.refreshed))


def _kernel(facts: kernel.KernelFacts) -> Iterator[diagnosis.Finding]:
    yield diagnosis.Finding(
        diagnosis.Level.OK,
        'kernel',
        'Linux %s, %d CPUs online' % (facts.release, len(facts.online)),
    )
    if not facts.options:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE, 'kernel', 'its options are unknown'
        )
    else:
        for option, without in _OPTIONS.items():
            if facts.options.get(option, 'n') == 'n':
                yield diagnosis.Finding(
                    diagnosis.Level.NOTE,
                    'kernel',
                    'CONFIG_%s is off: %s' % (option, without),
                )
        if facts.options.get('RT_GROUP_SCHED') == 'y':
            yield diagnosis.Finding(
                diagnosis.Level.OK,
                'kernel',
                'CONFIG_RT_GROUP_SCHED is on: SCHED_FIFO needs an rt_runtime '
                'in its control group, SCHED_DEADLINE does not',
            )
    if facts.rt_runtime_us < 0:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'sysctl',
            'kernel.sched_rt_runtime_us is -1: the kernel admits anything, '
            'and reservations may starve the host',
            'sysctl kernel.sched_rt_runtime_us=950000',
        )
    else:
        yield diagnosis.Finding(
            diagnosis.Level.OK,
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
        yield diagnosis.Finding(
            diagnosis.Level.OK,
            'fair server',
            'ordinary threads are kept %d mcpu over '
            '%d CPUs' % (mcpu, len(facts.fair_servers)),
        )


def _control_groups(cgroups: cgroup.Cgroups) -> Iterator[diagnosis.Finding]:
    versions = sorted(cgroups.versions)
    yield diagnosis.Finding(
        diagnosis.Level.OK if versions else diagnosis.Level.PROBLEM,
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
            yield diagnosis.Finding(
                diagnosis.Level.NOTE,
                'cgroup',
                'no %s controller: no %s' % (controller, use),
            )
        else:
            yield diagnosis.Finding(
                diagnosis.Level.OK,
                'cgroup',
                '%s controller: v%d at %s'
                % (controller, mount.version, mount.point),
            )
    yield from _pinning(cgroups)


def _pinning(cgroups: cgroup.Cgroups) -> Iterator[diagnosis.Finding]:
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
    yield diagnosis.Finding(diagnosis.Level.OK, 'pinning', how + in_partitions)


def _tick(facts: kernel.KernelFacts) -> Iterator[diagnosis.Finding]:
    least = ', '.join(
        '%d of %d us' % (runtime_us, period_us)
        for period_us, runtime_us in facts.least_runtime_us.items()
    )
    if facts.hrtick_dl:
        yield diagnosis.Finding(
            diagnosis.Level.OK,
            'tick',
            'a tick is %d us, and budgets expire by a timer '
            'of their own (HRTICK_DL)' % facts.tick_us,
        )
        return
    yield diagnosis.Finding(
        diagnosis.Level.NOTE,
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
            'not locked down, after each boot. The cost: the timer is set '
            'whenever a thread of SCHED_DEADLINE begins to run, and each '
            'exhausted budget is an interrupt'
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


def _perf_events(facts: kernel.KernelFacts) -> Iterator[diagnosis.Finding]:
    """Report whether the helper with CAP_PERFMON can open perf events."""
    level = facts.perf_event_paranoid
    without = (
        'error profiles are measured by clocks that are as coarse as a tick, '
        'running instances give no samples, and budgets are checked by '
        'polling'
    )
    if level is None:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'perf events',
            'this kernel has none: %s' % without,
        )
    elif level > PERFMON_PARANOID:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'perf events',
            'kernel.perf_event_paranoid is %d: the kernel requires '
            'CAP_SYS_ADMIN for them, which the helper does not have; %s'
            % (level, without),
            'sysctl kernel.perf_event_paranoid=%d, and the same line in a '
            'file in /etc/sysctl.d' % PERFMON_PARANOID,
        )
    else:
        yield diagnosis.Finding(
            diagnosis.Level.OK,
            'perf events',
            'kernel.perf_event_paranoid is %d: the helper with CAP_PERFMON '
            'can open them' % level,
        )
