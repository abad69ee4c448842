# SPDX-License-Identifier: Apache-2.0

"""A database of its own for a test, on each of the three kinds."""

import atexit
import contextlib
import os
import re
import shutil
import tempfile
import threading
import typing as ty
import unittest
import uuid

from oslo_config import cfg
import sqlalchemy as sa

import vsched_api.conf
from vsched_api.db import migration
from vsched_lib.tests import requirements

#: How an administrator reaches the servers.
POSTGRESQL = os.environ.get(
    'VSCHED_TEST_POSTGRESQL_URL',
    'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres',
)
MARIADB = os.environ.get(
    'VSCHED_TEST_MARIADB_URL', 'mysql+pymysql://root@127.0.0.1:3306/'
)
#: How long a server may take to accept a connection, in seconds: other tests
#: compute meanwhile. A service gives up sooner, unless its URL says this.
CONNECT_S = 60


def configuration(url: str, *args: str) -> cfg.ConfigOpts:
    """Options of a service that uses that database, without keystone."""
    conf = cfg.ConfigOpts()
    vsched_api.conf.register_opts(conf)
    conf(
        args=list(args),
        project='vsched-test',
        default_config_files=[],
        default_config_dirs=[],
    )
    conf.set_override('connection', url, 'database')
    conf.set_override('auth_strategy', 'noauth', 'api')
    return conf


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
                migration.sync(configuration(url))
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


def _without_tls(text: str) -> str:
    # PyMySQL tries TLS by default, and reads all certificates of this host
    # for every connection.
    url = sa.make_url(text)
    if url.drivername == 'mysql+pymysql' and not any(
        key.startswith('ssl') for key in url.query
    ):
        url = url.update_query_dict({'ssl_disabled': 'true'})
    return url.render_as_string(hide_password=False)


class _Altered(Exception):
    """A database is not what the template is, its rows apart."""


