# SPDX-License-Identifier: Apache-2.0

"""Options of the ways to Nova and placement."""

from oslo_config import cfg

from vsched_lib.openstack import session

#: Groups, and the types of their services.
NOVA = 'nova'
PLACEMENT = 'placement'
_SERVICES = {NOVA: 'compute', PLACEMENT: 'placement'}

nova_group = cfg.OptGroup(
    NOVA,
    title='Nova',
    help='Where flavors are, for "vsched-manage flavor" and "vsched-status". '
    'The user must be allowed to change extra specs of flavors.',
)

placement_group = cfg.OptGroup(
    PLACEMENT,
    title='Placement',
    help="Where hosts' capacity is kept for schedulers to claim, for audits. "
    "The options are those of nova.conf's own [placement].",
)

_GROUPS = (nova_group, placement_group)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Make the options known to one set of options."""
    for group, service_type in _SERVICES.items():
        session.register_opts(conf, group, service_type)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The options, for the generated sample."""
    return [
        (group, session.sample_opts(_SERVICES[group.name]))
        for group in _GROUPS
    ]
