# SPDX-License-Identifier: Apache-2.0

"""Diagnose what this host can enforce, and how to fix problems."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools

from vsched_agent.enforcement import backends
from vsched_agent.enforcement import base
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import host_checks
from vsched_agent.enforcement import leak_repair as repairs
from vsched_agent.host import cgroup
from vsched_agent.host import kernel
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged import reclaiming
from vsched_lib.model import reservation


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


def examine(
    host: Host | None = None, repair: bool = False
) -> list[diagnosis.Finding]:
    """Check everything that enforcement depends on.

    :param host: the host to check; this one when None.
    :param repair: whether to return leaked bandwidth to the kernel.
    :returns: in the order of the report.
    """
    host = host or this_host()
    checks = host_checks.static_checks(host.cgroups, lambda: host.facts)
    return [
        *(
            backend_finding(name, host.rungs.support(name))
            for name in host.rungs.backends
        ),
        *itertools.chain.from_iterable(check() for check in checks.values()),
        *_reclaiming(host.threads()),
        *_books(host, repair),
    ]


def backend_finding(
    name: reservation.Backend, support: base.Support
) -> diagnosis.Finding:
    """Return whether this host can use a backend, and why not."""
    reasons = '; '.join(support.reasons)
    guarantees = name in reservation.GUARANTEES
    if not support.usable:
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM if guarantees else diagnosis.Level.NOTE,
            str(name),
            'this host cannot use it: %s' % reasons,
        )
    return diagnosis.Finding(
        diagnosis.Level.OK,
        str(name),
        'usable%s%s'
        % (
            ', guarantees CPU time' if guarantees else '',
            ': ' + reasons if reasons else '',
        ),
    )


def _reclaiming(
    threads: Sequence[capacity.DeadlineThread],
) -> Iterator[diagnosis.Finding]:
    """Report reclaiming threads left by a killed agent and helper."""
    found = [
        one for one in threads if one.reclaims and one.comm not in _HELPERS
    ]
    if found and not any(one.comm == reclaiming.COMM for one in threads):
        yield diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'idle time',
            '%d threads (%s) take CPU time from '
            'ordinary threads: they reclaim bandwidth, and no agent stops '
            'that when the host is busy'
            % (len(found), ', '.join(str(one.tid) for one in found)),
            'start the agent, or run "vsched-agent restore"',
        )


#: Threads of helpers, which always reclaim a little.
_HELPERS = (checking.COMM, reclaiming.COMM)


def _books(host: Host, repair: bool) -> Iterator[diagnosis.Finding]:
    threads = host.threads()
    measured = host.books.measured()
    yield diagnosis.Finding(
        diagnosis.Level.OK
        if measured.total_units
        else diagnosis.Level.PROBLEM,
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
        yield diagnosis.Finding(
            diagnosis.Level.OK,
            'thread',
            '%d (process %d, %s) holds %d mcpu'
            % (thread.tid, thread.pid, thread.comm, _mcpu(thread.units)),
        )
    if measured.recovered_units:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'leak',
            '%d mcpu (%d units of 2**-20 CPU) were held '
            'by no thread; this kernel recounts when its bound is read, '
            'and has recovered them'
            % (_mcpu(measured.recovered_units), measured.recovered_units),
        )
    if not measured.leaked_units:
        yield diagnosis.Finding(
            diagnosis.Level.OK, 'leak', 'no bandwidth is leaked'
        )
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
        yield diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'leak',
            lost,
            'vsched-agent doctor --repair',
        )
        return
    try:
        host.rebuild()
    except repairs.NotRepairable as error:
        yield diagnosis.Finding(
            diagnosis.Level.PROBLEM, 'leak', lost, str(error)
        )
        return
    host.books.invalidate()
    after = host.books.measured()
    yield diagnosis.Finding(
        diagnosis.Level.PROBLEM if after.leaked_units else diagnosis.Level.OK,
        'leak',
        '%s; after the repair %d mcpu' % (lost, after.leaked_mcpu),
        'reboot the host' if after.leaked_units else '',
    )


def _mcpu(units: int) -> int:
    return (units * reservation.MCPU_PER_CPU) >> reservation.KERNEL_BW_SHIFT
