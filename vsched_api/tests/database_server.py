# SPDX-License-Identifier: Apache-2.0

"""Databases of tests on a server: made, emptied and dropped."""

import atexit
import contextlib
import threading
import typing as ty
import unittest
import uuid

import sqlalchemy as sa

from vsched_api.db import migration
from vsched_api.tests import database_options
from vsched_lib.tests import requirements

#: How long a server may take to accept a connection, in seconds: other tests
#: compute meanwhile. A service gives up sooner, unless its URL says this.
CONNECT_S = 60


def without_tls(text: str) -> str:
    # PyMySQL tries TLS by default, and reads all certificates of this host
    # for every connection.
    url = sa.make_url(text)
    if url.drivername == 'mysql+pymysql' and not any(
        key.startswith('ssl') for key in url.query
    ):
        url = url.update_query_dict({'ssl_disabled': 'true'})
    return url.render_as_string(hide_password=False)


class Altered(Exception):
    """A database is not what the template is, its rows apart."""


class Server:
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
                name = new_name()
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
            except (Altered, sa.exc.DBAPIError):
                # A test may have dropped it.
                with contextlib.suppress(sa.exc.DBAPIError):
                    cls.execute(cls.drop % left)
        name = new_name()
        cls._copy(template, name)
        return name

    @classmethod
    def _migrated(cls) -> str:
        """The name of a database with tables and nothing else."""
        with cls._lock:
            if cls._template is None:
                name = new_name()
                cls._create(name)
                atexit.register(cls._drop_all, name)
                migration.sync(database_options.configuration(cls._url(name)))
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
        :raises Altered: when more than rows would have to change, or
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


def new_name() -> str:
    return 'vsched_test_' + uuid.uuid4().hex


#: The rows of one table, as values of the driver.
Rows = ty.Sequence[tuple[ty.Any, ...]]


def filled(connection: sa.Connection, tables: ty.Sequence[str]) -> list[str]:
    """Which tables have rows, by one statement."""
    return [
        name
        for (name,) in connection.exec_driver_sql(
            ' UNION ALL '.join(
                "(SELECT '%s' FROM %s LIMIT 1)" % (one, one) for one in tables
            )
        ).all()
    ]


def read(
    connection: sa.Connection, tables: ty.Sequence[str]
) -> dict[str, Rows]:
    """All rows of tables that have any, by table."""
    return {
        name: [
            tuple(row)
            for row in connection.exec_driver_sql('SELECT * FROM ' + name)
        ]
        for name in filled(connection, tables)
    }


def restore(
    connection: sa.Connection,
    tables: ty.Sequence[str],
    rows: ty.Mapping[str, Rows],
) -> None:
    """Replace all rows of all tables, in one transaction."""
    emptied = filled(connection, tables)
    connection.exec_driver_sql('BEGIN')
    for name in emptied:
        connection.exec_driver_sql('DELETE FROM ' + name)
    for name, kept in rows.items():
        for row in kept:
            connection.exec_driver_sql(
                'INSERT INTO %s VALUES (%s)'
                % (name, ', '.join(['%s'] * len(row))),
                row,
            )
    connection.exec_driver_sql('COMMIT')
