# SPDX-License-Identifier: Apache-2.0

"""Parameters under which a thread holds no bandwidth; see leaving."""

import errno

from vsched_agent.privileged import syscalls

#: Parameters whose bandwidth the kernel counts as zero: the shortest runtime
#: it accepts, and (runtime << 20) / period is 0.
PARKED = syscalls.Attr(
    syscalls.SCHED_DEADLINE,
    syscalls.FLAG_RESET_ON_FORK,
    0,
    0,
    1_024,
    1_024,
    1_073_741_825,
)


def park_and_set(tid: int, attr: syscalls.Attr) -> None:
    """Free a thread's bandwidth, then take it out of the class.

    :param tid: a thread that is not overrun.
    :param attr: its scheduling parameters afterwards.
    :raises OSError: with the kernel's errno.
    """
    try:
        syscalls.set_attr(tid, PARKED)
    except OSError as failure:
        # EINVAL: kernel.sched_deadline_period_max_us was lowered. EBUSY:
        # the kernel's bandwidth sum is negative. Leave anyway.
        if failure.errno not in (errno.EINVAL, errno.EBUSY):
            raise
    syscalls.set_attr(tid, attr)
