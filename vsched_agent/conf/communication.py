# SPDX-License-Identifier: Apache-2.0

"""Options of [communication]."""

import copy

from oslo_config import cfg

communication_group = cfg.OptGroup(
    'communication',
    title='Communication',
    help='Division of the periods of instances that wait on packets. Applies '
    'to instances with a reservation that backend deadline enforces, unless '
    'their flavor has vsched:comm_aware=false.',
)

communication_opts = [
    cfg.BoolOpt(
        'enabled',
        default=True,
        help='Divide runtime and period of instances that wait on packets by '
        'the same number, 2, 4 or 8. Their bandwidth stays the same. When '
        'false, every instance is treated as with vsched:comm_aware=false.',
    ),
    cfg.FloatOpt(
        'min_packets_per_second',
        default=10.0,
        min=0.1,
        max=1_000_000,
        help='Number of packets per second from which the periods of an '
        'instance are divided: received, waiting and anticipated ones. '
        'Seconds with fewer packets do not show what a request takes.',
    ),
    cfg.IntOpt(
        'min_runtime_us',
        default=100,
        min=2,
        max=1_000_000,
        help='Minimum runtime of a vCPU or I/O thread in a divided period, '
        'in microseconds. It is also never smaller than the CPU time of one '
        'request.',
    ),
    cfg.IntOpt(
        'min_period_us',
        default=2_500,
        min=100,
        max=1_000_000,
        help='Minimum length of a divided period, in microseconds. It is '
        "also never shorter than the scheduler tick of the host's kernel.",
    ),
    cfg.FloatOpt(
        'headroom',
        default=1.2,
        min=1,
        max=10,
        help='Ratio of the runtime in a divided period to the CPU time of one '
        'request, above which a period is divided further.',
    ),
    cfg.FloatOpt(
        'hold',
        default=10.0,
        min=1,
        max=3600,
        help='Time in seconds for which a period stays divided when the '
        'instance does not communicate any more. The longest request of this '
        'time counts. After a coarser division no finer one follows for as '
        'long.',
    ),
    cfg.FloatOpt(
        'max_added_periods',
        default=500.0,
        min=0,
        max=100_000,
        help='Maximum number of periods per second and CPU that division '
        'adds on this host. Each may preempt another instance once. The '
        'instances that communicate most come first.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(communication_group))
    conf.register_opts(communication_opts, group=communication_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(communication_group, communication_opts)]
