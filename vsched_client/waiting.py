# SPDX-License-Identifier: Apache-2.0

"""Polls the API until it has an answer of an agent."""

from collections.abc import Callable
import time
import typing as ty

from vsched_client import errors

T = ty.TypeVar('T')

#: The delay before the first poll, and the longest one, in seconds.
_FIRST_S = 0.2
_LONGEST_S = 2.0
_GROWTH = 1.5


def poll(
    read: Callable[[], T],
    answered: Callable[[T], bool],
    timeout_s: float,
    subject: str,
    on_read: Callable[[T], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Read until the result is an answer; return it.

    :param subject: what is waited for, for the error.
    :param on_read: called with each result.
    :raises errors.TimedOut: with the last result, which was read after the
        time had passed.
    """
    give_up = clock() + timeout_s
    delay_s = _FIRST_S
    while True:
        late = clock() >= give_up
        found = read()
        if on_read is not None:
            on_read(found)
        if answered(found):
            return found
        if late:
            raise errors.TimedOut(
                '%s within %g s' % (subject, timeout_s), found
            )
        sleep(max(0.0, min(delay_s, give_up - clock())))
        delay_s = min(_LONGEST_S, delay_s * _GROWTH)
