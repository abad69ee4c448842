# SPDX-License-Identifier: Apache-2.0

"""What failures look like from outside."""

from unittest import mock

import sqlalchemy as sa

from vsched_api.db import errors as db_errors
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import errors


class TestErrors(base.TestCase):
    """No failure of ours tells more than it should."""

    def setUp(self):
        super().setUp()
        self.http = self.client()

    def failing(self, error):
        return mock.patch(
            'vsched_api.operations.hosts.page',
            autospec=True,
            side_effect=error,
        )

    def test_an_unexpected_failure_tells_nothing(self):
        with self.failing(RuntimeError('the password is 1234')):
            answer = self.http.get('/v1/hosts')
        self.assertEqual(500, answer.status_code)
        self.assertNotIn('1234', answer.text)
        (problem,) = answer.json['errors']
        self.assertEqual(
            (
                'Internal Server Error',
                errors.Code.INTERNAL,
                500,
                answer.headers['X-Openstack-Request-Id'],
            ),
            (
                problem['title'],
                problem['code'],
                problem['status'],
                problem['request_id'],
            ),
        )

    def test_a_value_the_database_does_not_take(self):
        with self.failing(db_errors.UnstorableValue('secret')):
            answer = self.http.get('/v1/hosts')
        self.assertEqual(400, answer.status_code)
        self.assertNotIn('secret', answer.text)

    def test_a_database_that_is_away(self):
        for path in (
            '/v1/hosts',
            '/readiness',
            '/metrics',
            '/v1/reservations',
        ):
            conf = database_options.configuration(
                'postgresql+psycopg2://me:1234@127.0.0.1:1/x'
            )
            self.conf = conf
            answer = self.client().get(path)
            self.assertEqual(503, answer.status_code)
            self.assertEqual('5', answer.headers['Retry-After'])
            (problem,) = answer.json['errors']
            self.assertEqual(errors.Code.DATABASE_UNAVAILABLE, problem['code'])
            self.assertIn('does not answer', problem['detail'])
            self.assertNotIn('1234', answer.text)
            self.assertNotIn('127.0.0.1', answer.text)

    def test_a_database_without_tables(self):
        url = databases.SQLite.make(self, migrated=False)
        self.conf.set_override('connection', url, 'database')
        answer = self.client().get('/readiness')
        self.assertEqual(503, answer.status_code)
        self.assertIn(
            'vsched-manage db sync', answer.json['errors'][0]['detail']
        )

    def test_a_database_nobody_named(self):
        self.conf.set_override('connection', None, 'database')
        answer = self.client().get('/readiness')
        self.assertEqual(503, answer.status_code)
        self.assertIn(
            '[database] connection', answer.json['errors'][0]['detail']
        )

    def test_a_table_that_lacks_a_column(self):
        engine = sa.create_engine(self.conf.database.connection)
        with engine.begin() as connection:
            connection.exec_driver_sql('ALTER TABLE hosts DROP COLUMN info')
        engine.dispose()
        answer = self.http.get('/v1/hosts')
        self.assertEqual(503, answer.status_code)
        self.assertIn(
            'vsched-manage db sync', answer.json['errors'][0]['detail']
        )
