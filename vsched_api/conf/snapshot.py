# SPDX-License-Identifier: Apache-2.0

"""Options of what schedulers are told of hosts."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('snapshot', title='What schedulers are told of hosts')

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'delta_hosts',
        default=1000,
        min=1,
        help='How many changed hosts one answer holds at most; the next '
        'one continues.',
    ),
    cfg.IntOpt(
        'silent_days',
        default=7,
        min=1,
        help='A host whose agent has not reported for longer leaves the '
        'snapshot, in days. It is back with its next report.',
    ),
    cfg.IntOpt(
        'tend_interval_s',
        default=60,
        min=1,
        help='How often hosts that are missing are added, as after an '
        'upgrade, and silent ones are removed, in seconds.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
