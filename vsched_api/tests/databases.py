# SPDX-License-Identifier: Apache-2.0

"""A database of its own for a test, on each of the three kinds."""

import os
import re
import shutil
import tempfile
import threading
import typing as ty
import unittest

import sqlalchemy as sa

from vsched_api.db import migration
from vsched_api.tests import database_options
from vsched_api.tests import database_server

#: How an administrator reaches the servers.
POSTGRESQL = os.environ.get(
    'VSCHED_TEST_POSTGRESQL_URL',
    'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres',
)
MARIADB = os.environ.get(
    'VSCHED_TEST_MARIADB_URL', 'mysql+pymysql://root@127.0.0.1:3306/'
)


class SQLite:
    """A file; its tables are made once in a process, and copied."""

    name = 'sqlite'
    _template: str | None = None
    _lock = threading.Lock()

    @classmethod
    def make(cls, test: unittest.TestCase, migrated: bool = True) -> str:
        """The URL of a new database, which goes with the test."""
        folder = tempfile.mkdtemp(prefix='vsched-test-')
        test.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, 'vsched.sqlite')
        if migrated:
            shutil.copyfile(cls._migrated(), path)
        return 'sqlite:///' + path

    @classmethod
    def _migrated(cls) -> str:
        with cls._lock:
            if cls._template is None:
                handle, path = tempfile.mkstemp(prefix='vsched-test-')
                os.close(handle)
                url = 'sqlite:///' + path
                migration.sync(database_options.configuration(url))
                # Everything is in the one file once the journal is gone.
                engine = sa.create_engine(url)
                with engine.connect() as connection:
                    connection.exec_driver_sql(
                        'PRAGMA journal_mode=DELETE'
                    ).fetchall()
                engine.dispose()
                with open(path, 'rb') as file:
                    content = file.read()
                os.unlink(path)
                cls._template = cls._keep(content)
            return cls._template

    @staticmethod
    def _keep(content: bytes) -> str:
        # An open file without a name: nothing is left of it when the
        # process ends, however it does.
        handle = os.memfd_create('vsched-test')
        os.write(handle, content)
        return '/proc/self/fd/%d' % handle


class PostgreSQL(database_server.Server):
    """A database on a PostgreSQL server."""

    name = 'postgresql'
    administrator = POSTGRESQL
    drop = 'DROP DATABASE IF EXISTS %s WITH (FORCE)'
    #: Deleted rows take space until a vacuum; more of it is not kept.
    _KEPT_BYTES = 8 << 20
    _schema: ty.ClassVar[database_server.Rows] = ()
    _rows: ty.ClassVar[ty.Mapping[str, database_server.Rows]] = {}
    _sequences: ty.ClassVar[database_server.Rows] = ()

    _SCHEMA = """
SELECT 'relation', c.relkind::text, c.relname, '', '' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace
UNION ALL
SELECT 'column', c.relname, a.attname,
    format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull,
    coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
AND a.attnum > 0
UNION ALL
SELECT 'index', indexname, indexdef, '', '' FROM pg_indexes
WHERE schemaname = 'public'
UNION ALL
SELECT 'constraint', conrelid::regclass::text, conname,
    pg_get_constraintdef(oid), '' FROM pg_constraint
WHERE connamespace = 'public'::regnamespace
UNION ALL
SELECT 'trigger', tgrelid::regclass::text, tgname, tgenabled::text, ''
FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT 'schema', nspname, '', '', '' FROM pg_namespace
WHERE nspname NOT LIKE 'pg\\_%%'
UNION ALL
SELECT 'setting', setting, '', '', '' FROM pg_db_role_setting s
JOIN pg_database b ON b.oid = s.setdatabase, unnest(s.setconfig) setting
WHERE b.datname = current_database()
ORDER BY 1, 2, 3, 4, 5
"""

    @classmethod
    def _create(cls, name: str) -> None:
        cls._copy('template1', name)

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
        cls.execute(
            'CREATE DATABASE %s TEMPLATE %s' % (name, template),
            # Test data need not survive a power cut.
            'ALTER DATABASE %s SET synchronous_commit = off' % name,
        )

    @classmethod
    def _describe(cls, template: str) -> None:
        with cls._connected(template) as connection:
            cls._schema = cls._schema_of(connection)
            cls._rows = database_server.read(connection, cls._tables())
            cls._sequences = [
                tuple(row)
                for row in connection.exec_driver_sql(
                    'SELECT sequencename, coalesce(last_value, start_value),'
                    ' last_value IS NOT NULL FROM pg_sequences'
                )
            ]

    @classmethod
    def _schema_of(cls, connection: sa.Connection) -> database_server.Rows:
        return [tuple(row) for row in connection.exec_driver_sql(cls._SCHEMA)]

    @classmethod
    def _tables(cls) -> list[str]:
        return [row[2] for row in cls._schema if row[:2] == ('relation', 'r')]

    @classmethod
    def _empty(cls, name: str) -> str:
        with cls._connected(name) as connection:
            ((others, size),) = connection.exec_driver_sql(
                'SELECT (SELECT count(*) FROM pg_stat_activity WHERE datname'
                ' = current_database() AND pid != pg_backend_pid()),'
                ' (SELECT sum(pg_relation_size(oid)) FROM pg_class'
                " WHERE relnamespace = 'public'::regnamespace)"
            )
            if (
                others
                or size > cls._KEPT_BYTES
                or cls._schema_of(connection) != cls._schema
            ):
                raise database_server.Altered
            connection.exec_driver_sql(
                'SET session_replication_role = replica'
            )
            database_server.restore(connection, cls._tables(), cls._rows)
            for sequence in cls._sequences:
                connection.exec_driver_sql(
                    'SELECT setval(%s::regclass, %s, %s)', sequence
                )
        # Whoever has the old name cannot reach it any more.
        fresh = database_server.new_name()
        cls.execute(
            'SET synchronous_commit = off',
            'ALTER DATABASE %s RENAME TO %s' % (name, fresh),
        )
        return fresh


