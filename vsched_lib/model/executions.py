# SPDX-License-Identifier: Apache-2.0

"""How often threads run, how much I/O they do each time, how long they wait.

An execution begins when the scheduler lets a thread run, after a wakeup or a
preemption. XenMon (Gupta et al., HPL-2005-187) reports the same of Xen's
domains: many executions with little I/O in each are expensive, and the time
before an execution is a part of the response to what caused it. Executions
of the host's threads for an instance are called wakeups.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import typing as ty

#: The kinds of the host's threads whose wakeups are counted separately.
KINDS = ('emulator', 'iothread', 'vhost')


class Counts(ty.NamedTuple):
    """What is counted in an interval.

    Messages and the database have the values in this order: append new ones.

    :param executions: of all vCPU threads.
    :param emulator_wakeups: of QEMU's main thread; likewise of dedicated disk
        threads and of vhost's workers. All wakeups are these and those of
        other threads, such as QEMU's pool.
    :param emulator_wait_us: how long it waited before them; likewise.
    """

    executions: int
    emulator_wakeups: int
    emulator_wait_us: int
    iothread_wakeups: int
    iothread_wait_us: int
    vhost_wakeups: int
    vhost_wait_us: int


COUNTS = Counts._fields

#: The counts of I/O.
IO = (
    'net_rx_packets',
    'net_tx_packets',
    'disk_read_requests',
    'disk_write_requests',
)

#: Digits after the decimal point.
_DIGITS = 3


def by_name(counts: Sequence[int] | None) -> dict[str, int | None]:
    """Return counts by name.

    :param counts: of :class:`Counts`, and perhaps of a newer release; None
        when they are unknown.
    """
    if counts is None:
        return dict.fromkeys(COUNTS)
    return dict(zip(COUNTS, counts, strict=False))


def figures(
    counts: Mapping[str, int | None], interval_us: int
) -> dict[str, float | None]:
    """Return rates and means of an instance's threads.

    :param counts: ``wait_us``, ``direct_wait_us``, ``wakeups`` and those in
        :data:`COUNTS` and :data:`IO`; None for an unknown one.
    :param interval_us: in which they were counted.
    :returns: by name; None where a count is unknown, and a mean where
        nothing ran.
    """
    found = {
        'executions_per_s': per_second(counts['executions'], interval_us),
        **_means(counts, 'execution', counts['executions'], 'wait_us'),
        'wakeups_per_s': per_second(counts['wakeups'], interval_us),
        **_means(counts, 'wakeup', counts['wakeups'], 'direct_wait_us'),
    }
    for kind in KINDS:
        wakeups = counts['%s_wakeups' % kind]
        found['%s_wakeups_per_s' % kind] = per_second(wakeups, interval_us)
        found['%s_wait_per_wakeup_us' % kind] = mean(
            counts['%s_wait_us' % kind], wakeups
        )
    return found


def _means(
    counts: Mapping[str, int | None],
    noun: str,
    executions: int | None,
    wait: str,
) -> dict[str, float | None]:
    return {
        'io_per_%s' % noun: mean(
            sum(counts[name] or 0 for name in IO), executions
        ),
        'wait_per_%s_us' % noun: mean(counts[wait], executions),
    }


def per_second(count: int | None, interval_us: int) -> float | None:
    """Return a rate.

    :returns: None when the count is unknown or the interval empty.
    """
    if count is None or interval_us < 1:
        return None
    return round(count * 1_000_000 / interval_us, _DIGITS)


def mean(total: int | None, executions: int | None) -> float | None:
    """Return the mean over executions.

    :returns: None when either is unknown, or there was no execution.
    """
    if total is None or not executions:
        return None
    return round(total / executions, _DIGITS)


#: The names that :func:`figures` returns.
FIGURES = tuple(
    figures(
        dict.fromkeys((*COUNTS, *IO, 'wait_us', 'wakeups', 'direct_wait_us')),
        0,
    )
)
