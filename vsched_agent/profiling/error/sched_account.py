# SPDX-License-Identifier: Apache-2.0

"""What the scheduler has charged a thread at a moment, exactly.

Its account in procfs is brought up to date when the thread leaves a CPU and
at ticks. So it is exact as long as the thread does not run, which a clock
that counts every nanosecond shows. Of a thread that runs the account is read
as soon as it does not, and what the clock has counted in between is taken
off again.

Both have to be read, because the clock counts what the scheduler does not
charge: switches, and time for which the machine under this one took the CPU
away. In the short while that is taken off there is next to none of it.
"""

from collections.abc import Sequence
import threading
import time

from vsched_agent.profiling.error import clocks

#: Threads that run for longer at a stretch are given up, in seconds.
PATIENCE_S = 0.05
_PAUSE_S = 0.0003


class Settling:
    """Reads accounts at looks that were just taken.

    :param watched: clocks of the threads.
    :param account: what the scheduler has charged them.
    :param stopping: gives up at once when set.
    """

    def __init__(
        self,
        watched: clocks.Clocks,
        account: clocks.Clocks,
        stopping: threading.Event,
    ) -> None:
        self._watched = watched
        self._account = account
        self._stopping = stopping

    def charged_ns(
        self, tids: Sequence[int], looks: Sequence[clocks.Look]
    ) -> list[int | None]:
        """What had been charged when the clocks were looked at.

        :param tids: the threads.
        :param looks: at their clocks, a moment ago.
        :returns: for each; None of one that runs all the time.
        """
        found: list[int | None] = [None] * len(tids)
        if not self._watched.live:
            return found
        last = dict(enumerate(looks))
        give_up_s = time.monotonic() + PATIENCE_S
        while last:
            left = [tids[index] for index in last]
            for index, says, now in zip(
                list(last),
                self._account.look(left),
                self._watched.look(left),
                strict=True,
            ):
                if now.ran_ns == last[index].ran_ns:
                    # It did not run while the account was read.
                    found[index] = says.ran_ns - (
                        now.ran_ns - looks[index].ran_ns
                    )
                    del last[index]
                else:
                    last[index] = now
            if time.monotonic() >= give_up_s or (
                last and self._stopping.wait(_PAUSE_S)
            ):
                break
        return found
