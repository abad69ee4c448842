# SPDX-License-Identifier: Apache-2.0

"""Reservations of threads that no agent manages."""

import errno
import time

from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_guests

#: Time for bandwidth that threads had when they ended to be free, in seconds.
PATIENCE_S = 10.0


def reserve(tid: int, runtime_us: int, period_us: int) -> None:
    """Put a thread of ours under SCHED_DEADLINE.

    :raises OSError: when the bandwidth is not free in time
    """
    give_up_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            syscalls.set_attr(
                tid,
                syscalls.Attr(
                    syscalls.SCHED_DEADLINE,
                    syscalls.FLAG_RESET_ON_FORK,
                    0,
                    0,
                    1000 * runtime_us,
                    1000 * period_us,
                    1000 * period_us,
                ),
            )
        except OSError as failure:
            # A thread that has ended keeps its bandwidth until its 0-lag
            # time.
            if failure.errno != errno.EBUSY or time.monotonic() > give_up_s:
                raise
            agent_guests.pause(0.05)
        else:
            return
