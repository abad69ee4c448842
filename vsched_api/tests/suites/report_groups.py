# SPDX-License-Identifier: Apache-2.0

"""Reports with more than samples share transactions: on every database."""

from concurrent import futures
import dataclasses
import threading
import time
from unittest import mock

import sqlalchemy as sa

from vsched_api.db import errors as db_errors
from vsched_api.db.queries import hosts as host_queries
from vsched_api.db.queries import snapshot as snapshot_queries
from vsched_api.db.queries import usage as usage_queries
from vsched_api.operations import events
from vsched_api.operations import gathering
from vsched_api.operations import hosts
from vsched_api.operations import inspection
from vsched_api.operations import overrides
from vsched_api.operations import report_groups
from vsched_api.operations import reports
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_api.tests.suites import reservations as suite
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages

HOSTS = 20
#: Only a thread that hangs takes as long.
_LIMIT_S = 60


def _await(condition):
    ends_s = time.monotonic() + _LIMIT_S
    while not condition():
        if time.monotonic() > ends_s:
            raise AssertionError('it did not happen')
        time.sleep(0.01)


class Groups:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def rows(self):
        return sorted(
            self.database.read(snapshot_queries.present),
            key=lambda row: row.name,
        )

    def test_all_agents_start_at_once(self):
        collectors = [self.collector() for _ in range(2)]
        agents = [
            base.Agent(collectors[number % 2], 'node%02d' % number)
            for number in range(HOSTS)
        ]
        with futures.ThreadPoolExecutor(HOSTS) as pool:
            replies = list(
                pool.map(lambda one: one.first(*base.uuids(3)), agents)
            )
        self.assertEqual(
            [collector_replies.ReportReply(False, 0)] * HOSTS, replies
        )
        rows = self.rows()
        self.assertEqual([one.host for one in agents], [r.name for r in rows])
        self.assertEqual(HOSTS, len({row.version for row in rows}))
        for agent in agents:
            found = hosts.get(self.database, agent.host, self.now, 30)
            self.assertEqual((1, 3), (found.last_batch, found.instances))

    def store(self, *told):
        """Store reports in one transaction.

        :returns: their replies, and how many statements it took.
        """
        entries = [
            gathering.Entry(inspection.rows(one, self.now), self.now)
            for one in told
        ]
        statements = []

        def tell(connection, cursor, statement, *_):
            statements.append(statement)

        def work(session):
            sa.event.listen(session.get_bind(), 'before_cursor_execute', tell)
            return report_groups.store_many(
                session, entries, report_groups.DEFAULT_LIMITS
            )

        # Opens the connection.
        self.database.read(snapshot_queries.present)
        try:
            replies = self.database.write(work)
        finally:
            sa.event.remove(
                self.database._engines[0], 'before_cursor_execute', tell
            )
        return replies, statements

    def first(self, host, *uuids, **parts):
        return messages.Report(
            host,
            1,
            base.NOW,
            host_info=base.host_info(),
            instances=tuple(
                messages.InstanceInfo(one, 'vm', 1) for one in uuids
            ),
            usage=tuple(base.sample(one) for one in uuids),
            host_usage=(base.host_usage(),),
            **parts,
        )

    def test_new_hosts_share_statements(self):
        _, alone = self.store(self.first('node0', *base.uuids(3)))
        replies, together = self.store(
            *(
                self.first('node%d' % number, *base.uuids(3))
                for number in range(1, 9)
            )
        )
        self.assertEqual(
            [collector_replies.ReportReply(False, 0)] * 8, replies
        )
        # Not many times as many. Databases differ in how they tell the
        # number of an added row.
        self.assertLess(len(together), len(alone) + 8, together)

    def test_each_host_gets_what_is_its_own(self):
        one, two, three, four = base.uuids(4)
        self.agent('old').first(one, two)
        announcer = suite.Announcer()
        changed = reservations.change(
            self.database,
            announcer,
            overrides.Change(two, self.now),
            {'runtime_us': 6_000},
        )
        event = base.event()
        replies, _ = self.store(
            self.first('node1', one, reservations=(base.reservation(one),)),
            self.first('node2', two),
            # It names a batch that is not the last one.
            dataclasses.replace(
                self.first('node3', three), epoch='e' * 32, after=5
            ),
            self.first('node4', four, events=(event,)),
            messages.Report('old', 2, base.NOW, events=(event,)),
        )
        self.assertEqual(
            [
                ('current', 0),
                ('current', True),
                ('unopened', 0),
                ('current', 0),
                ('current', False),
            ],
            [
                (
                    reply.epoch_state,
                    reply.overrides_generation
                    and reply.overrides_generation > changed.generation,
                )
                for reply in replies
            ],
        )
        found = {
            row.name: row.instances
            for row in hosts.page(self.database, 10, None, self.now, 30)
        }
        self.assertEqual(
            {'node1': 1, 'node2': 1, 'node3': 0, 'node4': 1, 'old': 2}, found
        )
        self.assertEqual('applied', reservations.get(self.database, one).state)
        # One that two hosts tell of is stored once, as the first one's.
        stored = [
            row.host
            for row in events.page(self.database, 100)
            if row.uuid == event.uuid
        ]
        self.assertEqual(['node4'], stored)

    def test_those_that_wait_share_a_transaction(self):
        collector = self.collector()
        real, sizes = report_groups.store_many, []
        begun, go_on = threading.Event(), threading.Event()

        def store(session, entries, limits):
            if not sizes:
                begun.set()
                go_on.wait(_LIMIT_S)
            sizes.append(len(entries))
            return real(session, entries, limits)

        storage = reports.Storage(self.database, now=collector._now)
        storage._others = queue = gathering.Gathering(
            self.database,
            lambda session, entries: store(
                session, entries, report_groups.Limits()
            ),
            3,
        )
        collector.on_report = storage.store
        with futures.ThreadPoolExecutor(6) as pool:
            sent = [pool.submit(base.Agent(collector, 'node0').first)]
            self.assertTrue(begun.wait(_LIMIT_S))
            sent += [
                pool.submit(base.Agent(collector, 'node%d' % number).first)
                for number in range(1, 6)
            ]
            _await(lambda: len(queue._queue) == 5)
            go_on.set()
            replies = [one.result(_LIMIT_S) for one in sent]
        self.assertEqual(
            [collector_replies.ReportReply(False, 0)] * 6, replies
        )
        self.assertEqual([1, 3, 2], sizes)

    def _send(self, problem):
        """Send a report of eight hosts, the last of which has a problem.

        :returns: replies, or what was raised instead.
        """
        collector = self.collector()
        (one,) = base.uuids(1)
        real = usage_queries.add

        def add(session, batches):
            if any(
                sample.guest_us == 7
                for samples in batches.values()
                for sample in samples
            ):
                raise problem
            real(session, batches)

        def send(number):
            agent = base.Agent(collector, 'node%d' % number)
            try:
                return agent.first(
                    one, usage=[base.sample(one, guest_us=number)]
                )
            except KeyError as raised:
                return raised

        with (
            mock.patch.object(
                usage_queries, 'add', autospec=True, side_effect=add
            ),
            futures.ThreadPoolExecutor(8) as pool,
        ):
            found = list(pool.map(send, range(8)))
        self.assertEqual(
            ['node%d' % number for number in range(7)],
            [row.name for row in self.rows()],
        )
        return found

    def test_one_that_cannot_be_stored(self):
        replies = self._send(db_errors.UnstorableValue('x'))
        self.assertEqual(
            [number == 7 for number in range(8)],
            [reply.resync for reply in replies],
        )

    def test_a_defect_that_one_meets(self):
        defect = KeyError('x')
        self.assertEqual(
            [collector_replies.ReportReply(False, 0)] * 7 + [defect],
            self._send(defect),
        )


class BusyHosts:
    """Where transactions lock rows, and not the whole database."""

    def test_others_do_not_wait_for_a_busy_host(self):
        collector = self.collector()
        agents = [base.Agent(collector, 'node%d' % one) for one in range(2)]
        for agent in agents:
            agent.first()
        locked, go_on = threading.Event(), threading.Event()

        def hold(session):
            host_queries.lock(session, 'node0')
            locked.set()
            go_on.wait(_LIMIT_S)

        with futures.ThreadPoolExecutor(2) as pool:
            held = pool.submit(self.database.write, hold)
            self.assertTrue(locked.wait(_LIMIT_S))
            try:
                waits = pool.submit(agents[0].first)
                for _ in range(3):
                    self.assertEqual(
                        collector_replies.ReportReply(False, 0),
                        agents[1].first(),
                    )
                self.assertFalse(waits.done())
            finally:
                go_on.set()
            held.result(_LIMIT_S)
            self.assertEqual(
                collector_replies.ReportReply(False, 0), waits.result(_LIMIT_S)
            )
