# SPDX-License-Identifier: Apache-2.0

"""Options of what the host does for instances' I/O, and who pays."""

import copy

from oslo_config import cfg

charging_group = cfg.OptGroup(
    'charging',
    title='Charging',
    help="How the threads of this compute node that serve instances' I/O "
    'are held, and charged to the instances. Concerns instances whose '
    'flavor says vsched:io_charging.',
)

charging_opts = [
    cfg.BoolOpt(
        'enabled',
        default=True,
        help='Give the I/O threads of instances that are charged or '
        'overprovisioned reservations of their own, and charge those '
        'that are charged. Without it every instance is treated as if '
        'its flavor said vsched:io_charging=none.',
    ),
    cfg.FloatOpt(
        'headroom',
        default=1.5,
        min=1,
        max=10,
        help='What an I/O thread is given for each microsecond that it needs.',
    ),
    cfg.FloatOpt(
        'window',
        default=30.0,
        min=1,
        max=3600,
        help='Seconds of which the busiest one says what an I/O thread '
        'needs. Its reservation grows at once and shrinks no sooner '
        'than this after its last change.',
    ),
    cfg.IntOpt(
        'floor_mcpu',
        default=20,
        min=1,
        max=1000,
        help='The least an I/O thread is given, in milli-CPU. The more, the '
        'quicker it serves a load that begins.',
    ),
    cfg.IntOpt(
        'period_us',
        default=20_000,
        min=1000,
        max=1_000_000,
        help="The longest period of an I/O thread's reservation, in "
        "microseconds. It is that of the instance's vCPUs when that "
        'is shorter.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(charging_group))
    conf.register_opts(charging_opts, group=charging_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(charging_group, charging_opts)]
