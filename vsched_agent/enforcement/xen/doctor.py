# SPDX-License-Identifier: Apache-2.0

"""Diagnose what a Xen host can enforce, and how to fix problems.

Nothing is changed, and CPU pools are not touched: the hypervisor panics when
one that RTDS schedules is destroyed (Xen 4.17).
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from fractions import Fraction
import math

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import capacity
from vsched_agent.enforcement.xen import credit as credit_backends
from vsched_agent.enforcement.xen import rtds as rtds_backends
from vsched_agent.enforcement.xen import scheduler
from vsched_lib.model import credit
from vsched_lib.model import reservation
from vsched_lib.model import rtds

#: What has no support on Xen yet.
MISSING = (
    'overhead and error profiles, ballooning, and communication awareness'
)


def examine(
    enabled: Iterable[reservation.Backend],
    found: scheduler.Scheduler | None = None,
) -> list[diagnosis.Finding]:
    """Check everything that enforcement depends on.

    :param enabled: backends that this host may use.
    :param found: the hypervisor's scheduler; that of this host when None.
    :returns: in the order of the report.
    """
    found = found or scheduler.Scheduler()
    try:
        return [
            *_hypervisor(found),
            *_backends(found, set(enabled)),
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


def _backends(
    found: scheduler.Scheduler, enabled: Collection[reservation.Backend]
) -> Iterator[diagnosis.Finding]:
    """Report the backend of the scheduler that runs, and why others do not."""
    known: list[capacity.Backend] = [
        rtds_backends.RtdsBackend(found),
        credit_backends.CreditBackend(reservation.Backend.CREDIT2, found),
        credit_backends.CreditBackend(reservation.Backend.CREDIT, found),
    ]
    running = [one for one in known if str(one.name) == found.name]
    used = any(one.name in enabled for one in running)
    for backend in known:
        if backend in running:
            if used:
                yield from _backend(backend)
            elif not any(one.name in enabled for one in known):
                yield diagnosis.Finding(
                    diagnosis.Level.PROBLEM,
                    str(backend.name),
                    'the hypervisor runs it, and it is not enabled on this '
                    'host',
                    'add %s to [enforcement] backends' % backend.name,
                )
        elif backend.name in enabled and (
            not used or _fallen_back(backend, found)
        ):
            yield _unusable(backend)


def _fallen_back(
    backend: capacity.Backend, found: scheduler.Scheduler
) -> bool:
    """Return whether the hypervisor was asked for this one, in vain."""
    words = found.info().get('xen_commandline', '').split()
    return 'sched=%s' % backend.name in words


def _unusable(backend: capacity.Backend) -> diagnosis.Finding:
    return diagnosis.Finding(
        diagnosis.Level.PROBLEM,
        str(backend.name),
        'this host cannot use it: %s' % '; '.join(backend.supports().reasons),
        _remedy(backend),
    )


def _remedy(backend: capacity.Backend) -> str:
    name = backend.scheduler.name
    if name == str(backend.name):
        return 'put all CPUs into one pool at the next boot of the host'
    remedy = (
        'build the hypervisor with %s, and start it with sched=rtds'
        % rtds_backends.OPTIONS
        if backend.name is reservation.Backend.RTDS
        else 'start the hypervisor with sched=%s' % backend.name
    )
    if name in scheduler.CREDIT:
        remedy += '; or add %s to [enforcement] backends' % name
    return remedy


def _backend(backend: capacity.Backend) -> Iterator[diagnosis.Finding]:
    """Report the backend of the scheduler that runs."""
    subject = str(backend.name)
    if not backend.supports().usable:
        yield _unusable(backend)
    elif isinstance(backend, rtds_backends.RtdsBackend):
        yield diagnosis.Finding(
            diagnosis.Level.OK, subject, 'usable, guarantees CPU time'
        )
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            subject,
            'never destroy a CPU pool that RTDS schedules (xl '
            'cpupool-destroy): it panics the hypervisor',
        )
        yield from _budgets(backend)
    else:
        yield diagnosis.Finding(
            diagnosis.Level.OK,
            subject,
            'usable, gives shares by weights and caps, and guarantees no time '
            'in each period',
        )
        yield from _weights(backend.scheduler)


def _weights(found: scheduler.Scheduler) -> Iterator[diagnosis.Finding]:
    """Report who has what, and which weights have no effect."""
    domains = found.domains()
    cpus = found.cpus
    total = credit.total(domains.values())
    yield diagnosis.Finding(
        diagnosis.Level.PROBLEM if total > cpus else diagnosis.Level.OK,
        'weights',
        'all %d domains have %d of %d mcpu by weight, the first domain %d of '
        'them'
        % (
            len(domains),
            _mcpu(total),
            _mcpu(cpus),
            _mcpu(
                credit.total(
                    one for domid, one in domains.items() if not domid
                )
            ),
        ),
        'the sum is more than there is, so no weight gives its mcpu: lower '
        'some by "xl sched-%s"' % found.name
        if total > cpus
        else '',
    )
    untouched = sorted(
        domid
        for domid, one in domains.items()
        if domid and one == credit.DEFAULT
    )
    if untouched:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'weights',
            '%d domains (%s) have the weight that Xen gives to each new '
            'domain, %d. It counts as so many mcpu against the capacity as '
            'long as they have no reservation'
            % (
                len(untouched),
                ', '.join(map(str, untouched)),
                credit.DEFAULT_WEIGHT,
            ),
            'give them a reservation, or less by "xl sched-%s"' % found.name,
        )
    yield from _moot_weights(found)


def _moot_weights(found: scheduler.Scheduler) -> Iterator[diagnosis.Finding]:
    domains = found.domains()
    for domid, one in sorted(domains.items()):
        if one.weight_is_moot:
            yield diagnosis.Finding(
                diagnosis.Level.NOTE,
                'weights',
                'the cap of domain %d, %d %% of a CPU, is below its weight of '
                '%d mcpu: that part of the weight has no effect'
                % (domid, one.cap, one.weight),
                'set both by a reservation, or by "xl sched-%s -d %d -w -c"'
                % (found.name, domid),
            )
    left = credit.caps_leave_idle(
        found.cpus, [one for domid, one in domains.items() if domid]
    )
    if left is not None:
        yield diagnosis.Finding(
            diagnosis.Level.NOTE,
            'weights',
            'all domains but the first have caps, which leave %d mcpu of the '
            'host idle: weights have no effect among them'
            % math.floor(left * reservation.MCPU_PER_CPU),
            'mode work_conserving lets domains use idle time',
        )


def _budgets(
    backend: rtds_backends.RtdsBackend,
) -> Iterator[diagnosis.Finding]:
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
