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

"""Options of what schedulers are told of hosts."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'snapshot', title='What schedulers are told of hosts')

_TOLD = ('Agents tell what they go by, in [profiling] and [enforcement] of '
         'their own configuration, and that is what counts. This is for '
         'agents of earlier releases.')

OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'confidence',
        default=0.8, min=0.5, max=0.999,
        deprecated_for_removal=True, deprecated_reason=_TOLD,
        help='How sure it must be that errors to come keep within those '
             'that a host has measured, where its agent does not tell.'),
    cfg.FloatOpt(
        'max_margin_pct',
        default=25.0, min=0, max=1000,
        deprecated_for_removal=True, deprecated_reason=_TOLD,
        help='The largest part by which the runtime of a reservation is '
             'raised to make up for measured errors, in percent, where an '
             'agent does not tell.'),
    cfg.FloatOpt(
        'max_overhead_pct',
        default=50.0, min=0, max=100,
        deprecated_for_removal=True, deprecated_reason=_TOLD,
        help='The largest part of a reservation that may go to its host\'s '
             'work on its I/O, in percent, where io_charging is charge and '
             'an agent does not tell. A host on which it would be more is '
             'not used.'),
    cfg.IntOpt(
        'delta_hosts',
        default=1000, min=1,
        help='How many changed hosts one answer holds at most; the next '
             'one continues.'),
    cfg.IntOpt(
        'silent_days',
        default=7, min=1,
        help='A host whose agent has not reported for longer leaves the '
             'snapshot, in days. It is back with its next report.'),
    cfg.IntOpt(
        'tend_interval_s',
        default=60, min=1,
        help='How often hosts that are missing are added, as after an '
             'upgrade, and silent ones are removed, in seconds.'),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
