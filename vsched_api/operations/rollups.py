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

"""Fold samples into sums by minute and by hour.

A sample is in the bucket in which its interval ended, also when it began in
the one before: ``(at - length_s, at]``. The sum of the samples of a bucket
is exactly what the bucket says, whenever and in whatever order they come: a
batch that waited out an outage changes the buckets of its own time.

**Each sample once.** Batches of a host are stored in the order of their
numbers, so one number for each host says what is folded, and what is not is
found by an index; nothing is looked at twice. That number, the buckets of
the instances and those of their host change in one transaction. Samples are
deleted when they are folded only.

**Bounded.** A transaction folds so many samples at most, of one host. Of
two collectors that fold the same host one waits.
"""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Mapping
import functools
import math
import typing as ty

from vsched_api.db import models
from vsched_api.db.queries import usage
from vsched_api.db.queries import usage_buckets
from vsched_api.db.queries import usage_folds
from vsched_api.db import session as db

#: How long buckets are, in seconds.
MINUTE_S = 60
HOUR_S = 3600
LENGTHS_S = (MINUTE_S, HOUR_S)

_Sums = usage_buckets.Sums


def fold(database: db.Database, chunk_rows: int,
         stopped: Callable[[], bool] = lambda: False) -> int:
    """Fold every sample that is stored and not folded yet.

    :param chunk_rows: how many samples one transaction folds at most,
        unless a single batch has more.
    :param stopped: asked between transactions whether to leave the rest.
    :returns: how many were folded.
    :raises vsched_api.db.errors.DatabaseUnavailable: when it can not go on.
    """
    total = 0
    for host_id in database.read(usage_folds.waiting):
        more = True
        while more:
            if stopped():
                return total
            count, more = database.write(
                functools.partial(_fold, host_id=host_id, limit=chunk_rows))
            total += count
    return total


def _fold(session: ty.Any, host_id: int,
          limit: int) -> tuple[int, bool]:
    done, last = usage_folds.lock(session, host_id)
    samples = usage.of_batches(session, host_id, done, last, limit)
    more = len(samples) >= limit or (
        bool(samples) and samples[-1].batch < last)
    added = _sum(samples)
    for length_s in LENGTHS_S:
        ends = {at for at, length, _ in added if length == length_s}
        if ends:
            _put(session, host_id, length_s, ends, added)
    usage_folds.put(session, host_id, samples[-1].batch if more else last)
    return len(samples), more


def _sum(samples: Iterable[usage.Stored],
         ) -> dict[usage_buckets.Key, _Sums]:
    # Ten thousand pass here in a second: each is added once, in place, and
    # hours are made of minutes.
    minutes: dict[tuple[int, str], list[ty.Any]] = {}
    for (_, instance_uuid, at, interval_us, guest_us, wait_us,
         promised_us) in samples:
        first_at = max(0.0, at - interval_us / 1e6)
        promised_guest_us = 0 if promised_us is None else guest_us
        key = (math.ceil(at / MINUTE_S), instance_uuid)
        sums = minutes.get(key)
        if sums is None:
            minutes[key] = [1, first_at, at, interval_us, guest_us, wait_us,
                            promised_us, promised_guest_us]
            continue
        sums[0] += 1
        if first_at < sums[1]:
            sums[1] = first_at
        if at > sums[2]:
            sums[2] = at
        sums[3] += interval_us
        sums[4] += guest_us
        sums[5] += wait_us
        if promised_us is not None:
            sums[6] = (sums[6] or 0) + promised_us
            sums[7] += promised_guest_us
    found: dict[usage_buckets.Key, _Sums] = {}
    for (minute, instance_uuid), values in minutes.items():
        one = _Sums(*values[:3], *(
            None if value is None else _bounded(value)
            for value in values[3:]))
        found[float(minute * MINUTE_S), MINUTE_S, instance_uuid] = one
        hour = (float(math.ceil(minute * MINUTE_S / HOUR_S) * HOUR_S),
                HOUR_S, instance_uuid)
        found[hour] = _add(found[hour], one) if hour in found else one
    return found


def _add(one: _Sums, other: _Sums) -> _Sums:
    if one.promised_us is None or other.promised_us is None:
        promised_us = (other.promised_us if one.promised_us is None
                       else one.promised_us)
    else:
        promised_us = _bounded(one.promised_us + other.promised_us)
    return _Sums(
        one.samples + other.samples, min(one.first_at, other.first_at),
        max(one.last_at, other.last_at),
        _bounded(one.interval_us + other.interval_us),
        _bounded(one.guest_us + other.guest_us),
        _bounded(one.wait_us + other.wait_us), promised_us,
        _bounded(one.promised_guest_us + other.promised_guest_us))


def _bounded(value: int) -> int:
    # No real sum comes near it; one that can not be stored would hold up
    # all that come after it.
    return min(value, usage_buckets.MAX_SUM)


def _put(session: ty.Any, host_id: int, length_s: int, ends: set[float],
         added: Mapping[usage_buckets.Key, _Sums]) -> None:
    known = usage_buckets.of_host(session, host_id, length_s, ends)
    rows = []
    for key, sums in added.items():
        at, length, instance_uuid = key
        if length != length_s:
            continue
        known[key] = (_add(known[key], sums) if key in known else sums)
        rows.append({'host_id': host_id, 'length_s': length_s, 'at': at,
                     'instance_uuid': instance_uuid,
                     **known[key]._asdict()})
    # In one order, so that no two wait for each other.
    usage_buckets.put(session, models.UsageBucket, sorted(
        rows, key=lambda row: (row['at'], row['instance_uuid'])))
    hosts: dict[float, tuple[int, _Sums]] = {}
    for (at, _, _), sums in known.items():
        count, so_far = hosts.get(at, (0, None))
        hosts[at] = (count + 1,
                     sums if so_far is None else _add(so_far, sums))
    usage_buckets.put(session, models.HostUsageBucket, [
        {'host_id': host_id, 'length_s': length_s, 'at': at,
         'instances': count, **sums._asdict()}
        for at, (count, sums) in sorted(hosts.items())])
