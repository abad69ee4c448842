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

"""What the agent may do to the scheduling of threads: CAP_SYS_NICE.

Every entrypoint takes and returns plain values, for a whole instance at
once. They exclude each other: bandwidth asked for by a probe must not refuse
an instance.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import os
import typing as ty

from oslo_privsep import capabilities

from vsched_agent.privileged import context
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import probing
from vsched_agent.privileged import syscalls

sched_pctxt = context.Context(
    'sched_pctxt', __name__, 'vsched_sched_privileged',
    [capabilities.CAP_SYS_NICE])


@sched_pctxt.entrypoint
def set_deadline(requests: Iterable[Sequence[int]]) -> dict[str, ty.Any]:
    """Put threads under SCHED_DEADLINE, all or none.

    :param requests: (tid, runtime_ns, period_ns, flags) a thread.
    :returns: empty when it is done; else the fields of
        :class:`vsched_agent.privileged.entering.Failure`.
    """
    with leaving.exclusive:
        failure = entering.enter(
            entering.Request(*request) for request in requests)
    return failure._asdict() if failure else {}


@sched_pctxt.entrypoint
def leave_deadline(requests: Iterable[Sequence[int]],
                   ) -> tuple[tuple[int, int], ...]:
    """Take threads out of SCHED_DEADLINE without leaking bandwidth.

    :param requests: (tid, policy, flags, nice, priority) a thread.
    :returns: (tid, errno) of those that could not leave.
    """
    return tuple((tid, number) for tid, number in leaving.leave(
        leaving.Request(tid, syscalls.Attr(*rest))
        for tid, *rest in requests))


@sched_pctxt.entrypoint
def try_deadline() -> int:
    """Whether this process can put a thread under SCHED_DEADLINE.

    :returns: 0, also when the class is full; else the kernel's errno.
    """
    with leaving.exclusive:
        return probing.attempt()


@sched_pctxt.entrypoint
def probe_free_bandwidth(most: int) -> int:
    """What the kernel still admits.

    :param most: where to stop.
    :returns: bandwidth in 2**-20 CPU, see
        :func:`vsched_agent.privileged.probing.probe`.
    """
    with leaving.exclusive:
        return probing.probe(most)


@sched_pctxt.entrypoint
def set_affinity(requests: Iterable[tuple[int, Sequence[int]]]) -> int:
    """Set the CPUs that threads may use.

    :param requests: (tid, CPUs) a thread; threads that are gone are passed
        over.
    :returns: how many threads were set.
    :raises OSError: with the kernel's errno.
    """
    done = 0
    for tid, cpus in requests:
        try:
            os.sched_setaffinity(tid, cpus)
        except ProcessLookupError:
            continue
        done += 1
    return done
