# SPDX-License-Identifier: Apache-2.0

"""Options of [placement] for the agent."""

import copy

from oslo_config import cfg

from vsched_lib.openstack import session

GROUP = 'placement'

placement_group = cfg.OptGroup(
    GROUP,
    title='Placement',
    help='Connection to placement, which stores the capacity of this host '
    'for the allocations of nova-scheduler. Without auth_type the agent '
    'writes nothing to placement. The options of the connection are '
    'those of [placement] in nova.conf.',
)

placement_opts = [
    cfg.StrOpt(
        'compute_name',
        help="Name of the compute node's resource provider: the hypervisor's "
        'hostname in "openstack hypervisor list", which may differ from '
        'the name of the compute service. Defaults to [agent] host.',
    ),
    cfg.FloatOpt(
        'sync_interval',
        default=60.0,
        min=1,
        max=3600,
        help='Seconds between two comparisons with the data of this host in '
        'placement. Changes on the host are written at once.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group and those of its connection."""
    conf.register_group(copy.deepcopy(placement_group))
    conf.register_opts(placement_opts, group=GROUP)
    session.register_opts(conf, GROUP, 'placement')


def compute_name(conf: cfg.ConfigOpts) -> str:
    """Return the name of the compute node's resource provider."""
    return str(conf.placement.compute_name or conf.agent.host)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [
        (placement_group, [*placement_opts, *session.sample_opts('placement')])
    ]
