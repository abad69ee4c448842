# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage host``: repair or delete a host."""

import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import host_deletion
from vsched_api.operations import numbering


def add_commands(subparsers: ty.Any) -> None:
    """Add the commands to an argument parser."""
    host = subparsers.add_parser('host', help='A host.')
    commands = host.add_subparsers(dest='host_command', required=True)
    reset = commands.add_parser(
        'reset-batches',
        help="Accept the next report of the host's agent under any number.",
    )
    reset.add_argument('host', metavar='HOST')
    reset.set_defaults(act=_reset_batches)
    delete = commands.add_parser(
        'delete', help='Delete a host that does not report, and all its data.'
    )
    delete.add_argument('host', metavar='HOST')
    delete.add_argument(
        '--force',
        action='store_true',
        help='Delete it even if it lists instances that no other host lists.',
    )
    delete.set_defaults(act=_delete)


def _delete(conf: cfg.ConfigOpts) -> int:
    database = db.Database(conf)
    try:
        host_deletion.delete(
            database,
            conf.command.host,
            time.time(),
            conf.api.host_down_after_s,
            conf.command.force,
        )
    except (errors.NotFound, errors.Conflict) as problem:
        print('vsched-manage host: %s' % problem.detail, file=sys.stderr)
        return 1
    finally:
        database.dispose()
    return 0


def _reset_batches(conf: cfg.ConfigOpts) -> int:
    database = db.Database(conf)
    try:
        newest = numbering.reset(database, conf.command.host)
    except errors.NotFound as problem:
        print('vsched-manage host: %s' % problem.detail, file=sys.stderr)
        return 1
    finally:
        database.dispose()
    print(
        'the next report of %s is stored as batch %d or above'
        % (conf.command.host, newest + 1)
    )
    return 0
