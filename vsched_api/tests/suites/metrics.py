# SPDX-License-Identifier: Apache-2.0

"""What is read for metrics, on any database."""

import sqlalchemy as sa

from vsched_api.operations import announcements
from vsched_api.operations import jobs
from vsched_api.operations import metrics
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import messages

_DOWN_AFTER_S = 30.0
#: A full minute ends then.
_END = base.NOW


class Metrics:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.now = base.NOW + 5

    def fill(self, host, *instances, seconds=60, end=_END, **changes):
        """Report what instances and their host used in each second."""
        moments = [end - second for second in reversed(range(seconds))]
        agent = self.agent(host)
        agent.at = end
        agent.first(
            *instances,
            usage=tuple(
                base.sample(one, at, **changes)
                for one in instances
                for at in moments
            ),
            host_usage=tuple(base.host_usage(at) for at in moments),
        )
        return agent

    def fold(self):
        rollups.fold(self.database, 5_000)

    def read(self, max_instances=100):
        return metrics.read(
            self.database, self.now, _DOWN_AFTER_S, max_instances
        )

    def test_usage_of_the_newest_minute(self):
        one, two = base.uuids(2)
        agent = self.fill(
            'node1',
            one,
            two,
            guest_us=540_000,
            wait_us=30_000,
            direct_us=20_000,
            shared_us=10_000,
        )
        # An earlier minute, which comes later, as after an outage.
        agent.send(
            listed=False,
            usage=tuple(
                base.sample(one, _END - 60 - second) for second in range(60)
            ),
        )
        self.assertEqual([], list(self.read().instances))
        self.fold()
        found = self.read()
        self.assertEqual(
            [
                metrics.Usage(
                    'node1',
                    uuid,
                    60_000_000,
                    32_400_000,
                    1_800_000,
                    36_000_000,
                    32_400_000,
                    1_200_000,
                    600_000,
                )
                for uuid in (one, two)
            ],
            list(found.instances),
        )
        (host,) = found.hosts
        self.assertEqual(_END, host.used_at)
        self.assertEqual(60_000_000, host.time.interval_us)
        self.assertEqual(6_000_000, host.time.steal_us)
        self.assertEqual(0, host.unfolded)
        self.assertEqual(0, found.omitted)

    def test_what_nova_calls_an_instance(self):
        one, two = base.uuids(2)
        self.fill('node1', one, two)
        told = ('web-1', 'project-1', 'm1.small')
        # As while it migrates; each host's own row counts.
        self.fill('node2', one)
        agent = self.agent('node3')
        agent.at = _END
        agent.send(
            listed=False,
            host_info=base.host_info(),
            instances=(messages.InstanceInfo(two, 'vm', 1, None, *told),),
            usage=tuple(
                base.sample(two, _END - second) for second in range(60)
            ),
        )
        self.fold()
        self.assertEqual(
            [
                ('node1', one, None, None, None),
                ('node1', two, None, None, None),
                ('node2', one, None, None, None),
                ('node3', two, *told),
            ],
            sorted(
                (
                    found.host,
                    found.instance_uuid,
                    found.server_name,
                    found.project_id,
                    found.flavor_name,
                )
                for found in self.read().instances
            ),
        )

    def test_a_minute_that_has_just_begun_is_not_shown(self):
        (one,) = base.uuids(1)
        agent = self.fill('node1', one, guest_us=500_000)
        agent.at = self.now
        agent.send(
            listed=False,
            usage=tuple(
                base.sample(one, _END + second, guest_us=100_000)
                for second in range(1, 6)
            ),
        )
        self.fold()
        (found,) = self.read().instances
        self.assertEqual(30_000_000, found.guest_us)

    def test_old_usage_is_not_shown(self):
        self.fill('node1', *base.uuids(1))
        self.fold()
        self.now += metrics.NEWEST_S
        found = self.read()
        self.assertEqual([], list(found.instances))
        (host,) = found.hosts
        self.assertIsNone(host.used_at)
        self.assertIsNone(host.time)

    def test_the_bound_of_instances(self):
        for number in range(3):
            self.fill('node%d' % number, *base.uuids(2))
        self.fold()
        everything = self.read()
        self.assertEqual((6, 0), (len(everything.instances), 0))
        cut = self.read(4)
        self.assertEqual((4, 2), (len(cut.instances), cut.omitted))
        # The same ones each time, or series would come and go.
        self.assertEqual(everything.instances[:4], cut.instances)
        self.assertEqual(cut.instances, self.read(4).instances)
        none = self.read(0)
        self.assertEqual((0, 0), (len(none.instances), none.omitted))

    def test_batches_that_wait_to_be_folded(self):
        agent = self.fill('node1', *base.uuids(1))
        self.fill('node2')
        self.fold()
        for _ in range(3):
            agent.send(listed=False)
        self.assertEqual(
            {'node1': 3, 'node2': 0},
            {one.host.name: one.unfolded for one in self.read().hosts},
        )

    def test_events_of_the_last_hour(self):
        agent = self.fill('node1')
        agent.send(
            listed=False,
            events=tuple(
                base.event(self.now - age_s, code=code)
                for code, age_s in (
                    (errors.Code.DRIFT_REPAIRED, 10),
                    (errors.Code.DRIFT_REPAIRED, 3_500),
                    (errors.Code.BANDWIDTH_LEAKED, 20),
                    (errors.Code.BANDWIDTH_LEAKED, 3_700),
                )
            ),
        )
        self.assertEqual(
            [
                ('node1', errors.Code.BANDWIDTH_LEAKED, 1),
                ('node1', errors.Code.DRIFT_REPAIRED, 2),
            ],
            list(self.read().events),
        )

    def test_jobs(self):
        self.fill('node1')
        jobs.create(
            self.database,
            announcements.Announcer(None),
            'node1',
            messages.JobKind.PROFILE_ERROR,
            {},
            self.now,
        )
        self.assertEqual(
            [(messages.JobKind.PROFILE_ERROR, messages.JobState.QUEUED, 1)],
            list(self.read().jobs),
        )

    def test_hosts_of_the_snapshot(self):
        self.fill('node1')
        self.fill('node2')
        found = self.read()
        self.assertEqual(2, found.snapshot_hosts)
        self.assertAlmostEqual(self.now, found.snapshot_changed_at, delta=1)
        self.assertEqual([False] * 2, [one.certified for one in found.hosts])

    def test_how_old_a_report_was(self):
        for name, late_s, ahead_s in (
            ('right', 7.0, 0.0),
            ('ahead', 7.0, 3_600.0),
            ('behind', 7.0, -3_600.0),
        ):
            base.deliver(
                self.collector(),
                messages.Report(
                    name,
                    1,
                    self.now - late_s + ahead_s,
                    sent_at=self.now + ahead_s,
                ),
            )
        self.assertEqual(
            {'right': 7.0, 'ahead': 7.0, 'behind': 7.0},
            {
                one.host.name: one.host.report_delay_s
                for one in self.read().hosts
            },
        )

    def test_a_deleted_host_has_no_metrics(self):
        (one,) = base.uuids(1)
        agent = self.fill('node1', one)
        agent.send(one, events=(base.event(self.now),))
        self.fold()
        self.assertEqual(1, len(self.read().events))
        self.http = self.client()
        self.now += 3_600
        self.assertEqual(
            204, self.http.delete('/v1/hosts/node1?force=true').status_code
        )
        self.now -= 3_600
        found = self.read()
        for some in (found.hosts, found.instances, found.events, found.jobs):
            self.assertEqual([], list(some))
        self.assertEqual(0, found.snapshot_hosts)

    def test_statements_do_not_depend_on_the_number_of_hosts(self):
        self.fill('node000', *base.uuids(2))
        self.fold()
        few = self.statements()
        for number in range(1, 30):
            self.fill('node%03d' % number, *base.uuids(2), seconds=40)
        self.fold()
        self.assertEqual(few, self.statements())
        self.assertLessEqual(few, 13)

    def statements(self):
        """Return how many statements a scrape takes."""
        found = []

        def note(connection, cursor, statement, *_):
            found.append(statement)

        self.read()
        engine = self.database._engines[0]
        sa.event.listen(engine, 'before_cursor_execute', note)
        try:
            self.read()
        finally:
            sa.event.remove(engine, 'before_cursor_execute', note)
        return len([one for one in found if one.startswith('SELECT')])
