# SPDX-License-Identifier: Apache-2.0

"""How long an instance can delay others by having its periods divided.

An instance that sends packets to itself without a purpose is not distinct from
one that waits on packets: it is ranked first, and has its periods divided as
finely as the policy permits. What others lose by that has two parts.

*Its own execution.* A thread with a budget of q in every p that meets its
deadlines executes the longest without a break where one budget is used at the
end of its period and the next one at the start. In a window of t it executes
at most (Bertogna, Cirinei, Lipari: Improved schedulability analysis of EDF on
multiprocessor platforms, ECRTS 2005, with C = q and D = T = p)::

    W(t) = n q + min(q, t + p - q - n p),  n = floor((t + p - q) / p)

and at most t. With q = Q/k and p = P/k this is no more than with Q and P, for
each t: a division takes nothing from others here.

*Its preemptions.* Under EDF a thread preempts others when it becomes ready,
as its deadline does not change before. A thread with an exhausted budget
becomes ready when that is replenished, once in a period. In a window of t
there are at most floor(t / p) + 1 starts of periods, and undivided there are
at least floor(t / P). So each thread of it preempts others at most

    floor(k t / P) + 1 - floor(t / P)

times more often. Over all threads of a host, the bound A on added periods per
second and CPU, :attr:`granularity.Policy.added_periods`, permits for m CPUs
and n threads with divided periods at most

    A m t + 2 n

more, however many instances do so. In the worst case all of them happen on
one CPU. Each one costs the time for two context switches, and for what the
caches lose.

Not in it: a thread that sleeps and wakes inside a period preempts others as
well, at every granularity. Its wakeups do not become more by a division.
"""

from collections.abc import Iterable

from vsched_lib.model import granularity
from vsched_lib.model import reservation

NS_PER_S = 1_000_000_000


def execution_ns(reserved: reservation.Reservation, window_ns: int) -> int:
    """Return how long a thread executes in a window at most.

    :param reserved: what it has, with its granularity.
    :param window_ns: length of the window.
    """
    runtime_ns, period_ns = reserved.divided_ns
    whole, rest_ns = divmod(window_ns + period_ns - runtime_ns, period_ns)
    return min(window_ns, whole * runtime_ns + min(runtime_ns, rest_ns))


def starved_ns(reserved: reservation.Reservation) -> int:
    """Return the longest time in which a thread gets nothing.

    It is 2 (p - q): one budget is used at the start of its period, the next
    one at the end (Shin, Lee: Periodic resource model for compositional
    real-time guarantees, RTSS 2003). An instance whose granularity becomes
    coarser because another one is ranked before it waits longer by the
    difference of both, and never longer than with an undivided period.

    :param reserved: what it has, with its granularity.
    """
    runtime_ns, period_ns = reserved.divided_ns
    return 2 * (period_ns - runtime_ns)


def added_preemptions(
    threads: Iterable[reservation.Reservation], window_ns: int
) -> int:
    """Return how much more often threads preempt others in a window at most.

    :param threads: what each of them has, with its granularity.
    :param window_ns: length of the window.
    """
    return sum(
        window_ns // reserved.divided_ns[1]
        + 1
        - window_ns // (reserved.period_us * reservation.NS_PER_US)
        for reserved in threads
        if reserved.granularity > 1
    )


def most_added_preemptions(
    policy: granularity.Policy, cpus: int, threads: int, window_ns: int
) -> float:
    """Return the same for all threads of a host, whatever they have.

    :param cpus: of the host.
    :param threads: how many have divided periods.
    :param window_ns: length of the window.
    """
    return policy.added_periods * cpus * window_ns / NS_PER_S + 2 * threads


def delay_ns(preemptions: float, preemption_ns: float) -> float:
    """Return by how much these delay a thread on one CPU at most.

    :param preemptions: of :func:`added_preemptions` or
        :func:`most_added_preemptions`.
    :param preemption_ns: what one costs, its return included.
    """
    return preemptions * preemption_ns
