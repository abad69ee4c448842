# SPDX-License-Identifier: Apache-2.0

"""Estimate how much instances slow each other down.

The ratio of the time that an instance's vCPUs waited for a CPU to the time
that they ran is how much longer its work took than it would have alone. Each
folded minute is evaluated once, on a part of the hosts if there are many.

All schedulers use the estimates, and hosts report the times. So a host counts
once in a minute for each class, however many instances it reports, and what it
reports is bounded.
"""

from collections import abc
import itertools
import operator
import statistics
import typing as ty

from vsched_api.db.queries import counters
from vsched_api.db.queries import slowdowns as queries
from vsched_api.db import session as db
from vsched_lib.model import interference

#: The length of the evaluated buckets, in seconds.
LENGTH_S = 60

#: If more minutes are due at once, the oldest are skipped.
MOST_MINUTES = 10

#: The approximate number of hosts that are evaluated per minute.
MOST_HOSTS = 500

#: An instance that ran for less of a minute is not evaluated.
LEAST_GUEST_US = 1_000_000

#: The largest slowdown of an instance: it gets a seventeenth of the time that
#: it could use.
LARGEST = 16.0


def learn(database: db.Database, now: float, fold_interval_s: int) -> int:
    """Evaluate the minutes that are not evaluated yet.

    :param now: seconds since the epoch.
    :param fold_interval_s: the time within which samples are folded.
    :returns: how many measurements there were.
    """
    before = int(now - LENGTH_S - fold_interval_s) // LENGTH_S * LENGTH_S

    def work(session: ty.Any) -> int:
        taken = counters.advance_slowdowns(session, before)
        first = max(taken + LENGTH_S, before - (MOST_MINUTES - 1) * LENGTH_S)
        found = queries.every(session)
        known = interference.Interference(
            {**interference.Interference().estimates, **found}
        )
        every_nth = queries.count_hosts(session) // MOST_HOSTS + 1
        count = 0
        for at in range(first, before + 1, LENGTH_S):
            for _, used in itertools.groupby(
                queries.used(
                    session,
                    LENGTH_S,
                    float(at),
                    every_nth,
                    at // LENGTH_S % every_nth,
                ),
                operator.attrgetter('host_id'),
            ):
                known, more = _after(known, list(used))
                count += more
        # Priors are not stored: a later release may change them.
        queries.put(
            session,
            {
                pair: one
                for pair, one in known.estimates.items()
                if one != found.get(pair) and one != _PRIOR.get(pair)
            },
        )
        return count

    return database.write(work)


_PRIOR = interference.Interference().estimates


def _after(
    known: interference.Interference, used: abc.Sequence[queries.Used]
) -> tuple[interference.Interference, int]:
    """Update the estimates by one minute of one host."""
    classes: dict[str, int] = {}
    for one in used:
        if one.workload_class in interference.CLASSES:
            classes[one.workload_class] = (
                classes.get(one.workload_class, 0) + 1
            )
    slowdowns: dict[str, list[float]] = {}
    for one in used:
        if one.workload_class in classes and one.guest_us >= LEAST_GUEST_US:
            slowdowns.setdefault(one.workload_class, []).append(
                min(LARGEST, one.wait_us / one.guest_us)
            )
    count = 0
    for victim, measured in slowdowns.items():
        neighbours = {
            name: number - (name == victim) for name, number in classes.items()
        }
        if any(neighbours.values()):
            count += 1
            known = known.after(victim, neighbours, statistics.fmean(measured))
    return known, count
