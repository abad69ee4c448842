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

"""Options of the collector and of what it keeps."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('collector', title='The collector of reports')

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'usage_retention_hours',
        default=2, min=1,
        help='How long samples of CPU time are kept, in hours. Their sums '
             'by minute and by hour are kept for longer.'),
    cfg.IntOpt(
        'usage_minute_retention_days',
        default=7, min=1,
        help='How long sums of CPU time by minute are kept, in days.'),
    cfg.IntOpt(
        'usage_hour_retention_days',
        default=400, min=1,
        help='How long sums of CPU time by hour are kept, in days.'),
    cfg.IntOpt(
        'usage_fold_interval_s',
        default=60, min=1,
        help='How often new samples of CPU time are added to their sums by '
             'minute and by hour, in seconds.'),
    cfg.IntOpt(
        'usage_fold_chunk_rows',
        default=5000, min=1,
        help='How many samples one transaction adds to their sums at most, '
             'unless a single batch has more.'),
    cfg.IntOpt(
        'event_retention_days',
        default=30, min=1,
        help='How long events, and balloons that ended, are kept, in days.'),
    cfg.IntOpt(
        'instance_retention_days',
        default=30, min=1,
        help='How long an instance that no host lists any more is '
             'remembered, with its override, in days.'),
    cfg.IntOpt(
        'job_retention_days',
        default=30, min=1,
        help='How long a job that is done, failed or cancelled is kept, in '
             'days.'),
    cfg.IntOpt(
        'keep_profiles',
        default=20, min=1,
        help='How many error profiles, and how many overhead profiles, of '
             'each host and source are kept, the newest ones.'),
    cfg.IntOpt(
        'purge_interval_s',
        default=300, min=1,
        help='How often what is older or more than that is deleted, in '
             'seconds.'),
    cfg.IntOpt(
        'purge_chunk_rows',
        default=5000, min=1,
        help='How many rows one transaction deletes at most, so that '
             'reports do not wait for a long one.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
