# SPDX-License-Identifier: Apache-2.0

"""Fold samples into sums by minute and by hour.

A sample belongs to the bucket in which its interval ended, even if the
interval began in the previous one: ``(at - length_s, at]``. The sums of a
bucket are exactly those of its samples, whenever and in whatever order they
arrive: a batch that was delayed by an outage changes the buckets of its own
time.

**Each sample once.** Batches of a host are stored in the order of their
numbers. One number for each host marks the last folded batch, and an index
finds those after it. That number, the buckets of the instances and those of
their host change in one transaction. Only folded samples are deleted. The
samples of the host's CPUs arrive in the same batches and are folded with them.

**Bounded.** A transaction folds a limited number of samples, of one host. Of
two collectors that fold the same host one waits for the other's lock. Hosts
take turns, and a call ends after some time: a host that reports faster than it
is folded keeps no other one waiting.

**Spread.** All hosts at once would take the CPU from reports that arrive
meanwhile, for many seconds where there are a thousand of them. The first turns
can therefore be spread over some time, in the same order each time, so that
each host is still folded once in an interval.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
import functools
import math
import time
import typing as ty

from vsched_api.db import models
from vsched_api.db import packing
from vsched_api.db.queries import host_time
from vsched_api.db.queries import usage
from vsched_api.db.queries import usage_buckets
from vsched_api.db.queries import usage_folds
from vsched_api.db import session as db
from vsched_lib.model import executions

#: Lengths of buckets, in seconds.
MINUTE_S = 60
HOUR_S = 3600
LENGTHS_S = (MINUTE_S, HOUR_S)

#: After that no host gets another turn in one call, in seconds.
LIMIT_S = 120.0

_Sums = usage_buckets.Sums
_NO_EXECUTIONS = (0,) * len(executions.COUNTS)
_TimeSums = usage_buckets.TimeSums


def fold(
    database: db.Database,
    chunk_rows: int,
    stopped: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    spread_s: float = 0.0,
    pause: Callable[[float], object] = time.sleep,
) -> int:
    """Fold the stored samples that are not folded yet.

    All of them, unless that takes longer than :data:`LIMIT_S`; each host has a
    turn at least.

    :param chunk_rows: how many samples one transaction folds at most, unless a
        single batch has more.
    :param stopped: called between transactions; True ends the work early.
    :param clock: monotonic, in seconds.
    :param spread_s: over how long the first turns of the hosts are spread.
    :param pause: waits for so many seconds, or less when it is to end.
    :returns: how many were folded.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the database fails.
    """
    total = 0
    begins_s = clock()
    ends_s = begins_s + LIMIT_S
    waiting: Sequence[int] = database.read(usage_folds.waiting)
    while waiting:
        unfinished = []
        for number, host_id in enumerate(waiting):
            if spread_s:
                due_s = begins_s + spread_s * number / len(waiting)
                pause(max(0.0, due_s - clock()))
            if stopped():
                return total
            count, more = database.write(
                functools.partial(_fold, host_id=host_id, limit=chunk_rows)
            )
            total += count
            if more:
                unfinished.append(host_id)
        waiting = unfinished if clock() < ends_s else ()
        spread_s = 0.0
    return total


def _fold(session: ty.Any, host_id: int, limit: int) -> tuple[int, bool]:
    done, last = usage_folds.lock(session, host_id)
    upto, more = _whole_batches(
        [
            usage_folds.sizes(session, kind, host_id, done, last, limit)
            for kind in (models.UsageSecond, models.HostTimeSample)
        ],
        last,
        limit,
    )
    samples = usage.of_batches(session, host_id, done, upto)
    added = _sum(samples)
    cpus = _sum_cpus(host_time.of_batches(session, host_id, done, upto))
    for length_s in LENGTHS_S:
        ends = {at for at, length, _ in added if length == length_s}
        if ends:
            _put(session, host_id, length_s, ends, added)
        _put_cpus(
            session,
            host_id,
            length_s,
            {
                at: sums
                for (at, length), sums in cpus.items()
                if length == length_s
            },
        )
    usage_folds.put(session, host_id, upto)
    return sum(len(one.samples) for one in samples), more


def _whole_batches(
    sizes: Sequence[Mapping[int, int]], last: int, limit: int
) -> tuple[int, bool]:
    """Return the last batch that one transaction folds.

    :param sizes: of the next batches, by their kinds of samples; where there
        are as many as ``limit``, there may be more.
    :returns: its number, and whether there are batches after it.
    """
    known = min(
        (max(some) for some in sizes if len(some) >= limit), default=last
    )
    batches = sorted(
        batch
        for batch in {batch for some in sizes for batch in some}
        if batch <= known
    )
    upto, total = None, 0
    for batch in batches:
        total += sum(some.get(batch, 0) for some in sizes)
        if upto is not None and total > limit:
            return upto, True
        upto = batch
    return known, known < last


def _sum(seconds: Iterable[usage.Stored]) -> dict[usage_buckets.Key, _Sums]:
    # A fast path for ten thousand samples a second: the samples of an instance
    # and a minute are added column by column, and hours are sums of minutes.
    minutes: dict[tuple[int, str], list[packing.Sample]] = {}
    for at, samples in seconds:
        minute = math.ceil(at / MINUTE_S)
        for sample in samples:
            key = minute, sample[0]
            if key in minutes:
                minutes[key].append(sample)
            else:
                minutes[key] = [sample]
    found: dict[usage_buckets.Key, _Sums] = {}
    for (minute, instance_uuid), those in minutes.items():
        one = _sums(those)
        found[float(minute * MINUTE_S), MINUTE_S, instance_uuid] = one
        hour = (
            float(math.ceil(minute * MINUTE_S / HOUR_S) * HOUR_S),
            HOUR_S,
            instance_uuid,
        )
        found[hour] = _add(found[hour], one) if hour in found else one
    return found


def _sums(samples: Sequence[packing.Sample]) -> _Sums:
    _, ends, intervals, guests, waits, promises, *others = zip(
        *samples, strict=True
    )
    *counts, executed = others
    known = [one for one in executed if one is not None]
    kept = [
        (promised_us, guest_us)
        for promised_us, guest_us in zip(promises, guests, strict=True)
        if promised_us is not None
    ]
    return _Sums._make(
        (
            len(samples),
            _first(ends, intervals),
            max(ends),
            *(_bounded(sum(column)) for column in (intervals, guests, waits)),
            _bounded(sum(one[0] for one in kept)) if kept else None,
            _bounded(sum(one[1] for one in kept)),
            *(_bounded(sum(column)) for column in counts),
            len(known),
            *(_bounded(sum(column)) for column in zip(*known, strict=True)),
            *(() if known else _NO_EXECUTIONS),
        )
    )


def _first(ends: Iterable[float], intervals_us: Iterable[int]) -> float:
    """Return when the first interval began."""
    return max(
        0.0,
        min(
            at - interval_us / 1e6
            for at, interval_us in zip(ends, intervals_us, strict=True)
        ),
    )


def _sum_cpus(
    samples: Iterable[host_time.New],
) -> dict[tuple[float, int], _TimeSums]:
    found: dict[tuple[float, int], _TimeSums] = {}
    for one in samples:
        at, interval_us, cpus, *rest = one
        sums = _TimeSums(
            1,
            max(0.0, at - interval_us / 1e6),
            at,
            interval_us,
            _bounded(cpus * interval_us),
            *rest,
        )
        for length_s in LENGTHS_S:
            key = float(math.ceil(at / length_s) * length_s), length_s
            found[key] = _add(found[key], sums) if key in found else sums
    return found


_Any = ty.TypeVar('_Any', _Sums, _TimeSums)


def _add(one: _Any, other: _Any) -> _Any:
    return type(one)._make(
        (
            one.samples + other.samples,
            min(one.first_at, other.first_at),
            max(one.last_at, other.last_at),
            *(
                (a if b is None else b)
                if a is None or b is None
                else a + b
                if a + b < usage_buckets.MAX_SUM
                else usage_buckets.MAX_SUM
                for a, b in zip(one[3:], other[3:], strict=True)
            ),
        )
    )


def _bounded(value: int) -> int:
    # No real sum is near the maximum. A larger one could not be stored and
    # would block all that follow.
    return min(value, usage_buckets.MAX_SUM)


def _put(
    session: ty.Any,
    host_id: int,
    length_s: int,
    ends: Collection[float],
    added: Mapping[usage_buckets.Key, _Sums],
) -> None:
    known = usage_buckets.of_host(session, host_id, length_s, ends)
    rows = []
    for key, sums in added.items():
        at, length, instance_uuid = key
        if length != length_s:
            continue
        known[key] = _add(known[key], sums) if key in known else sums
        rows.append(
            {
                'host_id': host_id,
                'length_s': length_s,
                'at': at,
                'instance_uuid': instance_uuid,
                **known[key]._asdict(),
            }
        )
    # A fixed order avoids deadlocks.
    usage_buckets.put(
        session,
        models.UsageBucket,
        sorted(rows, key=lambda row: (row['at'], row['instance_uuid'])),
    )
    hosts: dict[float, tuple[int, _Sums]] = {}
    for (at, _, _), sums in known.items():
        if at in hosts:
            count, so_far = hosts[at]
            hosts[at] = count + 1, _add(so_far, sums)
        else:
            hosts[at] = 1, sums
    usage_buckets.put(
        session,
        models.HostUsageBucket,
        [
            {
                'host_id': host_id,
                'length_s': length_s,
                'at': at,
                'instances': count,
                **sums._asdict(),
            }
            for at, (count, sums) in sorted(hosts.items())
        ],
    )


def _put_cpus(
    session: ty.Any,
    host_id: int,
    length_s: int,
    added: Mapping[float, _TimeSums],
) -> None:
    if not added:
        return
    known = usage_buckets.of_cpus(session, host_id, length_s, added)
    usage_buckets.put(
        session,
        models.HostTimeBucket,
        [
            {
                'host_id': host_id,
                'length_s': length_s,
                'at': at,
                **(_add(known[at], sums) if at in known else sums)._asdict(),
            }
            for at, sums in sorted(added.items())
        ],
    )
