# SPDX-License-Identifier: Apache-2.0

"""Options of the way to placement."""

import copy

from oslo_config import cfg

from vsched_lib.openstack import session

GROUP = 'placement'

placement_group = cfg.OptGroup(
    GROUP,
    title='Placement',
    help="Where this host's capacity is kept for schedulers to claim. "
    'Without auth_type nothing is written there. The options of the '
    "connection are those of nova.conf's own [placement].",
)

placement_opts = [
    cfg.StrOpt(
        'compute_name',
        help="Name of the compute node's resource provider: the "
        'hypervisor\'s hostname as "openstack hypervisor list" shows '
        'it, which may differ from the name of the compute service. '
        '[agent] host when not set.',
    ),
    cfg.FloatOpt(
        'sync_interval',
        default=60.0,
        min=1,
        max=3600,
        help='Seconds between two looks at what placement knows of this '
        'host. What changes on the host is written at once.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    conf.register_group(copy.deepcopy(placement_group))
    conf.register_opts(placement_opts, group=GROUP)
    session.register_opts(conf, GROUP, 'placement')


def compute_name(conf: cfg.ConfigOpts) -> str:
    """What the compute node's provider is called."""
    return str(conf.placement.compute_name or conf.agent.host)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [
        (placement_group, [*placement_opts, *session.sample_opts('placement')])
    ]
