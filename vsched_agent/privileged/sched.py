# SPDX-License-Identifier: Apache-2.0

"""Entrypoints that change the scheduling of threads: CAP_SYS_NICE.

Every entrypoint takes and returns plain values, for a whole instance at once.
They are serialized: bandwidth reserved by a probe must not cause a refusal.
Threads that vsched does not own are refused
(:mod:`vsched_agent.privileged.ownership`).
"""

from collections.abc import Iterable
from collections.abc import Sequence
import errno
import os
import typing as ty

from oslo_log import log as logging
from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import ownership
from vsched_agent.privileged import probe
from vsched_agent.privileged import syscalls

LOG = logging.getLogger(__name__)

sched_pctxt = context.Context(
    'sched_pctxt',
    __name__,
    'vsched_sched_privileged',
    [capabilities.CAP_SYS_NICE],
)


@sched_pctxt.entrypoint
def set_deadline(requests: Iterable[Sequence[int]]) -> dict[str, ty.Any]:
    """Put threads under SCHED_DEADLINE, all or none.

    :param requests: (tid, runtime_ns, period_ns, flags) per thread.
    :returns: empty on success; else the fields of
        :class:`vsched_agent.privileged.entering.Failure`. For a thread that
        vsched does not own, ``step`` is ``owner`` and ``why`` the reason.
    """
    wanted = [entering.Request(*request) for request in requests]
    for tid, why in ownership.refusals(
        request.tid for request in wanted
    ).items():
        return {
            **entering.Failure(tid, errno.EPERM, 'owner')._asdict(),
            'why': why,
        }
    with leaving.exclusive:
        failure = entering.enter(wanted)
    return failure._asdict() if failure else {}


@sched_pctxt.entrypoint
def leave_deadline(
    requests: Iterable[Sequence[int]],
) -> tuple[tuple[int, int], ...]:
    """Take threads out of SCHED_DEADLINE without leaking bandwidth.

    :param requests: (tid, policy, flags, nice, priority) per thread.
    :returns: (tid, errno) of those that could not leave, EPERM for those that
        vsched does not own.
    """
    wanted = [
        leaving.Request(tid, syscalls.Attr(*rest)) for tid, *rest in requests
    ]
    refused = ownership.refusals(request.tid for request in wanted)
    for why in refused.values():
        LOG.warning('%s', why)
    return (
        *((tid, errno.EPERM) for tid in refused),
        *leaving.leave(
            request for request in wanted if request.tid not in refused
        ),
    )


@sched_pctxt.entrypoint
def try_deadline() -> int:
    """Test whether this process can put a thread under SCHED_DEADLINE.

    :returns: 0, also when the class is full; else the kernel's errno.
    """
    with leaving.exclusive:
        return probe.attempt()


@sched_pctxt.entrypoint
def probe_free_bandwidth(most: int) -> int:
    """Return what the kernel still admits.

    :param most: where to stop.
    :returns: bandwidth in 2**-20 CPU, see
        :func:`vsched_agent.privileged.probe.probe`.
    """
    with leaving.exclusive:
        return probe.probe(most)


@sched_pctxt.entrypoint
def set_affinity(requests: Iterable[tuple[int, Sequence[int]]]) -> int:
    """Set the CPUs that threads may use.

    :param requests: (tid, CPUs) per thread; ended threads are skipped.
    :returns: how many threads were set.
    :raises PermissionError: for a thread that vsched does not own; nothing is
        done then.
    :raises OSError: with the kernel's errno.
    """
    wanted = tuple(requests)
    ownership.check(tid for tid, _ in wanted)
    done = 0
    for tid, cpus in wanted:
        try:
            os.sched_setaffinity(tid, cpus)
        except ProcessLookupError:
            continue
        done += 1
    return done
