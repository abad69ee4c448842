# SPDX-License-Identifier: Apache-2.0

"""Options of the collector and of what it keeps."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('collector', title='The collector of reports')

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'usage_retention_hours',
        mutable=True,
        default=2,
        min=1,
        help='How long samples of CPU time are kept, in hours. Their sums '
        'by minute and by hour are kept for longer.',
    ),
    cfg.IntOpt(
        'usage_minute_retention_days',
        mutable=True,
        default=7,
        min=1,
        help='How long sums of CPU time by minute are kept, in days.',
    ),
    cfg.IntOpt(
        'usage_hour_retention_days',
        mutable=True,
        default=400,
        min=1,
        help='How long sums of CPU time by hour are kept, in days.',
    ),
    cfg.IntOpt(
        'usage_fold_interval_s',
        default=60,
        min=1,
        help='How often new samples of CPU time are added to their sums by '
        'minute and by hour, in seconds.',
    ),
    cfg.IntOpt(
        'usage_fold_chunk_rows',
        mutable=True,
        default=5000,
        min=1,
        help='How many samples one transaction adds to their sums at most, '
        'unless a single batch has more.',
    ),
    cfg.IntOpt(
        'max_host_cpus',
        default=4096,
        min=1,
        max=65_536,
        help='The most CPUs that a host may have. What an agent tells beyond '
        'it is not believed: schedulers are told of so many.',
    ),
    cfg.IntOpt(
        'event_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='How long events, and balloons that ended, are kept, in days.',
    ),
    cfg.IntOpt(
        'instance_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='How long an instance that no host lists any more is '
        'remembered, with its override, in days.',
    ),
    cfg.IntOpt(
        'job_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='How long a job that is done, failed or cancelled is kept, in '
        'days.',
    ),
    cfg.IntOpt(
        'keep_profiles',
        mutable=True,
        default=20,
        min=1,
        help='How many error profiles, and how many overhead profiles, of '
        'each host and source are kept, the newest ones.',
    ),
    cfg.FloatOpt(
        'clock_skew_warning_s',
        default=30.0,
        min=5.0,
        help="By how many seconds a host's clock may differ from the "
        "collector's before there is an event. From 5 seconds on the "
        "times that a host sends are moved to the collector's clock "
        'when its own is ahead; none is stored in the future.',
    ),
    cfg.IntOpt(
        'absent_host_days',
        default=30,
        min=0,
        help='After how many days without a report a host is deleted, if '
        'Nova says that it has no compute service of that name. 0 for '
        'never; never either where [nova] does not say how to ask.',
    ),
    cfg.IntOpt(
        'purge_interval_s',
        default=300,
        min=1,
        help='How often what is older or more than that is deleted, in '
        'seconds.',
    ),
    cfg.IntOpt(
        'purge_chunk_rows',
        mutable=True,
        default=5000,
        min=1,
        help='How many rows one transaction deletes at most, so that '
        'reports do not wait for a long one.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
