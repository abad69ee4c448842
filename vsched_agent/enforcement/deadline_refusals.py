# SPDX-License-Identifier: Apache-2.0

"""Why the kernel refuses SCHED_DEADLINE, as refusals with figures."""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import errno
from fractions import Fraction
import math
import os
import typing as ty

from vsched_agent.enforcement import base
from vsched_agent.host import cpu_list
from vsched_agent.privileged import syscalls
from vsched_lib.contract import errors
from vsched_lib.model import reservation

#: Why trying the class failed, and how to fix it.
UNUSABLE = {
    errno.EPERM: 'the kernel does not permit the class: %s; the privileged '
    'helper '
    'needs CAP_SYS_NICE and a cpuset with every CPU of the host',
    errno.EINVAL: 'this kernel has no SCHED_DEADLINE: %s',
}


def refusal(
    failure: Mapping[str, ty.Any],
    assignments: Sequence[base.Assignment],
    probe: Callable[[int], int],
    root: str,
) -> errors.Refused:
    """Return the refusal for a failure of the privileged helper.

    :param failure: fields of ``vsched_agent.privileged.entering.Failure``.
    :param assignments: that were to be applied.
    :param probe: returns what the kernel still admits.
    :param root: root of the file system.
    """
    number, tid = failure['errno'], failure['tid']
    if failure['step'] == 'owner':
        return errors.Refused(
            'the privileged helper refuses it: %s' % failure['why'],
            errors.Code.BACKEND_UNAVAILABLE,
            {'tid': tid},
        )
    if number == errno.EBUSY:
        free = Fraction(
            probe(len(cpu_list.online(root)) << reservation.KERNEL_BW_SHIFT),
            1 << reservation.KERNEL_BW_SHIFT,
        )
        holding = sum(
            (held(target.tid) for target, _ in assignments), Fraction(0)
        )
        needed = sum(
            (reserved.utilisation for _, reserved in assignments), Fraction(0)
        )
        figures = {
            'needed_mcpu': math.ceil(needed * reservation.MCPU_PER_CPU),
            'held_mcpu': _mcpu(holding),
            'free_mcpu': _mcpu(free),
        }
        return errors.Refused(
            'the kernel admits no more: %(needed_mcpu)d mcpu needed, '
            '%(held_mcpu)d held, %(free_mcpu)d free' % figures,
            errors.Code.KERNEL_REFUSED,
            figures,
        )
    if number == errno.ESRCH:
        return errors.Refused(
            'thread %d has ended and is a zombie' % tid
            if failure['step'] == 'ended'
            else 'thread %d is gone' % tid,
            errors.Code.THREADS_GONE,
            {'tid': tid},
        )
    if number == errno.EPERM:
        return _confined(tid, root)
    if number == errno.EINVAL:
        reserved = next(
            reserved for target, reserved in assignments if target.tid == tid
        )
        return errors.Refused(
            'the kernel refuses a runtime of %d ns in %d ns'
            % reserved.divided_ns,
            errors.Code.RESERVATION_INVALID,
        )
    return errors.Refused(
        'the kernel refused thread %d: %s' % (tid, os.strerror(number)),
        errors.Code.KERNEL_REFUSED,
        {'tid': tid, 'errno': number},
    )


def _confined(tid: int, root: str) -> errors.Refused:
    online = cpu_list.online(root)
    cpus = frozenset(os.sched_getaffinity(tid))
    if cpus >= online:
        return errors.Refused(
            'the kernel does not permit the class to thread %d' % tid,
            errors.Code.BACKEND_UNAVAILABLE,
            {'tid': tid},
        )
    return errors.Refused(
        'thread %d may use CPUs %s only, and the class requires '
        'all of %s; pin the vCPU in the domain to have vsched '
        'handle that' % (tid, cpu_list.render(cpus), cpu_list.render(online)),
        errors.Code.PINNING_UNSUPPORTED,
        {'tid': tid, 'cpus': sorted(cpus)},
    )


def held(tid: int) -> Fraction:
    """Return what a thread has of the class, in CPUs; 0 if it has ended."""
    try:
        attr = syscalls.get_attr(tid)
    except ProcessLookupError:
        return Fraction(0)
    if attr.policy != syscalls.SCHED_DEADLINE:
        return Fraction(0)
    return Fraction(attr.runtime_ns, attr.period_ns or attr.deadline_ns)


def _mcpu(cpus: Fraction) -> int:
    return int(cpus * reservation.MCPU_PER_CPU)
