# SPDX-License-Identifier: Apache-2.0

"""Bring the database's tables to the form this release needs."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import fcntl
import os

import alembic.command
import alembic.config
from alembic.runtime import migration as alembic_migration
import alembic.script
from oslo_config import cfg
from oslo_log import log as logging
import sqlalchemy as sa
from sqlalchemy import orm

from vsched_api.db import errors
from vsched_api.db import session

LOG = logging.getLogger(__name__)

#: What holds the lock while tables change; chosen once, and kept.
_LOCK_NAME = 'vsched.db.sync'
_LOCK_NUMBER = 0x76736368
# Below the time limit of one answer.
_LOCK_WAIT_S = 25

HEAD = 'head'
BASE = 'base'


def _alembic() -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option(
        'script_location',
        os.path.join(os.path.dirname(__file__), 'migrations').replace(
            '%', '%%'
        ),
    )
    return config


def sync(conf: cfg.ConfigOpts, revision: str = HEAD) -> None:
    """Upgrade the tables; does nothing when they are there.

    :param conf: says which database.
    :param revision: where to stop, normally the newest.
    :raises errors.DatabaseUnavailable: when it does not answer.
    :raises errors.UnknownTables: when a newer release, or a build before
        the initial one, made the tables; nothing was changed.
    """
    before = version(conf)
    if before is not None and before not in _revisions():
        raise errors.UnknownTables(
            'the tables are at revision %s, which this release does not '
            'know: it upgrades tables of releases only; see "Upgrades" in '
            "the administrator's guide" % before
        )
    _run(conf, alembic.command.upgrade, revision)
    after = version(conf)
    if after != before:
        LOG.info('The tables are now at revision %s', after)


def downgrade(conf: cfg.ConfigOpts, revision: str) -> None:
    """Take tables back to an older form, losing what it has no place for.

    :param revision: an older revision, or :data:`BASE` for no tables.
    :raises errors.DatabaseUnavailable: when the database does not answer.
    """
    _run(conf, alembic.command.downgrade, revision)


def version(conf: cfg.ConfigOpts) -> str | None:
    """The revision that the database is at, None for an empty one.

    :raises errors.DatabaseUnavailable: when it does not answer.
    """
    database = session.Database(conf)
    try:
        return database.read(
            lambda work: alembic_migration.MigrationContext.configure(
                work.connection()
            ).get_current_revision()
        )
    finally:
        database.dispose()


def newest() -> str | None:
    """The revision that this release needs."""
    return _scripts().get_current_head()


def _revisions() -> frozenset[str]:
    return frozenset(script.revision for script in _scripts().walk_revisions())


def _scripts() -> alembic.script.ScriptDirectory:
    return alembic.script.ScriptDirectory.from_config(_alembic())


@contextlib.contextmanager
def _alone(connection: sa.Connection) -> Iterator[None]:
    """Wait until nobody else changes the tables, and keep others out.

    :raises errors.DatabaseUnavailable: when somebody else does not end.
    """
    if connection.dialect.name == 'postgresql':
        # Until the transaction ends; [database] and the server limit it.
        connection.exec_driver_sql(
            'SELECT pg_advisory_xact_lock(%d)' % _LOCK_NUMBER
        )
        yield
    elif connection.dialect.name in ('mysql', 'mariadb'):
        name = "concat('%s.', database())" % _LOCK_NAME
        # Its changes of tables end transactions: the lock is the session's.
        if (
            connection.exec_driver_sql(
                'SELECT GET_LOCK(%s, %d)' % (name, _LOCK_WAIT_S)
            ).scalar_one()
            != 1
        ):
            raise errors.DatabaseUnavailable(
                'another vsched-manage db sync runs; try again'
            )
        try:
            yield
            # A change of tables ends the transaction before it: the revision
            # that follows the last one is not stored yet, and whoever is
            # given the lock would make that change a second time.
            connection.exec_driver_sql('COMMIT')
        finally:
            connection.exec_driver_sql('SELECT RELEASE_LOCK(%s)' % name)
    else:
        with _file_lock(connection):
            yield


@contextlib.contextmanager
def _file_lock(connection: sa.Connection) -> Iterator[None]:
    path = connection.engine.url.database
    if not path or path == ':memory:':
        # Nobody else can have it open.
        yield
        return
    with open(path + '.sync-lock', 'w') as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(
    conf: cfg.ConfigOpts, command: Callable[..., None], revision: str
) -> None:
    database = session.Database(conf, session.Purpose.MIGRATION)
    try:

        def work(transaction: orm.Session) -> None:
            config = _alembic()
            connection = transaction.connection()
            config.attributes['connection'] = connection
            with _alone(connection):
                command(config, revision)

        database.write(work)
    finally:
        database.dispose()
