# SPDX-License-Identifier: Apache-2.0

"""Reservations as SCHED_DEADLINE parameters of the vCPU threads."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import errno
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base
from vsched_agent.enforcement import budget_expiry
from vsched_agent.enforcement import deadline_refusals
from vsched_agent.enforcement import partitions
from vsched_agent.enforcement import reclaim
from vsched_agent.host import cpu_list
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

#: Parameters may be off by this while budget expiry is checked, or after the
#: helper was killed; see vsched_agent.privileged.budget_expiry.polling.
_CHECK_NS = 1


class DeadlineBackend(base.Backend):
    """Guarantees Q in every P to each thread; see sched(7).

    ``capped`` is the plain class. ``work_conserving`` adds RECLAIM while CPUs
    are idle: see :mod:`vsched_agent.enforcement.reclaim`.

    :param pinning: widens and narrows pinned threads.
    :param probe: returns what the kernel still admits, for the figures of a
        refusal.
    :param root: root of the file system; tests use their own.
    :param checks: budget expiry checks between the kernel's ticks.
    :param idle: grants idle CPU time to threads that may use it.
    :param isolation: gives pinned threads CPUs of their own.
    """

    name = reservation.Backend.DEADLINE
    only_agents_set = True

    def __init__(
        self,
        pinning: affinity.Affinity | None = None,
        probe: Callable[[int], int] | None = None,
        root: str = '/',
        checks: budget_expiry.BudgetChecks | None = None,
        idle: reclaim.IdleTime | None = None,
        isolation: partitions.Partitions | None = None,
    ) -> None:
        self._pinning = pinning or affinity.Affinity(root=root)
        self._checks = checks or budget_expiry.BudgetChecks()
        self._idle = idle or reclaim.IdleTime()
        self._partitions = isolation or partitions.Partitions()
        self._probe = probe or sched.probe_free_bandwidth
        self._root = root

    def supports(self) -> base.Support:
        """Try the class on a thread of the privileged helper."""
        if not syscalls.known():
            return base.Support(
                False,
                ('this kernel has no sched_setattr; it needs Linux 3.14',),
            )
        try:
            number = sched.try_deadline()
        except Exception as failure:
            # The operator has to see any reason why the helper does not start.
            LOG.warning('the privileged helper does not answer: %s', failure)
            return base.Support(
                False,
                (
                    'the privileged helper does not answer: %s; an agent that '
                    'is not root needs the shipped sudoers file or socket '
                    'units, see also helper_command in [%s]'
                    % (failure, sched.sched_pctxt.cfg_section),
                ),
            )
        if number:
            return base.Support(
                False,
                (
                    deadline_refusals.UNUSABLE.get(
                        number, 'the kernel refuses the class: %s'
                    )
                    % (os.strerror(number)),
                ),
            )
        return base.Support(True)

    def prior(self, targets: Sequence[base.Target]) -> dict[int, base.Prior]:
        """Return each thread's policy and parameters, and pinned ones' CPUs.

        Not the CPUs of bound threads, which may be bound already.
        """
        found: dict[int, base.Prior] = {}
        pinned = {
            target.tid
            for target in self._pinning.pinned(targets)
            if not target.bound
        }
        for target in targets:
            try:
                prior: dict[str, ty.Any] = syscalls.get_attr(
                    target.tid
                )._asdict()
                if target.tid in pinned:
                    confinement = self._pinning.confinement(target)
                    prior['cpuset_path'] = confinement.path
                    prior['cpuset'] = confinement.cpuset
                    prior['cpus'] = sorted(confinement.cpus)
                    prior.update(self._partitions.record(target))
            except ProcessLookupError:
                continue
            except errors.Refused as refusal:
                # Apply refuses it for the same reason, so nothing has to be
                # restored.
                LOG.debug('%s', refusal.detail)
            found[target.tid] = prior
        return found

    def apply_each(self, assignments: Sequence[base.Assignment]) -> None:
        """See the base class; unchanged threads are skipped."""
        self._idle.forget(
            [
                target.tid
                for target, reserved in assignments
                if reserved.mode is not _WORK_CONSERVING
            ]
        )
        try:
            changing = [
                (target, reserved)
                for target, reserved in assignments
                if not _same(
                    self._idle.without(
                        target.tid, syscalls.get_attr(target.tid)
                    ),
                    _attr(reserved),
                )
            ]
            moving = {target.tid for target, _ in changing}
            pinned = self._pinning.pinned(
                [target for target, _ in assignments]
            )
            # An unchanged pinned thread may have been unpinned.
            changing_pinned = [
                target
                for target in pinned
                if target.tid in moving
                or frozenset(os.sched_getaffinity(target.tid))
                != (target.pinned_cpus or frozenset())
                & cpu_list.online(self._root)
            ]
            isolated = self._partitions.wanted(pinned)
            apart = {target.tid for target in isolated}
            confined = [
                target for target in changing_pinned if target.tid not in apart
            ]
            with contextlib.ExitStack() as stack:
                if isolated:
                    stack.enter_context(self._partitions.made(isolated))
                if confined:
                    stack.enter_context(self._pinning.widened(confined))
                self._set(changing)
        except (ProcessLookupError, FileNotFoundError) as failure:
            # The second one where its group is gone as well.
            raise errors.Refused(
                'a thread is gone: %s' % failure, errors.Code.THREADS_GONE
            ) from None
        self.resume(assignments)

    def resume(self, assignments: Sequence[base.Assignment]) -> None:
        """Start budget expiry checks, and grant idle CPU time."""
        self._checks.watch(_requests(assignments))
        self._idle.watch(
            _requests(
                (target, reserved)
                for target, reserved in assignments
                if reserved.mode is _WORK_CONSERVING
            )
        )

    def refresh(self) -> None:
        """Renew the grant of idle CPU time; poll the expiry checks' state."""
        self._idle.refresh()
        self._checks.refresh()

    @property
    def check_status(self) -> budget_expiry.CheckStatus:
        """Return the state of the budget expiry checks."""
        return self._checks.check_status

    def close(self) -> None:
        """Stop budget expiry checks, and withdraw idle CPU time."""
        self._idle.close()
        self._checks.close()

    def read(
        self, targets: Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        """See the base class; one system call per thread."""
        found: dict[int, base.Enforced | None] = {}
        get_attr = syscalls.get_attr
        for target in targets:
            try:
                attr = get_attr(target.tid)
            except ProcessLookupError:
                continue
            found[target.tid] = (
                None
                if (attr.policy != syscalls.SCHED_DEADLINE)
                else base.Enforced(
                    attr.runtime_ns,
                    attr.period_ns,
                    # The flag alone does not give the mode.
                    _WORK_CONSERVING
                    if target.tid in self._idle
                    or attr.flags & syscalls.FLAG_RECLAIM
                    else _CAPPED,
                )
            )
        return found

    def restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        """See the base class; return when the bandwidth is free again."""
        self._idle.forget([target.tid for target in targets])
        self._checks.forget([target.tid for target in targets])
        back: list[tuple[int, ...]] = []
        entering: list[tuple[int, ...]] = []
        confine: list[affinity.Confinement] = []
        for target in targets:
            found = prior.get(target.tid, {})
            attr = syscalls.Attr(
                *(found.get(field, 0) for field in syscalls.Attr._fields)
            )
            if attr.policy == syscalls.SCHED_DEADLINE:
                entering.append(
                    (target.tid, attr.runtime_ns, attr.period_ns, attr.flags)
                )
            else:
                back.append((target.tid, *attr[:4]))
            if 'cpuset_path' in found:
                confine.append(
                    affinity.Confinement(
                        target.tid,
                        found['cpuset_path'],
                        found['cpuset'],
                        frozenset(found['cpus']),
                    )
                )
        replaced = self._partitions.replaced(targets, prior)
        # In a partition a thread may use all CPUs of its root domain.
        leaving = [
            target
            for target in targets
            if deadline_refusals.held(target.tid)
            and not self._partitions.is_made(target)
        ]
        with self._pinning.unpinned(leaving):
            for request in entering:
                failure = sched.set_deadline([request])
                if failure and failure['errno'] != errno.ESRCH:
                    LOG.error(
                        'thread %d cannot be set back to SCHED_DEADLINE: %s',
                        request[0],
                        os.strerror(failure['errno']),
                    )
            for tid, number in sched.leave_deadline(back):
                LOG.error(
                    'thread %d cannot leave SCHED_DEADLINE: %s',
                    tid,
                    os.strerror(number),
                )
        try:
            self._partitions.remove(replaced.values())
        finally:
            self._pinning.confine(confine)

    def clean_up(self, prior: Mapping[int, base.Prior]) -> None:
        """See the base class: partitions have exclusive CPUs above them."""
        formers = [
            former
            for former in map(partitions.Former.of, prior.values())
            if former is not None
        ]
        self._partitions.remove(formers)

    def _set(self, assignments: Sequence[base.Assignment]) -> None:
        if not assignments:
            return
        tids = [target.tid for target, _ in assignments]
        with self._checks.paused(tids), self._idle.paused(tids):
            failure = sched.set_deadline(_requests(assignments))
            if failure:
                if failure['unrestored']:
                    LOG.error(
                        'former parameters of threads %s were not restored',
                        failure['unrestored'],
                    )
                raise deadline_refusals.refusal(
                    failure, assignments, self._probe, self._root
                )


_CAPPED = reservation.Mode.CAPPED
_WORK_CONSERVING = reservation.Mode.WORK_CONSERVING


def _attr(reserved: reservation.Reservation) -> syscalls.Attr:
    runtime_ns, period_ns = reserved.divided_ns
    return syscalls.Attr(
        syscalls.SCHED_DEADLINE,
        syscalls.FLAG_RESET_ON_FORK,
        0,
        0,
        runtime_ns,
        period_ns,
        period_ns,
    )


def _requests(assignments: Iterable[base.Assignment]) -> list[tuple[int, ...]]:
    """Return the reservations as the privileged helpers expect them."""
    found: list[tuple[int, ...]] = []
    for target, reserved in assignments:
        wanted = _attr(reserved)
        found.append(
            (target.tid, wanted.runtime_ns, wanted.period_ns, wanted.flags)
        )
    return found


def _same(held: syscalls.Attr, wanted: syscalls.Attr) -> bool:
    """Compare parameters, ignoring the changes of budget expiry checks."""
    return (
        held[:4] == wanted[:4]
        and abs(held.runtime_ns - wanted.runtime_ns) <= _CHECK_NS
        and abs(held.deadline_ns - wanted.deadline_ns) <= _CHECK_NS
        and abs(held.period_ns - wanted.period_ns) <= _CHECK_NS
    )
