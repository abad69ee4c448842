# SPDX-License-Identifier: Apache-2.0

"""Delete rows that are past their retention time.

Rows are deleted in chunks, each in its own transaction, so that reports do not
wait long for locks.
"""

from collections.abc import Callable
import functools
import typing as ty

from oslo_config import cfg
from oslo_log import log as logging

from vsched_api.db import models
from vsched_api.db.queries import balloon_changes
from vsched_api.db.queries import balloons
from vsched_api.db.queries import counters
from vsched_api.db.queries import events
from vsched_api.db.queries import instances
from vsched_api.db.queries import jobs
from vsched_api.db.queries import overrides
from vsched_api.db.queries import profiles
from vsched_api.db.queries import usage_buckets
from vsched_api.db.queries import usage_folds
from vsched_api.db import session as db
from vsched_api.operations import host_deletion
from vsched_api.operations import rollups

LOG = logging.getLogger(__name__)

#: The kinds of rows that :func:`purge` counts.
KINDS = (
    'hosts',
    'rows_of_hosts',
    'usage',
    'host_time',
    'usage_minutes',
    'host_usage_minutes',
    'host_time_minutes',
    'usage_hours',
    'host_usage_hours',
    'host_time_hours',
    'events',
    'balloon_changes',
    'instances',
    'jobs',
    'profiles',
    'overhead_profiles',
    'overrides',
    'balloon_orders',
)

_SECONDS_PER_HOUR = 3600
_SECONDS_PER_DAY = 86_400

#: The usual number of rows of one profile.
_ROWS_PER_PROFILE = 100


def purge(
    database: db.Database,
    conf: cfg.ConfigOpts,
    now: float,
    stopped: Callable[[], bool] = lambda: False,
) -> dict[str, int]:
    """Delete all rows that are past their retention time.

    :param conf: has the options of :mod:`vsched_api.conf.collector`.
    :param now: seconds since the epoch.
    :param stopped: called between chunks; True ends the work early.
    :returns: how many rows of each of :data:`KINDS` were deleted.
    :raises vsched_api.db.errors.DatabaseUnavailable: when the database fails.
    """
    options = conf.collector
    samples_before = now - options.usage_retention_hours * _SECONDS_PER_HOUR
    gone_before = now - options.instance_retention_days * _SECONDS_PER_DAY
    # Only folded samples may be deleted.
    rollups.fold(database, options.usage_fold_chunk_rows, stopped)
    chunks: dict[str, Callable[[ty.Any, int], int]] = {
        'usage': lambda session, limit: usage_folds.delete_before(
            session, models.UsageSecond, samples_before, limit
        ),
        'host_time': lambda session, limit: usage_folds.delete_before(
            session, models.HostTimeSample, samples_before, limit
        ),
        **_buckets(options, now),
        'events': lambda session, limit: events.delete_before(
            session,
            now - options.event_retention_days * _SECONDS_PER_DAY,
            limit,
        ),
        'balloon_changes': (
            lambda session, limit: balloon_changes.delete_before(
                session,
                now - options.event_retention_days * _SECONDS_PER_DAY,
                limit,
            )
        ),
        'instances': lambda session, limit: _instances(
            session, gone_before, limit
        ),
        'jobs': lambda session, limit: jobs.delete_finished(
            session, now - options.job_retention_days * _SECONDS_PER_DAY, limit
        ),
    }
    counts = {
        'hosts': host_deletion.delete_absent(database, conf, now),
        'rows_of_hosts': host_deletion.purge(
            database, now, options.purge_chunk_rows, stopped
        ),
    }
    for name, delete in chunks.items():
        counts[name] = _all(
            database, delete, options.purge_chunk_rows, stopped
        )
    for name, kind in (
        ('profiles', models.ErrorProfile),
        ('overhead_profiles', models.OverheadProfile),
    ):
        counts[name] = _all(
            database,
            functools.partial(_surplus, kind, options.keep_profiles),
            max(1, options.purge_chunk_rows // _ROWS_PER_PROFILE),
            stopped,
        )
    counts['overrides'], counts['balloon_orders'] = database.write(
        lambda session: _overrides(session, gone_before)
    )
    if any(counts.values()):
        LOG.info(
            'Deleted as too old: %s',
            ', '.join(
                '%d %s' % (count, name) for name, count in counts.items()
            ),
        )
    return counts


def _surplus(kind: ty.Any, keep: int, session: ty.Any, limit: int) -> int:
    return profiles.delete_surplus(session, kind, keep, limit)


def _buckets(
    options: ty.Any, now: float
) -> dict[str, Callable[[ty.Any, int], int]]:
    def chunk(
        kind: usage_buckets.Kind, length_s: int, days: int
    ) -> Callable[[ty.Any, int], int]:
        return lambda session, limit: usage_buckets.delete_before(
            session, kind, length_s, now - days * _SECONDS_PER_DAY, limit
        )

    return {
        '%s_%s' % (whose, name): chunk(kind, length_s, days)
        for name, length_s, days in (
            ('minutes', rollups.MINUTE_S, options.usage_minute_retention_days),
            ('hours', rollups.HOUR_S, options.usage_hour_retention_days),
        )
        for whose, kind in (
            ('usage', models.UsageBucket),
            ('host_usage', models.HostUsageBucket),
            ('host_time', models.HostTimeBucket),
        )
    }


def _all(
    database: db.Database,
    delete: Callable[[ty.Any, int], int],
    chunk_rows: int,
    stopped: Callable[[], bool],
) -> int:
    total = 0
    while not stopped():
        count = database.write(lambda session: delete(session, chunk_rows))
        total += count
        if count < chunk_rows:
            break
    return total


def _instances(session: ty.Any, before: float, limit: int) -> int:
    # The counter serialises this with reports that list an instance again.
    counters.next_override_generation(session)
    return instances.delete_absent(session, before, limit)


def _overrides(session: ty.Any, before: float) -> tuple[int, int]:
    counters.next_override_generation(session)
    return (
        overrides.delete_orphans(session, before),
        balloons.delete_orphaned_orders(session, before),
    )
