# SPDX-License-Identifier: Apache-2.0

"""Options of [collector]."""

import copy

from oslo_config import cfg

from vsched_lib.metrics import server

GROUP = cfg.OptGroup('collector', title='The collector of reports')

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'workers',
        default=2,
        min=1,
        max=64,
        help='Number of processes that receive reports. One more runs the '
        'periodic tasks: sums, comparisons with Nova, deletions. Each opens '
        'its own connections to the database, see [database] max_pool_size '
        'and max_overflow. vsched-standalone does all of this in one '
        'process. A process answers up to [DEFAULT] executor_thread_pool_size '
        'requests at the same time, and is sent up to [oslo_messaging_rabbit] '
        'rabbit_qos_prefetch_count more. Both are 24 for collectors unless '
        'they are set.',
    ),
    cfg.IntOpt(
        'usage_retention_hours',
        mutable=True,
        default=2,
        min=1,
        help='Retention time of CPU time samples, in hours. Their sums by '
        'minute and by hour are kept for longer.',
    ),
    cfg.IntOpt(
        'usage_minute_retention_days',
        mutable=True,
        default=7,
        min=1,
        help='Retention time of the sums of CPU time by minute, in days.',
    ),
    cfg.IntOpt(
        'usage_hour_retention_days',
        mutable=True,
        default=400,
        min=1,
        help='Retention time of the sums of CPU time by hour, in days.',
    ),
    cfg.IntOpt(
        'usage_fold_interval_s',
        default=60,
        min=1,
        help='Seconds between two runs that add new samples of CPU time to '
        'their sums by minute and by hour.',
    ),
    cfg.IntOpt(
        'usage_fold_chunk_rows',
        mutable=True,
        default=5000,
        min=1,
        help='Maximum number of samples that one transaction adds to their '
        'sums, unless a single batch has more.',
    ),
    cfg.IntOpt(
        'max_host_cpus',
        default=4096,
        min=1,
        max=65_536,
        help='Maximum number of CPUs of a host. If an agent reports more, '
        'this number is stored and used for scheduling.',
    ),
    cfg.IntOpt(
        'event_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='Retention time of events, and of balloons that ended, in days.',
    ),
    cfg.IntOpt(
        'instance_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='Retention time of instances that no host lists, and of their '
        'overrides, in days.',
    ),
    cfg.IntOpt(
        'job_retention_days',
        mutable=True,
        default=30,
        min=1,
        help='Retention time of jobs that are done, failed or cancelled, in '
        'days.',
    ),
    cfg.IntOpt(
        'keep_profiles',
        mutable=True,
        default=20,
        min=1,
        help='Number of error profiles, and of overhead profiles, that are '
        'kept for each host and source. The newest ones are kept.',
    ),
    cfg.FloatOpt(
        'clock_skew_warning_s',
        default=30.0,
        min=5.0,
        help='Difference between the clocks of a host and of the collector '
        'from which on an event is stored, in seconds. If the clock of '
        'the host is ahead by 5 seconds or more, its times are '
        'corrected to the clock of the collector. No time in the future '
        'is stored.',
    ),
    cfg.IntOpt(
        'absent_host_days',
        default=30,
        min=0,
        help='Number of days without a report after which a host is deleted '
        'if Nova has no compute service of its name. 0 disables the '
        'deletion. No host is deleted either when [nova] is not '
        'configured.',
    ),
    cfg.IntOpt(
        'verification_interval_s',
        mutable=True,
        default=600,
        min=0,
        # Half of the time that a result is valid for.
        max=43_200,
        help='Number of seconds after which the reports of a host are '
        'compared with Nova and placement again. 0 disables the comparison. '
        'It is not made either when neither [nova] nor [placement] is '
        'configured.',
    ),
    cfg.IntOpt(
        'verification_hosts',
        mutable=True,
        default=50,
        min=1,
        help='Maximum number of hosts that a collector compares with Nova '
        'and placement in a row. It does so every 30 seconds.',
    ),
    cfg.IntOpt(
        'purge_interval_s',
        default=300,
        min=1,
        help='Seconds between two runs that delete rows that are past their '
        'retention time or number.',
    ),
    cfg.IntOpt(
        'purge_chunk_rows',
        mutable=True,
        default=5000,
        min=1,
        help='Maximum number of rows that one transaction deletes, so that '
        'reports do not wait for a long one.',
    ),
    *server.options(
        'the process of periodic tasks',
        'The processes that receive reports serve theirs on the ports that '
        'follow: with workers = 2 and port 8791, on 8792 and 8793.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(GROUP, OPTS)]
