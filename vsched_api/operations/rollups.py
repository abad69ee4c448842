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
    found: dict[usage_buckets.Key, _Sums] = {}
    for sample in samples:
        promised = sample.promised_us is not None
        sums = _Sums(
            1, max(0.0, sample.at - sample.interval_us / 1e6), sample.at,
            sample.interval_us, sample.guest_us, sample.wait_us,
            sample.promised_us, sample.guest_us if promised else 0)
        for length_s in LENGTHS_S:
            at = float(math.ceil(sample.at / length_s) * length_s)
            key = (at, length_s, sample.instance_uuid)
            known = found.get(key)
            found[key] = sums if known is None else _add(known, sums)
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
