# SPDX-License-Identifier: Apache-2.0

"""Options of the connection to the hypervisor."""

import copy

from oslo_config import cfg

hypervisor_group = cfg.OptGroup(
    'hypervisor',
    title='Hypervisor',
    help='How the agent sees the instances of this compute node.',
)

hypervisor_opts = [
    cfg.StrOpt(
        'uri',
        default='qemu:///system',
        help="libvirt's URI. It must allow writing: QEMU is asked through "
        'it for the threads of its vCPUs.',
    ),
    cfg.StrOpt(
        'run_dir',
        default='/run/libvirt/qemu',
        help="Where libvirt's QEMU driver keeps the pid files of its "
        'domains. When they can not be read there the processes of '
        'this host are searched.',
    ),
    cfg.FloatOpt(
        'reconnect_max',
        default=30.0,
        min=0.5,
        max=600,
        help='Longest wait, in seconds, between two attempts to connect. '
        'The first ones come sooner.',
    ),
    cfg.IntOpt(
        'keepalive_interval',
        default=5,
        min=1,
        max=300,
        help='A third of the time, in seconds, after which the connection '
        'to a libvirt that gives no sign of life is made anew. It is '
        'asked for one after each second of silence.',
    ),
    cfg.FloatOpt(
        'call_timeout',
        default=10.0,
        min=0.5,
        max=300,
        help='Longest wait, in seconds, for an answer of libvirt.',
    ),
    cfg.FloatOpt(
        'monitor_timeout',
        default=3.0,
        min=0,
        max=60,
        help="Longest wait, in seconds, for an answer of one domain's "
        'QEMU. Without one, and with 0, threads are known by the names '
        'that QEMU gives them. libvirt marks a domain whose QEMU was '
        'asked as tainted (custom-monitor); 0 avoids that.',
    ),
    cfg.FloatOpt(
        'watch_interval',
        default=0.5,
        min=0.1,
        max=60,
        help='Seconds between two looks for vCPUs that were plugged into a '
        'running domain: libvirt has no event for them. Costs a few '
        'microseconds for each domain.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(hypervisor_group))
    conf.register_opts(hypervisor_opts, group=hypervisor_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [(hypervisor_group, hypervisor_opts)]
