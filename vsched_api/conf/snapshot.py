# SPDX-License-Identifier: Apache-2.0

"""Options of [snapshot]."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('snapshot', title='The snapshot of hosts for schedulers')

OPTS: list[cfg.Opt] = [
    cfg.IntOpt(
        'delta_hosts',
        default=1000,
        min=1,
        help='Maximum number of changed hosts in one answer. The next answer '
        'continues.',
    ),
    cfg.IntOpt(
        'silent_days',
        default=7,
        min=1,
        help='Number of days without a report after which a host is removed '
        'from the snapshot. Its next report adds it again.',
    ),
    cfg.IntOpt(
        'tend_interval_s',
        default=60,
        min=1,
        help='Seconds between two runs that add missing hosts, as after an '
        'upgrade, and remove silent ones.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(GROUP, OPTS)]
