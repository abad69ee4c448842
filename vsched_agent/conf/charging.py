# SPDX-License-Identifier: Apache-2.0

"""Options of [charging]."""

import copy

from oslo_config import cfg

charging_group = cfg.OptGroup(
    'charging',
    title='Charging',
    help='Reservations of the threads of this compute node that serve '
    "instances' I/O, and their charging to the instances. Applies to "
    'instances with a reservation, as their vsched:io_charging says.',
)

charging_opts = [
    cfg.BoolOpt(
        'enabled',
        default=True,
        help='Reserve CPU time for the I/O threads of instances, unless '
        'their flavor has vsched:io_charging=none, and charge it to the '
        'instances with charge. When false, every instance is treated as '
        'with vsched:io_charging=none.',
    ),
    cfg.FloatOpt(
        'headroom',
        default=1.5,
        min=1,
        max=10,
        help='Ratio of the reservation of an I/O thread to its measured need.',
    ),
    cfg.FloatOpt(
        'window',
        default=30.0,
        min=1,
        max=3600,
        help='Length of the window, in seconds, whose busiest second '
        'determines the need of an I/O thread. Its reservation grows at '
        'once. It shrinks when it has not changed for this time.',
    ),
    cfg.IntOpt(
        'floor_mcpu',
        default=20,
        min=1,
        max=1000,
        help='Minimum reservation of an I/O thread, in milli-CPU. A larger '
        'value reduces the latency when load starts.',
    ),
    cfg.IntOpt(
        'period_us',
        default=20_000,
        min=1000,
        max=1_000_000,
        help='Maximum period of the reservation of an I/O thread, in '
        "microseconds. The period of the instance's vCPUs is used if it "
        'is shorter.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(charging_group))
    conf.register_opts(charging_opts, group=charging_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(charging_group, charging_opts)]
