# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Bring the database's tables to the form this release needs."""

from collections.abc import Callable
import os

import alembic.command
import alembic.config
from alembic.runtime import migration as alembic_migration
import alembic.script
from oslo_config import cfg
from oslo_log import log as logging
from sqlalchemy import orm

from vsched_api.db import session

LOG = logging.getLogger(__name__)

HEAD = 'head'
BASE = 'base'


def _alembic() -> alembic.config.Config:
    config = alembic.config.Config()
    config.set_main_option(
        'script_location', os.path.join(os.path.dirname(__file__),
                                        'migrations').replace('%', '%%'))
    return config


def sync(conf: cfg.ConfigOpts, revision: str = HEAD) -> None:
    """Upgrade the tables; does nothing when they are there.

    :param conf: says which database.
    :param revision: where to stop, normally the newest.
    :raises errors.DatabaseUnavailable: when it does not answer.
    """
    before = version(conf)
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
                work.connection()).get_current_revision())
    finally:
        database.dispose()


def newest() -> str | None:
    """The revision that this release needs."""
    return alembic.script.ScriptDirectory.from_config(
        _alembic()).get_current_head()


def _run(conf: cfg.ConfigOpts, command: Callable[..., None],
         revision: str) -> None:
    database = session.Database(conf)
    try:
        def work(transaction: orm.Session) -> None:
            config = _alembic()
            config.attributes['connection'] = transaction.connection()
            command(config, revision)

        database.write(work)
    finally:
        database.dispose()
