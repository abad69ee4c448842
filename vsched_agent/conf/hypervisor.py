# SPDX-License-Identifier: Apache-2.0

"""Options of [hypervisor]."""

import copy

from oslo_config import cfg

hypervisor_group = cfg.OptGroup(
    'hypervisor',
    title='Hypervisor',
    help='Connection to the hypervisor of this compute node.',
)

hypervisor_opts = [
    cfg.StrOpt(
        'uri',
        default='qemu:///system',
        help="libvirt's URI, which also selects the driver: xen:///system "
        'that of Xen, any other that of QEMU and KVM. The connection must '
        'be read-write, because QEMU monitor commands that list the threads '
        'of vCPUs need it.',
    ),
    cfg.StrOpt(
        'run_dir',
        default='/run/libvirt/qemu',
        help="Directory in which libvirt's QEMU driver keeps the pid files "
        'of its domains. If they cannot be read, the processes of this '
        'host are searched.',
    ),
    cfg.FloatOpt(
        'reconnect_max',
        default=30.0,
        min=0.5,
        max=600,
        help='Maximum time, in seconds, between two attempts to connect. The '
        'first attempts follow at shorter intervals.',
    ),
    cfg.IntOpt(
        'keepalive_interval',
        default=5,
        min=1,
        max=300,
        help='A third of the time, in seconds, without an answer to '
        'keepalive probes after which a connection to libvirt is closed '
        "and opened again. The agent's main connection sends a probe "
        'after each second of silence.',
    ),
    cfg.FloatOpt(
        'call_timeout',
        default=10.0,
        min=0.5,
        max=300,
        help='Maximum time, in seconds, for an answer of libvirt.',
    ),
    cfg.FloatOpt(
        'monitor_timeout',
        default=3.0,
        min=0,
        max=60,
        help='Maximum time, in seconds, for an answer of the QEMU monitor of '
        'one domain. Without an answer, or with 0, vCPU threads are '
        'identified by the thread names that QEMU sets. Because libvirt '
        'marks a domain as tainted (custom-monitor) after a monitor '
        'command, 0 avoids that.',
    ),
    cfg.FloatOpt(
        'watch_interval',
        default=0.5,
        min=0.1,
        max=60,
        help='Seconds between two scans for vCPUs that were hot-plugged into '
        'a running domain, because libvirt has no event for that. A '
        'scan takes a few microseconds for each domain. On Xen it takes two '
        'calls to libvirt for each domain, and the interval grows to 20 times '
        'the duration of a scan.',
    ),
]


def is_xen(conf: cfg.ConfigOpts) -> bool:
    """Return whether the configured hypervisor is Xen.

    :param conf: not so where this group is not registered.
    """
    if hypervisor_group.name not in conf:
        return False
    scheme, _, _ = str(conf.hypervisor.uri).partition(':')
    return scheme.partition('+')[0] == 'xen'


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(hypervisor_group))
    conf.register_opts(hypervisor_opts, group=hypervisor_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(hypervisor_group, hypervisor_opts)]
