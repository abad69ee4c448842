# SPDX-License-Identifier: Apache-2.0

import dataclasses
import threading

from oslotest import base

from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_standalone.demo import agents
from vsched_standalone.demo import fleet

NOW = 1_760_000_000.0
PATIENCE_S = 60


class FakeCollector:
    """A collector that remembers reports.

    :ivar replies: changes of the replies, one for each report; then none.
    """

    def __init__(self):
        self.reports = []
        self.replies = []
        self.fetched = []
        self.enough = threading.Event()
        self.again = threading.Event()

    def report(self, report):
        change = self.replies.pop(0) if self.replies else {}
        if isinstance(change, Exception):
            raise change
        self.reports.append(report)
        if len({one.batch for one in self.reports}) >= 3:
            self.enough.set()
        self.again.set()
        return dataclasses.replace(
            collector_replies.ReportReply(False, 0, last_batch=report.batch),
            **change,
        )

    def overrides(self, host):
        self.fetched.append(('overrides', host))
        return collector_replies.Overrides(7)

    def jobs(self, host):
        self.fetched.append(('jobs', host))
        return messages.Jobs(5)


class TestAgent(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.collector = FakeCollector()

    def agent(self, history_s=0, silent=False):
        (member,) = fleet.build(1, 1, 2, NOW)
        return agents.Agent(
            dataclasses.replace(member, silent=silent),
            self.collector,
            history_s,
        )

    def test_the_first_report_is_whole_and_has_the_past(self):
        agent = self.agent(history_s=120)
        agent.deliver(NOW)
        agent.deliver(NOW + 2)
        first, second = self.collector.reports
        self.assertEqual(5, len(first.host_usage))
        self.assertEqual(NOW - 120, first.host_usage[0].at)
        self.assertEqual(2, len(first.instances))
        self.assertTrue(first.all_balloons)
        (used,) = second.host_usage
        self.assertEqual((NOW + 2, 2_000_000), (used.at, used.interval_us))
        self.assertIsNone(second.instances)

    def test_a_report_that_fails_is_sent_again(self):
        agent = self.agent()
        self.collector.replies = [errors.Unreachable('no answer')]
        self.assertRaises(errors.Unreachable, agent.deliver, NOW)
        agent.deliver(NOW + 2)
        (report,) = self.collector.reports
        self.assertEqual((1, NOW), (report.batch, report.at))

    def test_an_epoch_begins_after_the_last_batch(self):
        agent = self.agent()
        self.collector.replies = [
            {
                'epoch_state': collector_replies.EpochState.UNOPENED,
                'last_batch': 41,
            }
        ]
        agent.deliver(NOW)
        self.assertEqual(
            [None, 41], [one.after for one in self.collector.reports]
        )

    def test_a_resync_makes_the_next_report_whole(self):
        agent = self.agent()
        self.collector.replies = [{'resync': True}]
        agent.deliver(NOW)
        agent.deliver(NOW + 2)
        self.assertIsNotNone(self.collector.reports[1].instances)

    def test_orders_are_fetched_when_they_change(self):
        agent = self.agent()
        self.collector.replies = [
            {'overrides_generation': 7, 'jobs_generation': 5}
        ]
        self.collector.replies.append(dict(self.collector.replies[0]))
        agent.deliver(NOW)
        self.assertEqual(
            [('overrides', 'demo-01'), ('jobs', 'demo-01')],
            self.collector.fetched,
        )
        # It is reported at once, without samples of no time.
        first, second = self.collector.reports
        self.assertEqual((1, 0), (len(first.host_usage), len(second.usage)))

    def test_a_silent_host_reports_once(self):
        agent = self.agent(silent=True)
        self.assertFalse(agent.silent)
        agent.deliver(NOW)
        self.assertTrue(agent.silent)


class TestAgents(base.BaseTestCase):
    def test_all_report_until_they_are_stopped(self):
        collector = FakeCollector()
        running = agents.Agents(
            fleet.build(1, 3, 1, NOW), collector, 0.01, 0, lambda: NOW
        )
        running.start()
        self.addCleanup(running.stop)
        self.assertTrue(running.wait_reported(PATIENCE_S))
        self.assertTrue(collector.enough.wait(PATIENCE_S))
        running.stop()
        self.assertEqual(
            {'demo-01', 'demo-02', 'demo-03'},
            {one.host for one in collector.reports},
        )
        count = len(collector.reports)
        running.stop()
        self.assertEqual(count, len(collector.reports))

    def test_a_woken_agent_reports_before_its_time(self):
        collector = FakeCollector()
        running = agents.Agents(
            fleet.build(1, 1, 1, NOW), collector, 3_600, 0, lambda: NOW
        )
        running.start()
        self.addCleanup(running.stop)
        self.assertTrue(running.wait_reported(PATIENCE_S))
        for _ in range(2):
            collector.again.clear()
            running.wake(['demo-01', 'unknown'])
            self.assertTrue(collector.again.wait(PATIENCE_S))
        self.assertEqual([1, 2, 3], [one.batch for one in collector.reports])

    def test_a_host_whose_report_fails_is_tried_again(self):
        collector = FakeCollector()
        collector.replies = [errors.Unreachable('no answer')]
        running = agents.Agents(
            fleet.build(1, 1, 1, NOW), collector, 0.01, 0, lambda: NOW
        )
        running.start()
        self.addCleanup(running.stop)
        self.assertTrue(running.wait_reported(PATIENCE_S))
