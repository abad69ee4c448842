# SPDX-License-Identifier: Apache-2.0

"""Diagnose what a Xen host can enforce, and how to fix problems.

Nothing is changed, and CPU pools are not touched: the hypervisor panics when
one that RTDS schedules is destroyed (Xen 4.17).
"""

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from fractions import Fraction
import math

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import rtds as backends
from vsched_agent.enforcement.xen import scheduler
from vsched_lib.model import reservation
from vsched_lib.model import rtds

#: What has no support on Xen yet.
MISSING = (
    'accounting and charging of I/O, overhead and error profiles, ballooning, '
    'communication awareness, and backends credit2 and credit'
)


def examine(
    enabled: Iterable[reservation.Backend],
    backend: backends.RtdsBackend | None = None,
) -> list[diagnosis.Finding]:
    """Check everything that enforcement depends on.

    :param enabled: backends that this host may use.
    :param backend: rtds; one of this host when None.
    :returns: in the order of the report.
    """
    backend = backend or backends.RtdsBackend()
    try:
        return [
            *_hypervisor(backend.scheduler),
            *_backend(backend, reservation.Backend.RTDS in set(enabled)),
            _missing(),
        ]
    except scheduler.SchedulerUnavailable as failure:
        return [
            diagnosis.Finding(
                diagnosis.Level.PROBLEM,
                'xen',
                'the hypervisor does not answer: %s' % failure,
                "run this on the host's first domain, with Xen's toolstack, "
                'and permit the helper xen; or set [hypervisor] uri',
            )
        ]


def static_checks() -> Mapping[str, diagnosis.Check]:
    """Return the checks that do not ask the hypervisor."""
    return {'xen': lambda: [_missing()]}


def _missing() -> diagnosis.Finding:
    return diagnosis.Finding(
        diagnosis.Level.NOTE, 'xen', 'not supported yet: ' + MISSING
    )


def _hypervisor(found: scheduler.Scheduler) -> Iterator[diagnosis.Finding]:
    yield diagnosis.Finding(
        diagnosis.Level.OK,
        'xen',
        'Xen %s, %d CPUs, scheduler %s'
        % (found.info().get('xen_version', '?'), found.cpus, found.name),
    )


def _backend(
    backend: backends.RtdsBackend, enabled: bool
) -> Iterator[diagnosis.Finding]:
    subject = str(backend.name)
    support = backend.supports()
    reasons = '; '.join(support.reasons)
    if not support.usable:
        yield diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            subject,
            'this host cannot use it: %s' % reasons,
            _remedy(backend.scheduler),
        )
        return
    if not enabled:
        yield diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            subject,
            'the hypervisor runs it, and it is not enabled on this host',
            'add rtds to [enforcement] backends',
        )
        return
    yield diagnosis.Finding(
        diagnosis.Level.OK, subject, 'usable, guarantees CPU time'
    )
    yield diagnosis.Finding(
        diagnosis.Level.NOTE,
        subject,
        'never destroy a CPU pool that RTDS schedules (xl cpupool-destroy): '
        'it panics the hypervisor',
    )
    yield from _budgets(backend)


def _remedy(found: scheduler.Scheduler) -> str:
    if found.name == str(reservation.Backend.RTDS):
        return 'put all CPUs into one pool at the next boot of the host'
    return (
        'build the hypervisor with %s, and start it with sched=rtds'
        % backends.OPTIONS
    )


def _budgets(backend: backends.RtdsBackend) -> Iterator[diagnosis.Finding]:
    """Report who has what, as seen by a process without the agent's memory."""
    found = backend.scheduler.parameters()
    cpus = backend.scheduler.cpus
    total = sum((one.utilisation for one in found.values()), Fraction(0))
    first = sum(
        (one.utilisation for (domid, _), one in found.items() if not domid),
        Fraction(0),
    )
    yield diagnosis.Finding(
        diagnosis.Level.PROBLEM if total > cpus else diagnosis.Level.OK,
        'budgets',
        'all %d vCPUs have %d of %d mcpu, the first domain %d of them'
        % (len(found), _mcpu(total), _mcpu(cpus), _mcpu(first)),
        'the sum is more than there is, so no budget is guaranteed: lower '
        'some by "xl sched-rtds"'
        if total > cpus
        else '',
    )
    untouched = {
        domid
        for (domid, _), one in found.items()
        if domid and one == rtds.DEFAULT
    }
    if untouched:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'budgets',
            '%d domains (%s) have the budget that RTDS gives to each new '
            'vCPU, %d of %d us. It counts against the capacity as long as '
            'they have no reservation'
            % (
                len(untouched),
                ', '.join(map(str, sorted(untouched))),
                rtds.DEFAULT_BUDGET_US,
                rtds.DEFAULT_PERIOD_US,
            ),
            'give them a reservation, or less by "xl sched-rtds"',
        )


def _mcpu(cpus: Fraction | int) -> int:
    return math.ceil(cpus * reservation.MCPU_PER_CPU)
