# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage audit``: compare placement, database, kernel and Nova."""

from collections.abc import Iterator
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_api.cmd import flavor
from vsched_api.conf import openstack
from vsched_api.db import session as db
from vsched_api.operations import audits
from vsched_api.operations import errors
from vsched_api.operations import hosts
from vsched_lib.openstack import compute
from vsched_lib.openstack import placement
from vsched_lib.openstack import session

_PAGE = 1000


def add_commands(subparsers: ty.Any) -> None:
    """Add the command to an argument parser."""
    audit = subparsers.add_parser(
        'audit',
        help='Print differences between placement, database, kernel and '
        'Nova, and hosts that do not report. Exit with 1 when there are '
        'any, with 2 when a service fails.',
    )
    audit.add_argument(
        'hosts',
        nargs='*',
        metavar='HOST',
        help='Names of hosts; by default all hosts, and all compute nodes of '
        'Nova.',
    )
    audit.add_argument(
        '--fix',
        action='store_true',
        help='Delete allocations of servers that Nova does not have. Nothing '
        'else is changed.',
    )
    audit.set_defaults(act=_audit)


def client(conf: cfg.ConfigOpts) -> placement.Placement:
    """Return a client of placement.

    :raises session.Unavailable: when placement is not configured.
    """
    return placement.Placement(session.connect(conf, openstack.PLACEMENT))


def _audit(conf: cfg.ConfigOpts) -> int:
    database = db.Database(conf)
    try:
        claims, nova = client(conf), _nova(conf)
        if conf.command.fix and nova is None:
            return _complain(
                '--fix has to ask Nova whether a server is '
                'gone: set [nova] auth_type'
            )
        status = 0
        for one in _findings(conf, database, claims, nova):
            healed = conf.command.fix and audits.heal(claims, one)
            print(
                '%s: %s: %s%s%s'
                % (
                    one.host,
                    one.kind,
                    '' if one.consumer is None else one.consumer + ' ',
                    _printable(one.detail),
                    '; taken away' if healed else '',
                )
            )
            status = status if healed else 1
        return status
    except (
        session.Unavailable,
        placement.PlacementError,
        errors.NotFound,
        compute.Rejected,
    ) as problem:
        return _complain(problem)
    finally:
        database.dispose()


def _findings(
    conf: cfg.ConfigOpts,
    database: db.Database,
    claims: placement.Placement,
    nova: compute.Compute | None,
) -> Iterator[audits.Finding]:
    down_after_s = conf.api.host_down_after_s
    known = set()
    for host in _hosts(conf, database):
        known.add(host.name)
        yield from audits.audit(
            database, claims, nova, host, time.time(), down_after_s
        )
    if nova is not None and not conf.command.hosts:
        yield from audits.unreported(
            claims, nova, known, time.time(), down_after_s
        )


def _printable(text: str) -> str:
    """Escape what would end a line or control a terminal: hosts write it."""
    return ''.join(
        one if one.isprintable() else ascii(one)[1:-1] for one in text
    )


def _complain(text: object) -> int:
    print('vsched-manage audit: %s' % text, file=sys.stderr)
    return 2


def _nova(conf: cfg.ConfigOpts) -> compute.Compute | None:
    if not session.configured(conf, openstack.NOVA):
        return None
    return flavor.client(conf)


def _hosts(
    conf: cfg.ConfigOpts, database: db.Database
) -> Iterator[hosts.Host]:
    down_after_s = conf.api.host_down_after_s
    if conf.command.hosts:
        for name in conf.command.hosts:
            yield hosts.get(database, name, time.time(), down_after_s)
        return
    marker: str | None = None
    while True:
        page = hosts.page(database, _PAGE, marker, time.time(), down_after_s)
        yield from page
        if len(page) < _PAGE:
            return
        marker = page[-1].name
