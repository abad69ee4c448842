# SPDX-License-Identifier: Apache-2.0

"""Locks and statements that take too long, on real servers.

Every wait here ends by the service's own time-outs: a service without them
makes these tests hang, not fail by a clock.
"""

import contextlib
import threading

import sqlalchemy as sa

from vsched_api.db import errors as db_errors
from vsched_api.db import session
from vsched_api.operations import hosts
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import errors

STUCK, OTHER = 'node1', 'node2'


def store(agent, *uuids):
    """Send a full report until it is stored, as an agent does.

    With short time-outs, a machine that stands still refuses it as well.
    """
    while True:
        try:
            return agent.first(*uuids)
        except db_errors.DatabaseUnavailable:
            continue


def answered(read, *arguments):
    """Read until there is an answer, as clients do."""
    while True:
        try:
            return read(*arguments)
        except db_errors.DatabaseUnavailable:
            continue


class Timeouts:
    """To be mixed into a test case with a database."""

    #: A statement that takes longer than any test.
    sleep: str

    def setUp(self):
        super().setUp()
        self.set_timeouts(
            lock_timeout_s=3.0,
            # Longer than a machine stands still.
            statement_timeout_s=10.0,
            idle_transaction_timeout_s=15.0,
            maintenance_timeout_s=600.0,
        )

    def set_timeouts(self, **options):
        """Set options of what connects to the database from now on."""
        for name, seconds in options.items():
            self.conf.set_override(name, seconds, 'database')

    @contextlib.contextmanager
    def holding(self, statement):
        """Another session holds what a statement locks."""
        engine = sa.create_engine(self.conf.database.connection)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(statement)
                yield
                connection.rollback()
        finally:
            engine.dispose()

    def held_host(self, name=STUCK):
        """Another session holds the row of a host."""
        return self.holding(
            "UPDATE hosts SET last_batch = last_batch WHERE name = '%s'" % name
        )

    def samples(self):
        rows = answered(usage.page, self.database, 100)
        return {one.host for one in rows}

    def test_a_locked_host_keeps_nobody_waiting(self):
        (one,) = base.uuids(1)
        collector = self.collector()
        stuck = base.Agent(collector, STUCK)
        other = base.Agent(collector, OTHER)
        for agent in (stuck, other):
            store(agent, one)
        with self.held_host():
            problems = []

            def send():
                try:
                    stuck.send(listed=False, usage=(base.sample(one),))
                except db_errors.DatabaseUnavailable as problem:
                    problems.append(problem)

            waiting = threading.Thread(target=send)
            waiting.start()
            # Samples, and a full report, which takes counters.
            other.send(listed=False, usage=(base.sample(one),))
            other.first(one)
            waiting.join()
            self.assertIn('too busy', problems[0].detail)
            self.assertRaises(db_errors.DatabaseUnavailable, stuck.first, one)
            # What waits for the host holds no counter.
            other.first(one)
            self.assertEqual({OTHER}, self.samples())

    def test_batches_that_share_a_transaction(self):
        (one,) = base.uuids(1)
        # They wait for each other as well, and not all of them go on when a
        # machine that stood still does.
        self.set_timeouts(lock_timeout_s=8.0, statement_timeout_s=20.0)
        collector = self.collector()
        agents = [
            base.Agent(collector, 'node%d' % number) for number in range(1, 9)
        ]
        for agent in agents:
            store(agent, one)
        with self.held_host():
            outcomes = {}

            def send(agent):
                for _ in range(3):
                    try:
                        agent.send(listed=False, usage=(base.sample(one),))
                        outcomes[agent.host] = 'stored'
                    except db_errors.DatabaseUnavailable:
                        outcomes[agent.host] = 'busy'

            threads = [
                threading.Thread(target=send, args=(agent,))
                for agent in agents
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(
            {
                'node1': 'busy',
                **{'node%d' % number: 'stored' for number in range(2, 9)},
            },
            outcomes,
        )

    def test_requests_answer_503(self):
        (one,) = base.uuids(1)
        store(self.agent(STUCK), one)
        http = self.client()
        with self.held_host():
            answer = http.patch(
                '/v1/reservations/' + one, json={'runtime_us': 6_000}
            )
        self.assertEqual(503, answer.status_code)
        self.assertIn('Retry-After', answer.headers)
        self.assertEqual(
            errors.Code.DATABASE_UNAVAILABLE, answer.json['errors'][0]['code']
        )

    def test_a_long_statement_ends(self):
        problem = self.assertRaises(
            db_errors.DatabaseUnavailable,
            self.database.read,
            lambda work: (
                work.connection().exec_driver_sql(self.sleep).fetchall()
            ),
        )
        self.assertIn('too busy', problem.detail)
        # The connection, or a new one, serves the next.
        self.assertEqual(
            [], answered(hosts.page, self.database, 1, None, 0, 1)
        )

    def test_maintenance_has_longer(self):
        database = session.Database(self.conf, session.Purpose.MAINTENANCE)
        self.addCleanup(database.dispose)
        # Longer than any statement of others may; the servers' time-outs are
        # read, for a shorter one would end it.
        database.read(
            lambda work: (
                work.connection()
                .exec_driver_sql(self.sleep.replace('3600', '10.5'))
                .fetchall()
            )
        )
        self.assertEqual(0, rollups.fold(database, 10))


class TestTimeoutsOnPostgreSQL(Timeouts, base.TestCase):
    """PostgreSQL's."""

    kind = databases.PostgreSQL
    sleep = 'SELECT pg_sleep(3600)'

    def test_a_hung_transaction_loses_its_locks(self):
        (one,) = base.uuids(1)
        agent = self.agent(STUCK)
        store(agent, one)
        released = threading.Event()
        hung = threading.Event()

        def hang():
            def work(transaction):
                transaction.execute(
                    sa.text('UPDATE hosts SET last_batch = last_batch')
                )
                hung.set()
                released.wait()

            with contextlib.suppress(Exception):
                self.database.write(work)

        thread = threading.Thread(target=hang)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(released.set)
        hung.wait()
        store(agent, one)


class TestTimeoutsOnMariaDB(Timeouts, base.TestCase):
    """MariaDB's."""

    kind = databases.MariaDB
    sleep = 'SELECT SLEEP(3600)'


class TestTimeoutsOnSQLite(base.TestCase):
    """SQLite's: a file has one lock for all that write."""

    def setUp(self):
        super().setUp()
        self.conf.set_override('lock_timeout_s', 2.0, 'database')
        self.conf.set_override('statement_timeout_s', 2.0, 'database')

    def test_a_locked_file(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        store(agent, one)
        engine = sa.create_engine(self.conf.database.connection)
        self.addCleanup(engine.dispose)
        with engine.connect() as connection:
            connection.exec_driver_sql('BEGIN IMMEDIATE')
            problem = self.assertRaises(
                db_errors.DatabaseUnavailable, agent.first, one
            )
            self.assertIn('too busy', problem.detail)
            connection.exec_driver_sql('ROLLBACK')
        store(agent, one)

    def test_a_long_statement_ends(self):
        problem = self.assertRaises(
            db_errors.DatabaseUnavailable,
            self.database.read,
            lambda work: (
                work.connection()
                .exec_driver_sql(
                    'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 '
                    'FROM n) SELECT count(*) FROM n'
                )
                .fetchall()
            ),
        )
        self.assertIn('too busy', problem.detail)
        self.assertEqual(
            [], answered(hosts.page, self.database, 1, None, 0, 1)
        )
