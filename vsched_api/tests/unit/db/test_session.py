# SPDX-License-Identifier: Apache-2.0

"""Transactions: what is done again, and what a failure becomes."""

from unittest import mock

from oslo_db import exception as db_exc
from oslotest import base as oslotest_base
import sqlalchemy as sa

from vsched_api.db import errors
from vsched_api.db import models
from vsched_api.db import session
from vsched_api.tests import base
from vsched_api.tests import database_options


class TestDatabase(base.TestCase):
    """On a file."""

    def count(self):
        return self.database.read(
            lambda work: work.execute(
                sa.select(sa.func.count()).select_from(models.Host)
            ).scalar_one()
        )

    @staticmethod
    def add(work, name=base.HOST):
        work.add(models.Host(name=name, last_batch=0, overrides_generation=0))
        work.flush()

    def test_all_or_nothing(self):
        def work(transaction):
            self.add(transaction)
            raise KeyError('x')

        self.assertRaises(KeyError, self.database.write, work)
        self.assertEqual(0, self.count())
        self.database.write(self.add)
        self.assertEqual(1, self.count())

    def test_what_gave_way_is_done_again(self):
        for error in (
            db_exc.DBDeadlock(),
            db_exc.DBDuplicateEntry(),
            sa.exc.OperationalError('x', {}, Exception('database is locked')),
        ):
            tries = []

            def work(transaction, tries=tries, error=error):
                self.add(transaction, 'node%d' % id(error))
                tries.append(error)
                if len(tries) < 3:
                    raise error

            before = self.count()
            self.database.write(work)
            self.assertEqual(3, len(tries))
            self.assertEqual(before + 1, self.count())

    def test_failures_have_our_names(self):
        for error, kind in (
            (db_exc.DBConnectionError(), errors.DatabaseUnavailable),
            (db_exc.DBNonExistentTable('hosts'), errors.DatabaseUnavailable),
            (
                sa.exc.OperationalError('x', {}, Exception('gone')),
                errors.DatabaseUnavailable,
            ),
            (
                sa.exc.InterfaceError('x', {}, Exception('gone')),
                errors.DatabaseUnavailable,
            ),
            (sa.exc.TimeoutError(), errors.DatabaseUnavailable),
            (
                db_exc.DBError(
                    Exception("(1146, \"Table 'x.hosts' doesn't exist\")")
                ),
                errors.DatabaseUnavailable,
            ),
            (db_exc.DBDataError(), errors.UnstorableValue),
            (
                db_exc.DBError(OverflowError('too large')),
                errors.UnstorableValue,
            ),
            (db_exc.DBError(RuntimeError('x')), db_exc.DBError),
            (
                sa.exc.OperationalError(
                    'x', {}, Exception('table hosts already exists')
                ),
                errors.UnknownTables,
            ),
            (
                sa.exc.OperationalError(
                    'x already exists', {}, Exception('gone')
                ),
                errors.DatabaseUnavailable,
            ),
            (
                db_exc.DBError(Exception('relation "hosts" already exists')),
                errors.UnknownTables,
            ),
        ):

            def work(transaction, error=error):
                raise error

            self.assertRaises(kind, self.database.write, work)

    def test_a_row_that_is_there_is_no_table(self):
        duplicate = db_exc.DBDuplicateEntry(
            inner_exception=Exception('Key (name)=(node1) already exists.')
        )

        def work(transaction):
            raise duplicate

        with mock.patch.object(session, '_MAX_RETRIES', 0):
            self.assertRaises(
                db_exc.DBDuplicateEntry, self.database.write, work
            )

    def test_a_failure_quotes_no_statement(self):
        def work(transaction):
            raise sa.exc.OperationalError(
                'SELECT secret', {'a': 'secret'}, Exception('gone')
            )

        error = self.assertRaises(
            errors.DatabaseUnavailable, self.database.read, work
        )
        self.assertNotIn('secret', error.detail)

    def test_a_value_that_does_not_fit(self):
        self.assertRaises(
            errors.UnstorableValue,
            self.database.write,
            lambda work: work.execute(
                sa.insert(models.Host),
                [
                    {
                        'name': 'x',
                        'last_batch': 2**70,
                        'overrides_generation': 0,
                    }
                ],
            ),
        )

    def test_sqlite_is_prepared(self):
        self.assertEqual(
            [1, 'wal', 1000 * self.conf.database.lock_timeout_s],
            self.database.read(
                lambda work: [
                    work.connection()
                    .exec_driver_sql('PRAGMA ' + name)
                    .scalar()
                    for name in (
                        'foreign_keys',
                        'journal_mode',
                        'busy_timeout',
                    )
                ]
            ),
        )

    def test_nothing_is_opened_before_it_is_needed(self):
        conf = database_options.configuration('sqlite:////nowhere/at/all')
        database = session.Database(conf)
        self.assertRaises(
            errors.DatabaseUnavailable,
            database.read,
            lambda work: work.execute(sa.select(models.Host)),
        )
        database.dispose()


class TestUrl(oslotest_base.BaseTestCase):
    """What is added to the operator's URL."""

    def test_defaults_of_the_driver(self):
        url = session.complete_url('mysql+pymysql://me:1234@db/vsched')
        self.assertEqual('utf8mb4', url.query['charset'])
        self.assertEqual('3', url.query['connect_timeout'])
        self.assertEqual('1234', url.password)
        url = session.complete_url('postgresql+psycopg2://db/vsched')
        self.assertEqual('3', url.query['connect_timeout'])

    def test_the_operator_wins(self):
        url = session.complete_url(
            'mysql+pymysql://db/vsched?connect_timeout=9&ssl_ca=x'
        )
        self.assertEqual(
            ('9', 'x'), (url.query['connect_timeout'], url.query['ssl_ca'])
        )

    def test_other_drivers_are_left_alone(self):
        for text in ('sqlite:////x', 'sqlite://'):
            self.assertEqual(sa.make_url(text), session.complete_url(text))
