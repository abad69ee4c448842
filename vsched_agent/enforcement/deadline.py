# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Reservations as SCHED_DEADLINE parameters of the vCPU threads."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import errno
from fractions import Fraction
import math
import os
import typing as ty

from oslo_log import log as logging

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base
from vsched_agent.enforcement import budgets
from vsched_agent.enforcement import cgroup
from vsched_agent.enforcement import kernel
from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_lib.contract import errors
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)

_NS_PER_US = 1000
#: By so much parameters may be off while a budget is looked at, or after
#: whoever did was killed; see vsched_agent.privileged.looking.
_LOOK_NS = 1


class DeadlineBackend(base.Backend):
    """Guarantees Q in every P to each thread; see sched(7).

    ``capped`` is the class as it is; ``work_conserving`` adds RECLAIM, which
    lends a thread the bandwidth that others of the class leave unused.

    :param pinning: widens and narrows pinned threads.
    :param probe: asks the kernel what it still admits, for the figures of
        a refusal.
    :param root: the file system's top, for tests with one of their own.
    :param checks: looks at budgets between the kernel's ticks.
    """

    name = reservation.Backend.DEADLINE

    def __init__(self, pinning: affinity.Affinity | None = None,
                 probe: Callable[[int], int] | None = None,
                 root: str = '/',
                 checks: budgets.BudgetChecks | None = None) -> None:
        self._pinning = pinning or affinity.Affinity(root=root)
        self._checks = checks or budgets.BudgetChecks()
        self._probe = probe or sched.probe_free_bandwidth
        self._root = root

    def supports(self) -> base.Support:
        """Try the class on a thread of the privileged helper."""
        if not syscalls.known():
            return base.Support(False, (
                'this kernel has no sched_setattr; it needs Linux 3.14',))
        try:
            number = sched.try_deadline()
        except Exception as failure:
            # Whatever keeps the helper from starting, the operator has to
            # read it here.
            LOG.warning('the privileged helper does not answer: %s', failure)
            return base.Support(False, (
                'the privileged helper does not answer: %s; see '
                'helper_command in [%s]' % (
                    failure, sched.sched_pctxt.cfg_section),))
        if number:
            return base.Support(False, (_WHY_NOT.get(
                number, 'the kernel refuses the class: %s') % (
                    os.strerror(number)),))
        return base.Support(True)

    def prior(self, targets: Sequence[base.Target],
              ) -> dict[int, base.Prior]:
        """Policy and parameters of each thread; where pinned ones ran.

        Not where bound ones did: that may already be what bound them.
        """
        found: dict[int, base.Prior] = {}
        pinned = {target.tid for target in self._pinning.pinned(targets)
                  if not target.bound}
        for target in targets:
            try:
                prior: dict[str, ty.Any] = syscalls.get_attr(
                    target.tid)._asdict()
                if target.tid in pinned:
                    confinement = self._pinning.confinement(target)
                    prior['cpuset_path'] = confinement.path
                    prior['cpuset'] = confinement.cpuset
                    prior['cpus'] = sorted(confinement.cpus)
            except ProcessLookupError:
                continue
            except errors.Refused as refusal:
                # It will be refused by apply, with this very reason, and
                # there is nothing to put back.
                LOG.debug('%s', refusal.detail)
            found[target.tid] = prior
        return found

    def apply_each(self, promises: Sequence[base.Promised]) -> None:
        """See the base class; threads that hold it already are left be."""
        try:
            changing = [
                (target, promise) for target, promise in promises
                if not _same(syscalls.get_attr(target.tid),
                             _attr(promise))]
            moving = {target.tid for target, _ in changing}
            pinned = self._pinning.pinned([
                target for target, _ in promises])
            # A pinned thread that holds it may still have been let loose.
            changing_pinned = [
                target for target in pinned if target.tid in moving or
                frozenset(os.sched_getaffinity(target.tid)) !=
                (target.pinned_cpus or frozenset()) &
                kernel.online_cpus(self._root)]
            if changing_pinned:
                with self._pinning.widened(changing_pinned):
                    self._set(changing)
            else:
                self._set(changing)
        except ProcessLookupError as failure:
            raise errors.Refused(
                'a thread is gone: %s' % failure,
                errors.Code.THREADS_GONE) from None
        self.resume(promises)

    def resume(self, promises: Sequence[base.Promised]) -> None:
        """Have the threads' budgets looked at, where that is wanted."""
        self._checks.watch(_requests(promises))

    def close(self) -> None:
        """Look at no budgets any more."""
        self._checks.close()

    def read(self, targets: Sequence[base.Target],
             ) -> dict[int, base.Enforced | None]:
        """See the base class; one system call a thread."""
        found: dict[int, base.Enforced | None] = {}
        get_attr = syscalls.get_attr
        for target in targets:
            try:
                attr = get_attr(target.tid)
            except ProcessLookupError:
                continue
            found[target.tid] = None if (
                attr.policy != syscalls.SCHED_DEADLINE) else base.Enforced(
                    _us(attr.runtime_ns), _us(attr.period_ns),
                    _WORK_CONSERVING if attr.flags & syscalls.FLAG_RECLAIM
                    else _CAPPED)
        return found

    def restore(self, targets: Sequence[base.Target],
                prior: Mapping[int, base.Prior]) -> None:
        """See the base class; returns when the bandwidth is free again."""
        self._checks.forget([target.tid for target in targets])
        back: list[tuple[int, ...]] = []
        entering: list[tuple[int, ...]] = []
        confine: list[affinity.Confinement] = []
        for target in targets:
            found = prior.get(target.tid, {})
            attr = syscalls.Attr(*(
                found.get(field, 0) for field in syscalls.Attr._fields))
            if attr.policy == syscalls.SCHED_DEADLINE:
                entering.append((target.tid, attr.runtime_ns,
                                 attr.period_ns, attr.flags))
            else:
                back.append((target.tid, *attr[:4]))
            if 'cpuset_path' in found:
                confine.append(affinity.Confinement(
                    target.tid, found['cpuset_path'], found['cpuset'],
                    frozenset(found['cpus'])))
        leaving = [target for target in targets if _held(target.tid)]
        with self._pinning.loosened(leaving):
            for request in entering:
                failure = sched.set_deadline([request])
                if failure and failure['errno'] != errno.ESRCH:
                    LOG.error('thread %d is not given back its deadline: %s',
                              request[0], os.strerror(failure['errno']))
            for tid, number in sched.leave_deadline(back):
                LOG.error('thread %d does not leave SCHED_DEADLINE: %s',
                          tid, os.strerror(number))
        self._pinning.confine(confine)

    def _set(self, promises: Sequence[base.Promised]) -> None:
        if not promises:
            return
        with self._checks.paused([target.tid for target, _ in promises]):
            failure = sched.set_deadline(_requests(promises))
            if failure:
                if failure['unrestored']:
                    LOG.error('threads %s did not get back what they had',
                              failure['unrestored'])
                raise self._refusal(failure, promises)

    def _refusal(self, failure: Mapping[str, ty.Any],
                 promises: Sequence[base.Promised]) -> errors.Refused:
        number, tid = failure['errno'], failure['tid']
        if number == errno.EBUSY:
            free = Fraction(self._probe(
                len(kernel.online_cpus(self._root)) <<
                reservation.KERNEL_BW_SHIFT),
                1 << reservation.KERNEL_BW_SHIFT)
            held = sum((_held(target.tid) for target, _ in promises),
                       Fraction(0))
            needed = sum((promise.utilisation for _, promise in promises),
                         Fraction(0))
            figures = {
                'needed_mcpu': math.ceil(
                    needed * reservation.MCPU_PER_CPU),
                'held_mcpu': _mcpu(held), 'free_mcpu': _mcpu(free)}
            return errors.Refused(
                'the kernel admits no more: %(needed_mcpu)d mcpu needed, '
                '%(held_mcpu)d held, %(free_mcpu)d free' % figures,
                errors.Code.KERNEL_REFUSED, figures)
        if number == errno.ESRCH:
            return errors.Refused('thread %d is gone' % tid,
                                  errors.Code.THREADS_GONE, {'tid': tid})
        if number == errno.EPERM:
            return self._confined(tid)
        if number == errno.EINVAL:
            promise = next(promise for target, promise in promises
                           if target.tid == tid)
            return errors.Refused(
                'the kernel takes no runtime of %d us in %d us' % (
                    promise.runtime_us, promise.period_us),
                errors.Code.RESERVATION_INVALID)
        return errors.Refused(
            'the kernel refused thread %d: %s' % (tid, os.strerror(number)),
            errors.Code.KERNEL_REFUSED, {'tid': tid, 'errno': number})

    def _confined(self, tid: int) -> errors.Refused:
        online = kernel.online_cpus(self._root)
        cpus = frozenset(os.sched_getaffinity(tid))
        if cpus >= online:
            return errors.Refused(
                'the kernel does not permit the class to thread %d' % tid,
                errors.Code.BACKEND_UNAVAILABLE, {'tid': tid})
        return errors.Refused(
            'thread %d may use CPUs %s only, and the class takes threads '
            'that may use all of %s; pin the vCPU in the domain to have it '
            'handled' % (tid, cgroup.format_cpus(cpus),
                         cgroup.format_cpus(online)),
            errors.Code.PINNING_UNSUPPORTED,
            {'tid': tid, 'cpus': sorted(cpus)})


