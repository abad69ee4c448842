# SPDX-License-Identifier: Apache-2.0

"""Reservations as budgets of Xen's scheduler RTDS.

Each vCPU has parameters of its own. Mode ``work_conserving`` is ``extratime``.
A vCPU with the parameters that RTDS gives to new ones counts as one without a
reservation, unless this backend has set them.

RTDS accepts any sum: :mod:`vsched_agent.enforcement.xen.capacity` bounds it.
"""

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import threading

from oslo_log import log as logging

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import former
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.enforcement.xen import vcpus
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_lib.contract import errors
from vsched_lib.model import reservation
from vsched_lib.model import rtds

LOG = logging.getLogger(__name__)

#: What a hypervisor has to be built with.
OPTIONS = 'CONFIG_EXPERT, CONFIG_UNSUPPORTED and CONFIG_SCHED_RTDS'


class RtdsBackend(base.Backend):
    """Gives each vCPU Q in every P by the hypervisor's own scheduler.

    Reading takes a process of the toolstack, by a privileged helper, for all
    vCPUs of the host: Xen has no interface without a privilege.

    :param found: the hypervisor's scheduler.
    """

    name = reservation.Backend.RTDS

    def __init__(self, found: scheduler.Scheduler | None = None) -> None:
        self.scheduler = found or scheduler.Scheduler()
        self._lock = threading.Lock()
        self._reserved: set[int] = set()

    def supports(self) -> base.Support:
        """Return whether the hypervisor runs RTDS, on one pool."""
        return vcpus.support(self.name, self.scheduler, missing)

    def reserved(self) -> frozenset[scheduler.Key]:
        """Return the vCPUs with a reservation of this agent."""
        with self._lock:
            return frozenset(map(vcpu_ids.decode, self._reserved))

    def admissible(self, replaced: Collection[int]) -> Fraction:
        """Return what reservations may have in total, in CPUs.

        :param replaced: vCPUs that ask for a reservation.
        :raises scheduler.SchedulerUnavailable: when Xen does not answer.
        """
        reserved = self.reserved() | set(map(vcpu_ids.decode, replaced))
        return rtds.admissible(
            self.scheduler.cpus,
            (
                one
                for key, one in self.scheduler.parameters().items()
                if key not in reserved
            ),
        )

    def prior(self, targets: Sequence[base.Target]) -> dict[int, base.Prior]:
        """Return the parameters of each vCPU.

        :raises errors.Refused: when the hypervisor does not answer.
        """
        with vcpus.refused_if_unavailable():
            known = self._of(targets, newest=True)
        return {
            number: {
                'period_us': one.period_us,
                'budget_us': one.budget_us,
                'extratime': one.extratime,
            }
            for number, one in known.items()
        }

    def apply_each(self, assignments: Sequence[base.Assignment]) -> None:
        """See the base class.

        :raises errors.Refused: also when the hypervisor does not answer
            before anything is set.
        :raises scheduler.SchedulerUnavailable: when it does not answer later,
            or former parameters could not be restored: vCPUs may then have
            any of both.
        """
        wanted = {
            target.tid: _parameters(reserved)
            for target, reserved in assignments
        }
        targets = [target for target, _ in assignments]
        with vcpus.refused_if_unavailable():
            before = self._of(targets, newest=True)
        vcpus.check_all_run(wanted, before)
        changed = {
            number: values
            for number, values in wanted.items()
            if before[number] != values
        }
        if changed:
            for caution in sorted(
                {
                    caution
                    for _, reserved in assignments
                    for caution in rtds.cautions(reserved)
                }
            ):
                LOG.warning(
                    'domain %d: %s', _domid(next(iter(changed))), caution
                )
        problem = self._set(changed)
        if problem:
            after = self._of(targets, newest=True)
            unrestored = self._set(
                {
                    number: before[number]
                    for number, values in after.items()
                    if values != before[number]
                }
            )
            vcpus.check_all_run(wanted, after)
            if unrestored:
                raise vcpus.not_restored(unrestored)
            raise vcpus.refused(problem)
        with self._lock:
            self._reserved.update(wanted)

    def resume(self, assignments: Sequence[base.Assignment]) -> None:
        """Take the vCPUs for reserved; see the base class."""
        with self._lock:
            self._reserved.update(target.tid for target, _ in assignments)

    def abandon(self, targets: Sequence[base.Target]) -> None:
        """See the base class: what they have counts like that of others."""
        with self._lock:
            self._reserved.difference_update(target.tid for target in targets)

    def refresh(self) -> None:
        """Forget vCPUs of domains that have ended."""
        with self._lock:
            if not self._reserved:
                return
        found = self.scheduler.parameters()
        with self._lock:
            self._reserved = {
                number
                for number in self._reserved
                if vcpu_ids.decode(number) in found
            }

    def read(
        self, targets: Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        """See the base class; needs a process unless one has just ended."""
        found = self._of(targets)
        with self._lock:
            return {
                number: None
                if values == rtds.DEFAULT and number not in self._reserved
                else base.Enforced(
                    values.budget_us * reservation.NS_PER_US,
                    values.period_us * reservation.NS_PER_US,
                    values.mode,
                )
                for number, values in found.items()
            }

    def restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        """See the base class; the default is that of new vCPUs.

        vCPUs with the smallest change are restored first, and only as many as
        the host's CPUs have budgets for. None of them is reserved any more:
        what it keeps is counted as that of other domains is.

        :raises scheduler.SchedulerUnavailable: when vCPUs that still run keep
            what they have.
        """
        try:
            self._restore(targets, prior)
        finally:
            self.abandon(targets)

    def growth(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> Fraction:
        """See the base class.

        :raises scheduler.SchedulerUnavailable: when it does not answer.
        """
        found = self._of(targets)
        return former.total(former.of(found, prior)) - former.total(found)

    def _restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        found = self._of(targets, newest=True)
        changed = {
            number: one
            for number, one in former.of(found, prior).items()
            if one != found[number]
        }
        if not changed:
            return
        fitting, left = rtds.restorable(
            self.scheduler.cpus,
            self.scheduler.parameters(),
            {vcpu_ids.decode(number): one for number, one in changed.items()},
        )
        restored = {
            number: changed[number]
            for number in (vcpu_ids.encode(*key) for key in fitting)
        }
        # First those that release what the others need.
        released = {
            number: one
            for number, one in restored.items()
            if one.utilisation <= found[number].utilisation
        }
        problem = self._set(released)
        problem = (
            self._set(
                {
                    number: one
                    for number, one in restored.items()
                    if number not in released
                }
            )
            or problem
        )
        if problem and (
            self._of(targets, newest=True).keys() >= restored.keys()
        ):
            raise vcpus.not_restored(problem)
        kept = changed.keys() - restored.keys()
        if kept:
            raise former.does_not_fit(
                {number: found[number] for number in kept},
                {number: changed[number] for number in kept},
                left,
            )

    def _of(
        self, targets: Iterable[base.Target], newest: bool = False
    ) -> former.Values:
        """Return the parameters of those that still run, by their number."""
        found = self.scheduler.parameters(newest)
        known = {}
        for target in targets:
            key = vcpus.key_of(target.tid)
            if key is not None and key in found:
                known[target.tid] = found[key]
        return known

    def _set(self, values: Mapping[int, rtds.Parameters]) -> str:
        """Set parameters, domain by domain.

        :returns: empty on success, else the first reason. What can be set of
            the others is.
        """
        problems = []
        by_domain: dict[int, list[tuple[int, rtds.Parameters]]] = {}
        for number, one in sorted(values.items()):
            domid, index = vcpu_ids.decode(number)
            by_domain.setdefault(domid, []).append((index, one))
        for domid, those in by_domain.items():
            problem = self.scheduler.set(domid, those)
            if problem:
                problems.append(problem)
        return problems[0] if problems else ''


def missing(found: scheduler.Scheduler) -> str:
    """Return why a hypervisor does not run RTDS.

    :raises scheduler.SchedulerUnavailable: when it does not answer.
    """
    words = found.info().get('xen_commandline', '').split()
    if 'sched=rtds' in words:
        return (
            'the hypervisor was started with sched=rtds and runs %s: it has '
            'been built without RTDS, and then falls back without a message. '
            'It needs %s' % (found.name, OPTIONS)
        )
    return (
        'the hypervisor runs %s: start it with sched=rtds. It has to be built '
        'with %s' % (found.name, OPTIONS)
    )


def _domid(number: int) -> int:
    return vcpu_ids.decode(number)[0]


def _parameters(reserved: reservation.Reservation) -> rtds.Parameters:
    problems = reserved.problems(reservation.Backend.RTDS)
    if not problems:
        try:
            return rtds.Parameters.of(reserved)
        except ValueError as problem:
            problems = [str(problem)]
    raise errors.Refused('; '.join(problems), errors.Code.RESERVATION_INVALID)
