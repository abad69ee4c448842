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

"""A database of its own for a test, on each of the three kinds."""

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
    'postgresql+psycopg2://postgres@127.0.0.1:5432/postgres')
MARIADB = os.environ.get(
    'VSCHED_TEST_MARIADB_URL', 'mysql+pymysql://root@127.0.0.1:3306/')


def configuration(url: str, *args: str) -> cfg.ConfigOpts:
    """Options of a service that uses that database, without keystone."""
    conf = cfg.ConfigOpts()
    vsched_api.conf.register_opts(conf)
    conf(args=list(args), project='vsched-test', default_config_files=[],
         default_config_dirs=[])
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
                        'PRAGMA journal_mode=DELETE').fetchall()
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
    """A database on a server."""

    name: ty.ClassVar[str]
    administrator: ty.ClassVar[str]
    create: ty.ClassVar[str] = 'CREATE DATABASE %s'
    drop: ty.ClassVar[str]

    @classmethod
    def make(cls, test: unittest.TestCase, migrated: bool = True) -> str:
        """The URL of a new database, which goes with the test."""
        name = 'vsched_test_' + uuid.uuid4().hex
        try:
            cls.execute(cls.create % name)
        except sa.exc.OperationalError as error:
            requirements.require(test, cls.name, str(error.orig))
        test.addCleanup(cls.execute, cls.drop % name)
        url = sa.make_url(cls.administrator).set(
            database=name).render_as_string(hide_password=False)
        if migrated:
            migration.sync(configuration(url))
        return url

    @classmethod
    def execute(cls, statement: str) -> None:
        """Do something as an administrator."""
        engine = sa.create_engine(
            cls.administrator, isolation_level='AUTOCOMMIT',
            connect_args={'connect_timeout': 5})
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
        finally:
            engine.dispose()


class PostgreSQL(_Server):
    """A database on a PostgreSQL server."""

    name = 'postgresql'
    administrator = POSTGRESQL
    drop = 'DROP DATABASE %s WITH (FORCE)'


class MariaDB(_Server):
    """A database on a MariaDB server."""

    name = 'mariadb'
    administrator = MARIADB
    drop = 'DROP DATABASE %s'


def write(test: unittest.TestCase, text: str) -> str:
    """The path of a file with that text, which goes with the test."""
    folder = tempfile.mkdtemp(prefix='vsched-test-')
    test.addCleanup(shutil.rmtree, folder)
    path = os.path.join(folder, 'vsched.conf')
    with open(path, 'w') as file:
        file.write(text)
    return path
