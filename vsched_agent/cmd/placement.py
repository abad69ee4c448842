# SPDX-License-Identifier: Apache-2.0

"""``vsched-agent placement``: show or delete this host's data in placement."""

import sys
import typing as ty

from oslo_config import cfg

from vsched_agent.conf import placement as placement_conf
from vsched_agent.enforcement import diagnosis
from vsched_agent.placement import factory
from vsched_agent.placement import sync
from vsched_agent.state import directory
from vsched_agent.state import schema
from vsched_lib.contract import placement as names
from vsched_lib.openstack import placement
from vsched_lib.openstack import session


def add_commands(parsers: ty.Any) -> None:
    """Add the command to an argument parser."""
    parser = parsers.add_parser(
        'placement', help='data of this host in placement'
    )
    commands = parser.add_subparsers(dest='placement_command', required=True)
    show = commands.add_parser('show', help='print the data')
    show.set_defaults(handler=_show)
    remove = commands.add_parser(
        'remove',
        help='delete the resource provider of this host, before vsched is '
        'removed from it; the agent must not run, and the provider must '
        'have no allocations',
    )
    remove.set_defaults(handler=_remove)


def _complain(text: object) -> int:
    print('vsched-agent placement: %s' % text, file=sys.stderr)
    return 1


def _show(conf: cfg.ConfigOpts) -> int:
    name = names.provider_name(placement_conf.compute_name(conf))
    try:
        client = factory.client(conf)
        own = client.provider(name)
        if own is None:
            return _complain('there is no provider %s' % name)
        _, inventories = client.inventories(own.uuid)
        _, traits = client.traits(own.uuid)
        claims = client.claims(own.uuid, names.RESOURCE_CLASS)
    except (placement.PlacementError, session.Unavailable) as problem:
        return _complain(problem)
    print('%s %s' % (own.uuid, name))
    for resource_class, one in inventories.items():
        print(
            '%s: %d in all, %d reserved, %d claimed'
            % (resource_class, one.total, one.reserved, sum(claims.values()))
        )
    for consumer, mcpu in sorted(claims.items()):
        print('  %s claims %d' % (consumer, mcpu))
    for trait in sorted(traits):
        print(trait)
    return 0


def _remove(conf: cfg.ConfigOpts) -> int:
    try:
        held = directory.open_state(conf.agent.state_path)
    except (directory.InUse, schema.NewerJournal) as error:
        return _complain(error)
    name = placement_conf.compute_name(conf)
    try:
        removed = sync.remove(factory.client(conf), name)
    except placement.InUse as problem:
        return _complain(
            'instances have claims on it; move them away first: %s' % problem
        )
    except (placement.PlacementError, session.Unavailable) as problem:
        return _complain(problem)
    finally:
        held.close()
    print(
        '%s is %s'
        % (names.provider_name(name), 'gone' if removed else 'not there')
    )
    return 0


def finding(conf: cfg.ConfigOpts) -> diagnosis.Finding:
    """Return the doctor's finding on this host's capacity in placement."""
    if not factory.configured(conf):
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'placement',
            'the capacity of this host is not written to placement: '
            'schedulers that choose at the same time may choose the same '
            'capacity',
            'set [placement] auth_type',
        )
    compute_name = placement_conf.compute_name(conf)
    try:
        client = factory.client(conf)
        root = client.provider(compute_name)
        own = client.provider(names.provider_name(compute_name))
        inventories = {} if own is None else client.inventories(own.uuid)[1]
    except (placement.PlacementError, session.Unavailable) as problem:
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'placement',
            str(problem),
            "see [placement] of the agent's configuration",
        )
    if root is None:
        return diagnosis.Finding(
            diagnosis.Level.PROBLEM,
            'placement',
            'there is no provider %s' % compute_name,
            'start nova-compute, or set [placement] '
            'compute_name to the name in "openstack hypervisor list"',
        )
    one = inventories.get(names.RESOURCE_CLASS)
    if one is None:
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'placement',
            'the capacity of this host is not in placement yet',
            'the agent writes it when it runs',
        )
    return diagnosis.Finding(
        diagnosis.Level.OK,
        'placement',
        '%s offers %d mcpu to instances'
        % (names.provider_name(compute_name), one.total - one.reserved),
    )
