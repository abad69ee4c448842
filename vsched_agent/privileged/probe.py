# SPDX-License-Identifier: Apache-2.0

"""Probe how much deadline bandwidth the kernel still admits."""

import errno
import os
import threading
import time

from vsched_agent.privileged import parking
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads

#: A runtime of 8·u nanoseconds in this period is exactly u units.
_NS_PER_UNIT = 8
_PERIOD_NS = _NS_PER_UNIT << 20
#: The kernel accepts no runtime below 1024 ns, so less is not detected.
LEAST_UNITS = 1024 // _NS_PER_UNIT
_ONE_CPU = 1 << 20
#: Polling interval until a started thread sleeps, in seconds.
_SETTLE_S = 0.0002


class _Sleeper:
    """A sleeping thread that may use every CPU."""

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._thread = threading.Thread(
            target=self._wake.wait, name='probe', daemon=True
        )
        self._thread.start()
        self.tid = self._thread.native_id or 0
        while threads.state(self.tid) == threads.RUNNABLE:
            time.sleep(_SETTLE_S)
        os.sched_setaffinity(
            self.tid, range(os.sysconf('SC_NPROCESSORS_CONF'))
        )

    def hold(self, units: int) -> bool:
        """Try to reserve bandwidth; return whether the kernel admits it.

        :param units: 2**-20 CPU; 0 leaves the class.
        """
        if units < LEAST_UNITS:
            self.leave()
            return units == 0
        runtime_ns = units * _NS_PER_UNIT
        try:
            syscalls.set_attr(
                self.tid,
                syscalls.Attr(
                    syscalls.SCHED_DEADLINE,
                    syscalls.FLAG_RESET_ON_FORK,
                    0,
                    0,
                    runtime_ns,
                    _PERIOD_NS,
                    _PERIOD_NS,
                ),
            )
        except OSError as failure:
            if failure.errno == errno.EBUSY:
                return False
            raise
        return True

    def leave(self) -> None:
        """Leave the class; a sleeper leaks bandwidth unless parked first."""
        if syscalls.get_attr(self.tid).policy == syscalls.SCHED_DEADLINE:
            parking.park_and_set(self.tid, syscalls.Attr(syscalls.SCHED_OTHER))

    def end(self) -> None:
        """Leave the class and end."""
        try:
            self.leave()
        finally:
            self._wake.set()
            self._thread.join()


def attempt() -> int:
    """Put a sleeping thread into the class, and take it out.

    :returns: 0, also when the class is full; else the kernel's errno.
    """
    sleeper = _Sleeper()
    try:
        sleeper.hold(LEAST_UNITS)
    except OSError as failure:
        return failure.errno or errno.EINVAL
    finally:
        sleeper.end()
    return 0


def probe(most: int) -> int:
    """Reserve all that the kernel still admits, and free it again.

    Sleeping threads of this process reserve bandwidth by bisection, at most
    one CPU each, until the sum is known. It takes a few milliseconds, in which
    the kernel refuses other requests.

    :param most: where to stop, in 2**-20 CPU; one CPU more than there are at
        the latest, as each takes a thread and a kernel without a bound
        (sched_rt_runtime_us = -1) admits anything.
    :returns: 2**-20 CPU; amounts below :data:`LEAST_UNITS`, beyond whole
        CPUs, are not detected.
    :raises OSError: EPERM when this process may not use every CPU.
    """
    most = min(most, (os.sysconf('SC_NPROCESSORS_CONF') + 1) * _ONE_CPU)
    sleepers: list[_Sleeper] = []
    total = 0
    try:
        while total < most:
            sleeper = _Sleeper()
            sleepers.append(sleeper)
            units = _bisect(sleeper, min(_ONE_CPU, most - total))
            total += units
            if units < _ONE_CPU:
                break
    finally:
        for sleeper in sleepers:
            sleeper.end()
    return total


def _bisect(sleeper: _Sleeper, most: int) -> int:
    if sleeper.hold(most):
        return most
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if sleeper.hold(middle):
            low = middle
        else:
            high = middle
    sleeper.hold(low)
    return low