_CAPPED = reservation.Mode.CAPPED
_WORK_CONSERVING = reservation.Mode.WORK_CONSERVING

#: Why trying the class failed, and what would mend it.
_WHY_NOT = {
    errno.EPERM:
        'the kernel does not permit the class: %s; the privileged helper '
        'needs CAP_SYS_NICE and a cpuset with every CPU of the host',
    errno.EINVAL:
        'this kernel has no SCHED_DEADLINE: %s',
}


def _attr(promise: reservation.Reservation) -> syscalls.Attr:
    period_ns = promise.period_us * _NS_PER_US
    flags = syscalls.FLAG_RESET_ON_FORK
    if promise.mode is _WORK_CONSERVING:
        flags |= syscalls.FLAG_RECLAIM
    return syscalls.Attr(
        syscalls.SCHED_DEADLINE, flags, 0, 0,
        promise.runtime_us * _NS_PER_US, period_ns, period_ns)


def _requests(promises: Sequence[base.Promised]) -> list[tuple[int, ...]]:
    """The promises as the privileged helpers take them."""
    found: list[tuple[int, ...]] = []
    for target, promise in promises:
        wanted = _attr(promise)
        found.append((target.tid, wanted.runtime_ns, wanted.period_ns,
                      wanted.flags))
    return found


def _same(held: syscalls.Attr, wanted: syscalls.Attr) -> bool:
    """Whether a thread holds what it shall, looks at its budget aside."""
    return (held[:4] == wanted[:4] and
            abs(held.runtime_ns - wanted.runtime_ns) <= _LOOK_NS and
            abs(held.deadline_ns - wanted.deadline_ns) <= _LOOK_NS and
            abs(held.period_ns - wanted.period_ns) <= _LOOK_NS)


def _us(ns: int) -> int:
    return (ns + _NS_PER_US // 2) // _NS_PER_US


def _held(tid: int) -> Fraction:
    try:
        attr = syscalls.get_attr(tid)
    except ProcessLookupError:
        return Fraction(0)
    if attr.policy != syscalls.SCHED_DEADLINE:
        return Fraction(0)
    return Fraction(attr.runtime_ns, attr.period_ns or attr.deadline_ns)


def _mcpu(cpus: Fraction) -> int:
    return int(cpus * reservation.MCPU_PER_CPU)
