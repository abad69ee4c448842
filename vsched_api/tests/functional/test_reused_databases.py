# SPDX-License-Identifier: Apache-2.0

"""A test finds nothing of another test in its database."""

import time
from unittest import mock

from oslotest import base
import sqlalchemy as sa

from vsched_api.tests import base as api_base
from vsched_api.tests import databases

_SAMPLE = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'


class ReusedDatabases:
    """The tests, on one kind of server."""

    def setUp(self):
        super().setUp()
        # Databases that other tests of this process left stay theirs.
        left, self.kind._left = self.kind._left, []
        self.addCleanup(left.extend, self.kind._left)
        self.addCleanup(setattr, self.kind, '_left', left)

    def begin(self):
        case = type(
            'Case',
            (api_base.TestCase,),
            {'kind': self.kind, 'runTest': lambda self: None},
        )()
        case.setUp()
        self.addCleanup(case.doCleanups)
        return case

    def fill(self, case):
        agent = case.agent()
        agent.first(_SAMPLE, usage=(api_base.sample(_SAMPLE),))
        agent.send(_SAMPLE, events=(api_base.event(),))

    def content(self, case):
        return databases.content(case.conf.database.connection)

    def ids(self, case):
        """The keys of the rows that a test makes."""
        self.fill(case)
        engine = sa.create_engine(
            case.conf.database.connection, poolclass=sa.NullPool
        )
        with engine.connect() as connection:
            return [
                connection.exec_driver_sql(
                    'SELECT id FROM %s ORDER BY id' % table
                )
                .scalars()
                .all()
                for table in ('hosts', 'instances')
            ]

    def leave(self, case):
        case.doCleanups()
        return self.kind._left[-1]

    def await_nobody(self, name):
        """Wait until a server has noticed that connections were closed."""
        while self.kind.execute(self.sessions % name)[0][0]:
            time.sleep(0.02)

    def test_it_is_as_a_new_one(self):
        first = self.begin()
        before = self.content(first)
        ids = self.ids(first)
        self.assertNotEqual(before, self.content(first))
        self.await_nobody(self.leave(first))
        with mock.patch.object(
            self.kind, '_copy', side_effect=AssertionError, autospec=True
        ):
            second = self.begin()
        self.assertEqual([], self.kind._left)
        self.assertEqual(before, self.content(second))
        self.assertEqual(ids, self.ids(second))

    def test_two_tests_at_once_have_two(self):
        one, other = self.begin(), self.begin()
        before = self.content(other)
        self.fill(one)
        self.assertEqual(before, self.content(other))

    def change(self, statement):
        """Leave a database with another schema; returns its name."""
        case = self.begin()
        engine = sa.create_engine(
            case.conf.database.connection, poolclass=sa.NullPool
        )
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
        return self.leave(case)

    def schema(self, case):
        engine = sa.create_engine(
            case.conf.database.connection, poolclass=sa.NullPool
        )
        inspected = sa.inspect(engine)
        return {
            table: (
                [one['name'] for one in inspected.get_columns(table)],
                sorted(one['name'] for one in inspected.get_indexes(table)),
            )
            for table in inspected.get_table_names()
        }

    def check_gone(self, name):
        before = self.schema(self.begin())
        case = self.begin()
        self.assertEqual(before, self.schema(case))
        self.assertNotIn(name, case.conf.database.connection)
        self.assertRaises(
            sa.exc.OperationalError,
            self.kind.execute,
            'SELECT 1',
            database=name,
        )

    def test_one_whose_schema_was_changed_is_dropped(self):
        for statement in (
            'ALTER TABLE hosts ADD COLUMN another INTEGER',
            'CREATE TABLE another (id INTEGER)',
            'CREATE INDEX another ON hosts (id)',
            'DROP TABLE alembic_version',
        ):
            self.check_gone(self.change(statement))

    def test_one_that_is_in_use_is_dropped(self):
        case = self.begin()
        name = self.leave(case)
        with self.kind._connected(name) as connection:
            connection.exec_driver_sql('SELECT 1').all()
            self.check_gone(name)
            connection.invalidate()

    def test_one_that_was_dropped_is_not_missed(self):
        case = self.begin()
        name = self.leave(case)
        self.kind.execute(self.kind.drop % name)
        self.check_gone(name)


class TestReusedDatabasesOnPostgreSQL(ReusedDatabases, base.BaseTestCase):
    """The tests on PostgreSQL."""

    kind = databases.PostgreSQL
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = '%s'"


class TestReusedDatabasesOnMariaDB(ReusedDatabases, base.BaseTestCase):
    """The tests on MariaDB."""

    kind = databases.MariaDB
    sessions = (
        "SELECT count(*) FROM information_schema.processlist WHERE db = '%s'"
    )
