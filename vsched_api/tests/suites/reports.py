# SPDX-License-Identifier: Apache-2.0

"""Storing reports: on every database alike."""

import dataclasses
import threading

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.operations import events
from vsched_api.operations import hosts
from vsched_api.operations import instances
from vsched_api.operations import reservations
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire


class Reports:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def _count(self, table):
        return self.database.read(
            lambda session: session.execute(
                sa.select(sa.func.count()).select_from(table)
            ).scalar_one()
        )

    def test_everything_of_a_report_is_stored(self):
        (one,) = base.uuids(1)
        told = base.event(instance_uuid=one, figures={'a': [1, 'ü\u2603😀']})
        reply = self.agent().first(
            one, usage=(base.sample(one),), events=(told,)
        )
        self.assertEqual(collector_replies.ReportReply(False, 0, False), reply)

        host = hosts.get(self.database, base.HOST, self.now, 30)
        self.assertEqual(base.host_info(), host.info)
        self.assertEqual(1, host.instances)
        self.assertEqual(hosts.State.UP, host.state)
        self.assertEqual(1, host.last_batch)
        found = instances.get(self.database, one)
        self.assertEqual(
            (base.HOST, 1, True), (found.host, found.vcpus, found.present)
        )
        promised = reservations.get(self.database, one)
        self.assertEqual('applied', promised.state)
        self.assertEqual('metadata', promised.source)
        self.assertEqual(600, promised.bandwidth_mcpu)
        self.assertEqual(600, promised.enforced_bandwidth_mcpu)
        (stored,) = events.page(self.database, 10)
        self.assertEqual(
            (
                told.uuid,
                told.at,
                told.code,
                'info',
                told.detail,
                one,
                told.figures,
            ),
            (
                stored.uuid,
                stored.at,
                stored.code,
                stored.severity,
                stored.detail,
                stored.instance_uuid,
                stored.figures,
            ),
        )
        (got,) = usage.page(self.database, 10)
        self.assertEqual(
            (base.NOW, 1_000_000, 600_000, 0, 600_000),
            (
                got.at,
                got.interval_us,
                got.guest_us,
                got.wait_us,
                got.promised_us,
            ),
        )
        self.assertEqual(0, got.error_ppm)

    def test_findings_are_on_the_view_of_the_host_only(self):
        note = messages.HostFinding(
            'note', 'tick', 'a tick is 4000 us \u2603', 'CONFIG_HZ=1000'
        )
        problem = messages.HostFinding('problem', 'cgroup', 'none are mounted')
        newer = messages.HostFinding('hint', 'tick', 'of a newer agent')
        agent, http = self.agent(), self.client()

        def shown():
            return http.get('/v1/hosts/' + base.HOST).json['host']

        def listed():
            (host,) = http.get('/v1/hosts').json['hosts']
            self.assertNotIn('findings', host)
            self.assertEqual(shown()['finding_counts'], host['finding_counts'])
            return host

        # As by an agent of an earlier release.
        agent.first()
        self.assertIsNone(shown()['findings'])
        self.assertIsNone(listed()['finding_counts'])
        for findings, counts in (
            ((note, problem, newer, note), {'problem': 1, 'note': 3}),
            ((), {'problem': 0, 'note': 0}),
        ):
            agent.send(host_info=base.host_info(findings=findings))
            self.assertEqual(
                [one.to_dict() for one in findings], shown()['findings']
            )
            self.assertEqual(counts, listed()['finding_counts'])

    def test_what_the_host_did_is_stored_as_it_was_told(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        work = {
            name: number
            for number, name in enumerate(
                (
                    'direct_us',
                    'direct_wait_us',
                    'shared_us',
                    'wakeups',
                    'net_rx_packets',
                    'net_tx_packets',
                    'disk_read_requests',
                    'disk_write_requests',
                ),
                1,
            )
        }
        told = base.host_usage()
        # With everything else, and with samples only.
        for send in (agent.first, agent.send):
            send(one, usage=(base.sample(one, **work),), host_usage=(told,))
        found = usage.page(self.database, 10)
        self.assertEqual(
            [work] * 2,
            [
                {name: getattr(sample, name) for name in work}
                for sample in found
            ],
        )
        for host in usage.of_hosts(
            self.database, usage.Resolution.RAW, 10, host=base.HOST
        ):
            self.assertEqual(
                told.to_dict(),
                {name: getattr(host, name) for name in told.to_dict()},
            )
        self.assertEqual(2, self._count(models.HostTimeSample))

    def test_a_host_that_did_less_than_nothing_is_not_believed(self):
        agent = self.agent()
        reply = agent.send(
            listed=False, host_usage=(base.host_usage(own_us=-1),)
        )
        self.assertTrue(reply.resync)
        (told,) = events.page(self.database, 10)
        self.assertIn('HostUsage.own_us: -1 is not', told.detail)

    def test_a_repeated_batch_changes_nothing(self):
        (one,) = base.uuids(1)
        collector = self.collector()
        report = messages.Report(
            base.HOST,
            7,
            base.NOW,
            base.host_info(),
            (messages.InstanceInfo(one, 'vm', 1),),
            (base.reservation(one),),
            (base.sample(one),),
            (base.event(),),
        )
        self.assertFalse(collector.on_report(report).duplicate)
        self.now += 5
        self.assertTrue(collector.on_report(report).duplicate)
        older = dataclasses.replace(
            report, batch=3, instances=(), events=(base.event(),)
        )
        self.assertTrue(collector.on_report(older).duplicate)
        self.assertEqual(1, self._count(models.UsageSecond))
        self.assertEqual(1, self._count(models.Event))
        host = hosts.get(self.database, base.HOST, self.now, 30)
        self.assertEqual(7, host.last_batch)
        self.assertEqual(self.now - 5, host.last_report_at)
        self.assertTrue(instances.get(self.database, one).present)

    def test_a_repeated_event_is_one(self):
        agent = self.agent()
        told = base.event()
        agent.first(events=(told, told))
        agent.send(listed=False, events=(told, base.event()))
        self.assertEqual(2, self._count(models.Event))

    def test_collectors_that_get_the_same_batches_store_each_once(self):
        (one,) = base.uuids(1)
        collectors = [self.collector() for _ in range(2)]
        batches = [
            messages.Report(
                base.HOST,
                number,
                base.NOW + number,
                instances=(messages.InstanceInfo(one, 'vm', 1),),
                reservations=(base.reservation(one),),
                usage=(base.sample(one, base.NOW + number),),
                events=(base.event(),),
            )
            for number in range(1, 11)
        ]
        stored = []
        start = threading.Barrier(len(collectors))

        def run(collector):
            start.wait()
            for batch in batches:
                if not collector.on_report(batch).duplicate:
                    stored.append(batch.batch)

        threads = [
            threading.Thread(target=run, args=(collector,))
            for collector in collectors
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One that is ahead makes the older batches of the other repeats,
        # but every one was stored by one of the two.
        self.assertEqual(list(range(1, 11)), sorted(stored))
        self.assertEqual(10, self._count(models.UsageSecond))
        self.assertEqual(10, self._count(models.Event))

    def test_a_full_report_is_asked_for_when_one_is_missed(self):
        agent = self.agent()
        self.assertTrue(agent.send(listed=False).resync)
        self.assertTrue(
            agent.send(listed=False, host_info=base.host_info()).resync
        )
        self.assertFalse(agent.first().resync)
        self.assertFalse(agent.send(listed=False).resync)
        next(agent._numbers)
        self.assertTrue(agent.send(listed=False).resync)
        self.assertFalse(agent.send(listed=False).resync)
        next(agent._numbers)
        self.assertFalse(agent.first().resync)

    def test_an_instance_that_leaves_is_released(self):
        one, two = base.uuids(2)
        agent = self.agent()
        agent.first(one, two)
        agent.at += 10
        agent.send(two)
        gone = reservations.get(self.database, one)
        self.assertEqual('released', gone.state)
        self.assertEqual(agent.at, gone.since)
        self.assertIsNone(gone.enforced_backend)
        self.assertFalse(gone.present)
        self.assertEqual('applied', reservations.get(self.database, two).state)

    def test_an_instance_that_comes_back_starts_anew(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        agent.send()
        agent.send(one)
        self.assertEqual([], reservations.page(self.database, 10))
        self.assertTrue(instances.get(self.database, one).present)
        agent.send(listed=False, reservations=(base.reservation(one),))
        self.assertEqual('applied', reservations.get(self.database, one).state)

    def test_a_migrating_instance_is_where_it_was_listed_last(self):
        one, other = base.uuids(2)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.first()
        there.at += 1
        there.send(one, reservations=(base.reservation(one),))
        self.assertEqual('there', instances.get(self.database, one).host)
        # The source still runs it, and says so for another reason.
        here.at += 2
        here.send(one, other)
        self.assertEqual('there', instances.get(self.database, one).host)
        here.at += 3
        here.send(other)
        found = instances.get(self.database, one)
        self.assertEqual(('there', True), (found.host, found.present))
        self.assertEqual('applied', reservations.get(self.database, one).state)

    def test_a_migration_that_fails_leaves_it_at_home(self):
        (one,) = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.at += 1
        there.first(one)
        there.at += 1
        there.send()
        found = instances.get(self.database, one)
        self.assertEqual(('here', True), (found.host, found.present))
        self.assertEqual('applied', reservations.get(self.database, one).state)

    def test_the_source_may_report_first(self):
        (one,) = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        here.at += 1
        here.send()
        self.assertEqual(
            'released', reservations.get(self.database, one).state
        )
        there.at += 2
        there.first(one)
        found = instances.get(self.database, one)
        self.assertEqual(('there', True), (found.host, found.present))

    def test_a_clock_that_is_ahead_does_not_keep_an_instance(self):
        (one,) = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.at += 1e6
        here.first(one)
        self.now += 10
        there.at = self.now
        there.first(one)
        self.assertEqual('there', instances.get(self.database, one).host)

    def test_a_report_on_what_is_not_listed_does_not_list_it(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(
            reservations=(
                base.reservation(one, state=messages.State.RELEASED),
            )
        )
        self.assertFalse(instances.get(self.database, one).present)

    def test_long_and_odd_texts_are_stored(self):
        (one,) = base.uuids(1)
        reply = self.agent().send(
            listed=False,
            instances=(messages.InstanceInfo(one, 'n\0' * 300, 1),),
            events=(
                base.event(
                    detail='d\ud800' * 9000,
                    figures={'\0': ['\ud800', 2**62, 0.5]},
                ),
            ),
        )
        self.assertFalse(reply.duplicate)
        self.assertEqual(255, len(instances.get(self.database, one).name))
        (told,) = events.page(self.database, 10)
        self.assertEqual('vsched.agent.started', told.code)
        self.assertEqual(4000, len(told.detail))

    def test_a_batch_that_can_not_be_stored_is_answered(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        bad = {
            'a clock': {'usage': (base.sample(one, float('nan')),)},
            'a figure': {'events': (base.event(figures={'x': float('inf')}),)},
            'a number': {'usage': (base.sample(one, guest_us=2**63),)},
            'vcpus': {'instances': (messages.InstanceInfo(one, 'vm', 2**31),)},
            'below 0': {'usage': (base.sample(one, wait_us=-1),)},
            'no uuid': {'instances': (messages.InstanceInfo('x', 'vm', 1),)},
            'a word': {
                'reservations': (base.reservation(one, mode='m' * 65),)
            },
        }
        for parts in bad.values():
            reply = agent.send(listed=False, **parts)
            self.assertTrue(reply.resync)
            self.assertFalse(reply.duplicate)
        found = events.page(self.database, 100)
        self.assertEqual(
            {errors.Code.REPORT_REJECTED}, {told.code for told in found}
        )
        self.assertEqual(len(bad), len(found))
        self.assertEqual(0, self._count(models.UsageSecond))
        self.assertEqual(
            len(bad),
            hosts.get(self.database, base.HOST, self.now, 30).last_batch,
        )

    def test_a_problem_that_stays_is_one_event_a_day(self):
        agent = self.agent()
        for number in range(1, 6):
            # One problem, whatever the value is today.
            agent.send(listed=False, usage=(base.sample('x%d' % number),))
        self.assertEqual(1, self._count(models.Event))
        self.now += 86_400
        agent.send(listed=False, usage=(base.sample('x'),))
        self.assertEqual(2, self._count(models.Event))

    def test_a_batch_that_can_not_be_read_is_answered(self):
        collector = self.collector()
        reply = collector.report(
            {}, {'host': base.HOST, 'batch': 4, 'at': 'noon'}
        )
        self.assertEqual(
            collector_replies.ReportReply(False, 0, True).to_dict(), reply
        )
        (told,) = events.page(self.database, 10)
        self.assertIn('Report.at', told.detail)
        self.assertEqual({'batch': 4}, told.figures)
        self.assertTrue(
            collector.report({}, {'host': base.HOST, 'batch': 4, 'at': 1.0})[
                'duplicate'
            ]
        )

    def test_a_batch_of_nobody_is_an_error(self):
        collector = self.collector()
        for raw in (
            None,
            {},
            [],
            {'host': base.HOST},
            {'batch': 1},
            {'host': base.HOST, 'batch': True},
            {'host': base.HOST, 'batch': 2**63},
            {'host': '', 'batch': 1},
            {'host': 'x' * 256, 'batch': 1},
            {'host': 'a\0', 'batch': 1},
        ):
            self.assertRaises(wire.MalformedMessage, collector.report, {}, raw)
        self.assertEqual(0, self._count(models.Host))
