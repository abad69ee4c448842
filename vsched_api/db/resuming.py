# SPDX-License-Identifier: Apache-2.0

"""Changes of tables that an earlier run may have made already.

MariaDB and MySQL store each change of a table at once, and the revision with
the next one: a ``vsched-manage db sync`` that is killed in between leaves
changes behind that no revision names. On PostgreSQL and SQLite the changes
and the revision are one transaction, and nothing is left behind.
"""

import typing as ty

from alembic.ddl import mysql
from alembic.runtime import migration as alembic_migration
from oslo_log import log as logging
import sqlalchemy as sa

from vsched_api.db import errors

LOG = logging.getLogger(__name__)


def prepare(context: alembic_migration.MigrationContext) -> None:
    """Let migrations leave out the changes that are there already.

    Does nothing where changes of tables are part of a transaction.

    :param context: of a migration that has not begun.
    """
    made = context.impl
    if isinstance(made, mysql.MySQLImpl):
        context.impl = _Resumed(
            made.dialect,
            made.connection,
            made.as_sql,
            None,
            made.output_buffer,
            made.context_opts,
        )


# No ``__dialect__``: with one, alembic would use it for all migrations of the
# process.
class _Resumed(mysql.MySQLImpl):
    """Makes each change unless it is there.

    :raises errors.UnknownTables: when something else has the name.
    """

    def create_table(self, table: sa.Table, **kw: ty.Any) -> None:
        if not self._inspector().has_table(table.name):
            super().create_table(table, **kw)
            return
        _check(
            'table %s' % table.name,
            self._columns(table.name),
            {column.name for column in table.columns},
        )

    def drop_table(self, table: sa.Table, **kw: ty.Any) -> None:
        if self._inspector().has_table(table.name):
            super().drop_table(table, **kw)
        else:
            _log('table %s was dropped' % table.name)

    def add_column(
        self, table_name: str, column: sa.Column[ty.Any], **kw: ty.Any
    ) -> None:
        if column.name in self._columns(table_name):
            _log('column %s.%s is there' % (table_name, column.name))
        else:
            super().add_column(table_name, column, **kw)

    def drop_column(
        self, table_name: str, column: sa.Column[ty.Any], **kw: ty.Any
    ) -> None:
        if column.name in self._columns(table_name):
            super().drop_column(table_name, column, **kw)
        else:
            _log('column %s.%s was dropped' % (table_name, column.name))

    def create_index(self, index: sa.Index, **kw: ty.Any) -> None:
        found = self._indexes(index)
        if index.name not in found:
            super().create_index(index, **kw)
            return
        _check(
            'index %s' % index.name,
            found[index.name],
            [column.name for column in index.columns],
        )

    def drop_index(self, index: sa.Index, **kw: ty.Any) -> None:
        if index.name in self._indexes(index):
            super().drop_index(index, **kw)
        else:
            _log('index %s was dropped' % index.name)

    def _inspector(self) -> sa.Inspector:
        # A new one each time: it remembers what it read.
        assert self.bind is not None
        return sa.inspect(self.bind)

    def _columns(self, table: str) -> set[str]:
        return {one['name'] for one in self._inspector().get_columns(table)}

    def _indexes(self, index: sa.Index) -> dict[str | None, list[str | None]]:
        """The columns of each index of the table that ``index`` is of."""
        assert index.table is not None
        return {
            one['name']: one['column_names']
            for one in self._inspector().get_indexes(index.table.name)
        }


def _check(name: str, found: object, wanted: object) -> None:
    """Accept what an earlier run made, and nothing else."""
    if found != wanted:
        raise errors.UnknownTables(
            'the %s is there already with other columns than those of this '
            'release: the database must belong to vsched alone' % name
        )
    _log('%s is there' % name)


def _log(what: str) -> None:
    LOG.warning(
        'The %s already: an earlier vsched-manage db sync was interrupted; '
        'continuing after this change',
        what,
    )
