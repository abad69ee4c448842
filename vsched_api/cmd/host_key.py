# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage host-key`` and ``master-key``: manage keys of the bus."""

import os
import sys
import time
import typing as ty

from oslo_config import cfg

from vsched_api.conf import bus
from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import host_keys
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys


def add_commands(subparsers: ty.Any) -> None:
    """Add the commands to an argument parser."""
    keys = subparsers.add_parser(
        'host-key', help='Keys that agents sign their messages with.'
    )
    commands = keys.add_subparsers(dest='host_key_command', required=True)
    for name, act, text in (
        (
            'issue',
            _issue,
            "Print the content of a host's key file, the "
            'same until it is rotated or revoked.',
        ),
        (
            'rotate',
            _rotate,
            'Issue a new key. The previous one is '
            'accepted until the host uses the new one, '
            'or [bus] key_overlap_s have passed.',
        ),
    ):
        one = commands.add_parser(name, help=text)
        one.add_argument('host', metavar='HOST')
        one.add_argument(
            '--output',
            metavar='FILE',
            help='Write the key to a new file, mode 0600, instead.',
        )
        one.set_defaults(act=act)
    revoke = commands.add_parser('revoke', help='Revoke all keys of a host.')
    revoke.add_argument('host', metavar='HOST')
    revoke.set_defaults(act=_revoke)
    commands.add_parser('list', help='List the accepted keys.').set_defaults(
        act=_list
    )
    master = subparsers.add_parser(
        'master-key', help='Keys from which the keys of all hosts are derived.'
    )
    create = master.add_subparsers(
        dest='master_key_command', required=True
    ).add_parser(
        'create',
        help='Write a new key to a file, mode 0600, before those that it has.',
    )
    create.add_argument('file', metavar='FILE')
    create.set_defaults(act=_create)


def _issue(conf: cfg.ConfigOpts) -> int:
    return _hand_out(conf, host_keys.issue)


def _rotate(conf: cfg.ConfigOpts) -> int:
    return _hand_out(conf, host_keys.rotate)


def _hand_out(conf: cfg.ConfigOpts, act: ty.Any) -> int:
    def work(database: db.Database) -> int:
        host, path = conf.command.host, conf.command.output
        # Steps that may fail come before any change.
        master = bus.master_keys(conf).read()[0]
        file = (
            sys.stdout
            if path is None
            else os.fdopen(
                os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), 'w'
            )
        )
        try:
            serial = act(database, host, time.time())
            file.write(signing_keys.derive(master, host, serial).render())
            file.flush()
        except Exception:
            if path is not None:
                os.unlink(path)
            raise
        finally:
            if path is not None:
                file.close()
        return 0

    return _run(conf, work)


def _revoke(conf: cfg.ConfigOpts) -> int:
    def work(database: db.Database) -> int:
        serial = host_keys.revoke(database, conf.command.host)
        print(
            '%s: key %d and those before are not accepted any more'
            % (conf.command.host, serial)
        )
        return 0

    return _run(conf, work)


def _list(conf: cfg.ConfigOpts) -> int:
    def work(database: db.Database) -> int:
        for one in host_keys.every(database):
            print(
                '%s: %s'
                % (
                    one.host,
                    'none'
                    if one.revoked
                    else (
                        ' '.join(map(str, range(one.lowest, one.newest + 1)))
                    ),
                )
            )
        return 0

    return _run(conf, work)


def _create(conf: cfg.ConfigOpts) -> int:
    path = conf.command.file
    try:
        found = ''
        if os.path.exists(path):
            signing.KeyFile(path, signing_keys.parse_masters).read()
            with open(path, encoding='ascii') as file:
                found = file.read()
        new = '%s.%d' % (path, os.getpid())
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, 'w', encoding='ascii') as file:
            if found:
                # The file belongs to the collector's user, not to the current
                # one.
                owner = os.stat(path)
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(signing_keys.new_master() + '\n' + found)
        os.replace(new, path)
    except (OSError, signing.KeyFileError) as problem:
        return _complain(problem)
    return 0


def _run(conf: cfg.ConfigOpts, work: ty.Any) -> int:
    database = db.Database(conf)
    try:
        return ty.cast(int, work(database))
    except (contract_errors.VschedError, OSError) as problem:
        if isinstance(
            problem,
            errors.NotFound | errors.Invalid | signing.KeyFileError | OSError,
        ):
            return _complain(problem)
        raise
    finally:
        database.dispose()


def _complain(problem: object) -> int:
    print('vsched-manage: %s' % problem, file=sys.stderr)
    return 1
