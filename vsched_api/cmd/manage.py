# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage``: the database, flavors, hosts, keys and the API."""

from collections.abc import Sequence
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_api.cmd import audit
from vsched_api.cmd import flavor
from vsched_api.cmd import host
from vsched_api.cmd import host_key
from vsched_api.cmd import openapi
from vsched_api.conf import startup
from vsched_api.db import errors
from vsched_api.db import migration
from vsched_api.db import session
from vsched_api.operations import retention


def _db_sync(conf: cfg.ConfigOpts) -> int:
    migration.sync(conf, conf.command.revision)
    return 0


def _db_version(conf: cfg.ConfigOpts) -> int:
    found, newest = migration.version(conf), migration.newest()
    print(found or 'none')
    if found == newest:
        return 0
    print(
        'this release needs %s: run vsched-manage db sync' % newest,
        file=sys.stderr,
    )
    return 1


def _db_purge(conf: cfg.ConfigOpts) -> int:
    database = session.Database(conf, session.Purpose.MAINTENANCE)
    try:
        counts = retention.purge(database, conf, time.time())
    finally:
        database.dispose()
    for name, count in counts.items():
        print('%s: %d deleted' % (name, count))
    return 0


def _add_commands(subparsers: ty.Any) -> None:
    db = subparsers.add_parser('db', help='The database.')
    commands = db.add_subparsers(dest='db_command', required=True)
    sync = commands.add_parser(
        'sync', help='Create the tables, or upgrade them.'
    )
    sync.add_argument(
        '--revision',
        default=migration.HEAD,
        help='Target revision; the newest by default.',
    )
    sync.set_defaults(act=_db_sync)
    version = commands.add_parser(
        'version',
        help='Print the revision of the tables; exit with 1 when this '
        'release needs another one.',
    )
    version.set_defaults(act=_db_version)
    purge = commands.add_parser(
        'purge',
        help='Delete rows that are past their retention time in '
        '[collector], now.',
    )
    purge.set_defaults(act=_db_purge)
    flavor.add_commands(subparsers)
    audit.add_commands(subparsers)
    host.add_commands(subparsers)
    host_key.add_commands(subparsers)
    openapi.add_commands(subparsers)


def main(args: Sequence[str] | None = None) -> int:
    """Run one command.

    :param args: the command line, that of the process when None.
    :returns: the exit status: 1 on a failure, whose reason is on stderr.
    """
    conf = startup.read(
        'vsched-manage',
        sys.argv[1:] if args is None else args,
        [
            cfg.SubCommandOpt(
                'command', title='Commands', handler=_add_commands
            )
        ],
    )
    try:
        return ty.cast(int, conf.command.act(conf))
    except (errors.DatabaseUnavailable, errors.UnusableConnection) as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