class MariaDB(database_server.Server):
    """A database on a MariaDB server."""

    name = 'mariadb'
    administrator = database_server.without_tls(MARIADB)
    drop = 'DROP DATABASE IF EXISTS %s'
    #: By table: what makes it, with the next value of its sequence.
    _creates: ty.ClassVar[ty.Mapping[str, str]] = {}
    _rows: ty.ClassVar[ty.Mapping[str, database_server.Rows]] = {}

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
        with cls._connected(None) as connection:
            for statement in (
                'CREATE DATABASE %s' % name,
                'USE %s' % name,
                'SET foreign_key_checks = 0',
                *cls._creates.values(),
            ):
                connection.exec_driver_sql(statement)
            database_server.restore(connection, list(cls._creates), cls._rows)

    @classmethod
    def _describe(cls, template: str) -> None:
        with cls._connected(template) as connection:
            cls._creates = cls._creates_of(connection)
            cls._rows = database_server.read(connection, list(cls._creates))

    @staticmethod
    def _creates_of(connection: sa.Connection) -> dict[str, str]:
        return {
            name: connection.exec_driver_sql(
                'SHOW CREATE TABLE ' + name
            ).one()[1]
            for (name,) in connection.exec_driver_sql('SHOW TABLES').all()
        }

    @classmethod
    def _empty(cls, name: str) -> str:
        with cls._connected(name) as connection:
            ((others, triggers),) = connection.exec_driver_sql(
                'SELECT (SELECT count(*) FROM information_schema.processlist'
                ' WHERE db = database() AND id != connection_id()),'
                ' (SELECT count(*) FROM information_schema.triggers'
                ' WHERE trigger_schema = database())'
            )
            creates = cls._creates_of(connection)
            if (
                others
                or triggers
                or list(map(_unnumbered, creates.items()))
                != list(map(_unnumbered, cls._creates.items()))
            ):
                raise database_server.Altered
            connection.exec_driver_sql('SET foreign_key_checks = 0')
            database_server.restore(connection, list(creates), cls._rows)
            for table, create in creates.items():
                if create != cls._creates[table]:
                    found = _NEXT.search(cls._creates[table])
                    connection.exec_driver_sql(
                        'ALTER TABLE %s AUTO_INCREMENT = %s'
                        % (table, found[1] if found else 1)
                    )
        return name


#: The next value of a sequence, in what SHOW CREATE TABLE tells.
_NEXT = re.compile(r' AUTO_INCREMENT=(\d+)')


def _unnumbered(table: tuple[str, str]) -> tuple[str, str]:
    return table[0], _NEXT.sub('', table[1])


Columns = ty.Mapping[str, ty.Sequence[str]]


def content(
    url: str, tables: Columns | None = None
) -> tuple[Columns, dict[str, list[str]]]:
    """Read a database, whatever release has made its tables.

    :param tables: columns by table; all of them when None.
    :returns: the columns, and by table the rows as text, sorted.
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        if tables is None:
            inspected = sa.inspect(connection)
            tables = {
                name: [one['name'] for one in inspected.get_columns(name)]
                for name in inspected.get_table_names()
                if name != 'alembic_version'
            }
        return tables, {
            name: sorted(
                str(tuple(row))
                for row in connection.execute(
                    sa.select(*map(sa.column, columns)).select_from(
                        sa.table(name)
                    )
                )
            )
            for name, columns in tables.items()
        }


def write(test: unittest.TestCase, text: str) -> str:
    """The path of a file with that text, which goes with the test."""
    folder = tempfile.mkdtemp(prefix='vsched-test-')
    test.addCleanup(shutil.rmtree, folder)
    path = os.path.join(folder, 'vsched.conf')
    with open(path, 'w') as file:
        file.write(text)
    return path
