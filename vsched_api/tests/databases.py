# SPDX-License-Identifier: Apache-2.0

"""A database of its own for a test, on each of the three kinds."""

import atexit
import os
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


class _Server:
    """A database on a server; its tables are made once in a process."""

    name: ty.ClassVar[str]
    administrator: ty.ClassVar[str]
    drop: ty.ClassVar[str] = 'DROP DATABASE %s'
    _template: ty.ClassVar[str | None] = None
    _lock = threading.Lock()

    @classmethod
    def make(cls, test: unittest.TestCase, migrated: bool = True) -> str:
        """The URL of a new database, which goes with the test."""
        name = _new_name()
        try:
            if migrated:
                cls._copy(cls._migrated(), name)
            else:
                cls.execute('CREATE DATABASE %s' % name)
        except sa.exc.OperationalError as error:
            requirements.require(test, cls.name, str(error.orig))
        test.addCleanup(cls.execute, cls.drop % name)
        return cls._url(name)

    @classmethod
    def _migrated(cls) -> str:
        """The name of a database with tables and nothing else."""
        with cls._lock:
            if cls._template is None:
                name = _new_name()
                cls.execute('CREATE DATABASE %s' % name)
                atexit.register(cls.execute, cls.drop % name)
                migration.sync(configuration(cls._url(name)))
                cls._template = name
            return cls._template

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
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
    def execute(cls, *statements: str) -> list[sa.Row[ty.Any]]:
        """Do something as an administrator.

        :returns: what the last statement gives, if it gives rows.
        """
        engine = sa.create_engine(
            cls.administrator,
            isolation_level='AUTOCOMMIT',
            connect_args={'connect_timeout': CONNECT_S},
        )
        try:
            with engine.connect() as connection:
                for statement in statements:
                    result = connection.exec_driver_sql(statement)
                return list(result) if result.returns_rows else []
        finally:
            engine.dispose()


def _new_name() -> str:
    return 'vsched_test_' + uuid.uuid4().hex


class PostgreSQL(_Server):
    """A database on a PostgreSQL server."""

    name = 'postgresql'
    administrator = POSTGRESQL
    drop = 'DROP DATABASE %s WITH (FORCE)'

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
        cls.execute('CREATE DATABASE %s TEMPLATE %s' % (name, template))


class MariaDB(_Server):
    """A database on a MariaDB server."""

    name = 'mariadb'
    administrator = MARIADB
    #: What makes the tables of the template, and its few rows.
    _statements: ty.ClassVar[list[str]] = []

    @classmethod
    def _copy(cls, template: str, name: str) -> None:
        with cls._lock:
            if not cls._statements:
                cls._statements = cls._describe(template)
        cls.execute(
            'CREATE DATABASE %s' % name,
            'USE %s' % name,
            'SET foreign_key_checks = 0',
            *cls._statements,
        )

    @classmethod
    def _describe(cls, template: str) -> list[str]:
        creates, inserts = [], []
        for (table,) in cls.execute('SHOW TABLES FROM %s' % template):
            (create,) = cls.execute(
                'SHOW CREATE TABLE %s.%s' % (template, table)
            )
            creates.append(create[1])
            inserts.append(
                'INSERT INTO %s SELECT * FROM %s.%s' % (table, template, table)
            )
        return creates + inserts


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
