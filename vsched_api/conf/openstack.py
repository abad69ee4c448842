# SPDX-License-Identifier: Apache-2.0

"""Options of [nova] and [placement]: connections to these services."""

from oslo_config import cfg

from vsched_lib.openstack import session

#: Names of the groups, and the types of their services.
NOVA = 'nova'
PLACEMENT = 'placement'
_SERVICES = {NOVA: 'compute', PLACEMENT: 'placement'}

nova_group = cfg.OptGroup(
    NOVA,
    title='Nova',
    help='Connection to Nova, for the flavors of "vsched-manage flavor" and '
    '"vsched-status", for audits, and for the collector, which compares the '
    'reports of hosts with Nova. The user must be allowed to change extra '
    'specs of flavors, and to list hypervisors, compute services and the '
    'servers of all projects.',
)

placement_group = cfg.OptGroup(
    PLACEMENT,
    title='Placement',
    help='Connection to placement, for audits of the capacity and the '
    'allocations of hosts, and for the collector, which compares the '
    'reports of hosts with it. The options are those of [placement] in '
    'nova.conf.',
)

_GROUPS = (nova_group, placement_group)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of both groups."""
    for group, service_type in _SERVICES.items():
        session.register_opts(conf, group, service_type)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the groups with their options, for oslo-config-generator."""
    return [
        (group, session.sample_opts(_SERVICES[group.name]))
        for group in _GROUPS
    ]