class _Server:
    """A database on a server; its tables are made once in a process.

    To make tables and to drop a database, a server waits for its disk again
    and again. A database that a test has left is therefore emptied for the
    next test of the process, unless its schema was changed or somebody is
    connected to it: then it is dropped, and a copy is made.
    """

    name: ty.ClassVar[str]
    administrator: ty.ClassVar[str]
    drop: ty.ClassVar[str] = 'DROP DATABASE %s'
    _template: ty.ClassVar[str | None] = None
    _lock = threading.Lock()
    #: Names of migrated databases that tests have left as they were.
    _left: ty.ClassVar[list[str]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._left = []

    @classmethod
    def make(cls, test: unittest.TestCase, migrated: bool = True) -> str:
        """The URL of a database that no other test has.

        :param migrated: whether it has the tables of this release.
        """
        try:
            if migrated:
                name = cls._take()
                test.addCleanup(cls._left.append, name)
            else:
                name = _new_name()
                cls._create(name)
                test.addCleanup(cls.execute, cls.drop % name)
        except sa.exc.OperationalError as error:
            requirements.require(test, cls.name, str(error.orig))
        return cls._url(name)

    @classmethod
    def _take(cls) -> str:
        template = cls._migrated()
        while cls._left:
            left = cls._left.pop()
            try:
                return cls._empty(left)
            except (_Altered, sa.exc.DBAPIError):
                # A test may have dropped it.
                with contextlib.suppress(sa.exc.DBAPIError):
                    cls.execute(cls.drop % left)
        name = _new_name()
        cls._copy(template, name)
        return name

    @classmethod
    def _migrated(cls) -> str:
        """The name of a database with tables and nothing else."""
        with cls._lock:
            if cls._template is None:
                name = _new_name()
                cls._create(name)
                atexit.register(cls._drop_all, name)
                migration.sync(configuration(cls._url(name)))
                cls._describe(name)
                cls._template = name
            return cls._template

    @classmethod
    def _drop_all(cls, template: str) -> None:
        cls.execute(*(cls.drop % name for name in (template, *cls._left)))

    @classmethod
    def _create(cls, name: str) -> None:
        cls.execute('CREATE DATABASE %s' % name)

    @classmethod
    def _describe(cls, template: str) -> None:
        """Keep what :meth:`_copy` and :meth:`_empty` need."""
        raise NotImplementedError

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
        raise NotImplementedError

    @classmethod
    def _empty(cls, name: str) -> str:
        """Make a database equal to the template again.

        :returns: its name, which may be another one now.
        :raises _Altered: when more than rows would have to change, or
            somebody is connected to it.
        """
        raise NotImplementedError

    @classmethod
    def _url(cls, name: str) -> str:
        return (
            sa.make_url(cls.administrator)
            .set(database=name)
            .update_query_dict({'connect_timeout': str(CONNECT_S)})
            .render_as_string(hide_password=False)
        )

    @classmethod
    def execute(
        cls, *statements: str, database: str | None = None
    ) -> list[sa.Row[ty.Any]]:
        """Do something as an administrator.

        :param database: where; the administrator's own if None.
        :returns: what the last statement gives, if it gives rows.
        """
        with cls._connected(database) as connection:
            for statement in statements:
                result = connection.exec_driver_sql(statement)
            return list(result) if result.returns_rows else []

    @classmethod
    @contextlib.contextmanager
    def _connected(cls, database: str | None) -> ty.Iterator[sa.Connection]:
        url = sa.make_url(cls.administrator)
        engine = sa.create_engine(
            url if database is None else url.set(database=database),
            isolation_level='AUTOCOMMIT',
            connect_args={'connect_timeout': CONNECT_S},
        )
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


def _new_name() -> str:
    return 'vsched_test_' + uuid.uuid4().hex


#: The rows of one table, as values of the driver.
_Rows = ty.Sequence[tuple[ty.Any, ...]]


def _filled(connection: sa.Connection, tables: ty.Sequence[str]) -> list[str]:
    """Which tables have rows, by one statement."""
    return [
        name
        for (name,) in connection.exec_driver_sql(
            ' UNION ALL '.join(
                "(SELECT '%s' FROM %s LIMIT 1)" % (one, one) for one in tables
            )
        ).all()
    ]


def _read(
    connection: sa.Connection, tables: ty.Sequence[str]
) -> dict[str, _Rows]:
    """All rows of tables that have any, by table."""
    return {
        name: [
            tuple(row)
            for row in connection.exec_driver_sql('SELECT * FROM ' + name)
        ]
        for name in _filled(connection, tables)
    }


def _restore(
    connection: sa.Connection,
    tables: ty.Sequence[str],
    rows: ty.Mapping[str, _Rows],
) -> None:
    """Replace all rows of all tables, in one transaction."""
    filled = _filled(connection, tables)
    connection.exec_driver_sql('BEGIN')
    for name in filled:
        connection.exec_driver_sql('DELETE FROM ' + name)
    for name, kept in rows.items():
        for row in kept:
            connection.exec_driver_sql(
                'INSERT INTO %s VALUES (%s)'
                % (name, ', '.join(['%s'] * len(row))),
                row,
            )
    connection.exec_driver_sql('COMMIT')


class PostgreSQL(_Server):
    """A database on a PostgreSQL server."""

    name = 'postgresql'
    administrator = POSTGRESQL
    drop = 'DROP DATABASE IF EXISTS %s WITH (FORCE)'
    #: Deleted rows take space until a vacuum; more of it is not kept.
    _KEPT_BYTES = 8 << 20
    _schema: ty.ClassVar[_Rows] = ()
    _rows: ty.ClassVar[ty.Mapping[str, _Rows]] = {}
    _sequences: ty.ClassVar[_Rows] = ()

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
            cls._rows = _read(connection, cls._tables())
            cls._sequences = [
                tuple(row)
                for row in connection.exec_driver_sql(
                    'SELECT sequencename, coalesce(last_value, start_value),'
                    ' last_value IS NOT NULL FROM pg_sequences'
                )
            ]

    @classmethod
    def _schema_of(cls, connection: sa.Connection) -> _Rows:
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
                raise _Altered
            connection.exec_driver_sql(
                'SET session_replication_role = replica'
            )
            _restore(connection, cls._tables(), cls._rows)
            for sequence in cls._sequences:
                connection.exec_driver_sql(
                    'SELECT setval(%s::regclass, %s, %s)', sequence
                )
        # Whoever has the old name cannot reach it any more.
        fresh = _new_name()
        cls.execute(
            'SET synchronous_commit = off',
            'ALTER DATABASE %s RENAME TO %s' % (name, fresh),
        )
        return fresh


class MariaDB(_Server):
    """A database on a MariaDB server."""

    name = 'mariadb'
    administrator = _without_tls(MARIADB)
    drop = 'DROP DATABASE IF EXISTS %s'
    #: By table: what makes it, with the next value of its sequence.
    _creates: ty.ClassVar[ty.Mapping[str, str]] = {}
    _rows: ty.ClassVar[ty.Mapping[str, _Rows]] = {}

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
            _restore(connection, list(cls._creates), cls._rows)

    @classmethod
    def _describe(cls, template: str) -> None:
        with cls._connected(template) as connection:
            cls._creates = cls._creates_of(connection)
            cls._rows = _read(connection, list(cls._creates))

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
                raise _Altered
            connection.exec_driver_sql('SET foreign_key_checks = 0')
            _restore(connection, list(creates), cls._rows)
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
