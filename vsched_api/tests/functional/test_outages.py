# SPDX-License-Identifier: Apache-2.0

"""A database that goes away, and comes back."""

import sqlalchemy as sa

from vsched_api.db import errors as db_errors
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_api.tests import doors
from vsched_lib.contract import errors
from vsched_lib.contract import messages


class Outages:
    """To be mixed into a test case with a server."""

    def setUp(self):
        super().setUp()
        url = sa.make_url(self.conf.database.connection)
        self.door = doors.Door((url.host, url.port))
        self.addCleanup(self.door.shut)
        self.conf.set_override(
            'connection',
            url.set(host='127.0.0.1', port=self.door.port).render_as_string(
                hide_password=False
            ),
            'database',
        )

    def test_requests_fail_clearly_and_then_succeed(self):
        (one,) = base.uuids(1)
        self.door.open()
        self.agent().first(one)
        http = self.client()
        path = '/v1/reservations/' + one
        self.assertEqual(200, http.get(path).status_code)
        for _ in range(2):
            self.door.shut()
            for answer in (
                http.get(path),
                http.get('/readiness'),
                http.patch(path, json={'runtime_us': 6_000}),
            ):
                self.assertEqual(503, answer.status_code)
                self.assertEqual('5', answer.headers['Retry-After'])
                self.assertEqual(
                    errors.Code.DATABASE_UNAVAILABLE,
                    answer.json['errors'][0]['code'],
                )
            # What needs no database is served all the time.
            self.assertEqual(200, http.get('/').status_code)
            self.door.open()
            # The first request after it is back already succeeds.
            self.assertEqual(200, http.get(path).status_code)
            self.assertEqual(
                202, http.patch(path, json={'runtime_us': 6_000}).status_code
            )

    def test_services_start_before_their_database(self):
        http, agent = self.client(), self.agent()
        self.assertEqual(503, http.get('/v1/hosts').status_code)
        self.assertRaises(db_errors.DatabaseUnavailable, agent.first)
        self.door.open()
        self.assertEqual(200, http.get('/v1/hosts').status_code)
        self.assertFalse(agent.first().duplicate)

    def test_a_batch_is_stored_once_however_often_it_was_sent(self):
        (one,) = base.uuids(1)
        collector = self.collector()
        self.door.open()
        for number in range(1, 13):
            report = messages.Report(
                base.HOST,
                number,
                base.NOW + number,
                usage=(base.sample(one, base.NOW + number),),
            )
            if number % 3 == 0:
                self.door.shut()
                for _ in range(2):
                    self.assertRaises(
                        db_errors.DatabaseUnavailable,
                        collector.on_report,
                        report,
                    )
                self.door.open()
            self.assertFalse(collector.on_report(report).duplicate)
            if number % 4 == 0:
                # Its answer was lost.
                self.assertTrue(collector.on_report(report).duplicate)
        self.assertEqual(
            [base.NOW + number for number in range(1, 13)],
            [sample.at for sample in usage.page(self.database, 100)],
        )

    def test_a_lost_commit_is_all_or_nothing(self):
        (one,) = base.uuids(1)
        collector = self.collector()
        self.door.open()
        collector.on_report(messages.Report(base.HOST, 1, base.NOW))
        report = messages.Report(
            base.HOST, 2, base.NOW, usage=(base.sample(one),) * 50
        )

        # The connection breaks between the inserts and the commit.
        def cut(connection):
            self.door.shut()

        engine = collector.database._engines[0]
        sa.event.listen(engine, 'commit', cut)
        self.assertRaises(
            db_errors.DatabaseUnavailable, collector.on_report, report
        )
        sa.event.remove(engine, 'commit', cut)
        self.door.open()
        self.assertEqual([], usage.page(self.database, 100))
        self.assertFalse(collector.on_report(report).duplicate)
        self.assertEqual(50, len(usage.page(self.database, 100)))


class TestOutagesOfPostgreSQL(Outages, base.TestCase):
    """PostgreSQL goes away."""

    kind = databases.PostgreSQL


class TestOutagesOfMariaDB(Outages, base.TestCase):
    """MariaDB goes away."""

    kind = databases.MariaDB
