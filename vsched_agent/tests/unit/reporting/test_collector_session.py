# SPDX-License-Identifier: Apache-2.0

import logging
import random
import time

import fixtures

from vsched_agent.reporting import collector_session
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.model import retry_pause


class TestReporter(journals.JournalCase):
    def setUp(self):
        super().setUp()
        self.collector = fakes.FakeCollector()
        self.overrides = []
        self.resyncs = []
        self.jobs = []
        self.now = 100.0
        self.reporter = collector_session.Reporter(
            'here',
            self.journal,
            self.collector,
            self.take,
            lambda: self.resyncs.append(1),
            self.jobs.append,
            lambda: self.now,
        )

    def take(self, overrides):
        self.overrides.append(overrides)
        self.journal.replace_overrides(overrides)

    def post(self):
        return self.journal.outbox.post(
            lambda number: messages.Report('here', number, 1.0)
        )

    def test_jobs_are_fetched_when_their_generation_is_another(self):
        self.collector.ordered = messages.Jobs(2)
        for _ in range(2):
            self.post()
            self.reporter.deliver()
        self.assertEqual([self.collector.ordered], self.jobs)
        self.reporter.fetch_jobs()
        self.reporter.deliver()
        self.assertEqual(2, len(self.jobs))
        self.assertEqual([], self.collector.answers)

    def test_everything_arrives_in_order(self):
        numbers = [self.post() for _ in range(3)]
        self.reporter.deliver()
        self.assertEqual(
            numbers, [one.batch for one in self.collector.reports]
        )
        self.assertEqual(0, self.journal.outbox.waiting())
        self.assertEqual([], self.overrides)

    def test_nothing_is_lost_while_the_bus_is_away(self):
        self.collector.away = True
        number = self.post()
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertEqual(1, self.journal.outbox.waiting())
        self.collector.away = False
        self.reporter.deliver()
        self.assertEqual(
            [number], [one.batch for one in self.collector.reports]
        )

    def test_an_outage_does_not_delay_what_comes_after_it(self):
        away = errors.BusUnavailable('the broker is away')
        silent = errors.Unreachable('no answer')
        for _ in range(20):
            longest_s = self.reporter._pause_after(away)
        low, high = retry_pause.SPREAD
        limit_s = collector_session.BUS_BACKOFF_S[1]
        self.assertGreaterEqual(longest_s, low * limit_s)
        self.assertLessEqual(longest_s, high * limit_s)
        # The collector may have too much to do: the pauses are longer, and
        # begin with the first of them.
        self.assertLessEqual(self.reporter._pause_after(silent), high)
        for _ in range(20):
            longest_s = self.reporter._pause_after(silent)
        self.assertGreaterEqual(
            longest_s, low * collector_session.BACKOFF_S[1]
        )

    def test_a_stored_batch_ends_the_long_pauses(self):
        for _ in range(20):
            self.reporter._pause_after(errors.Unreachable('no answer'))
        self.post()
        self.post()
        self.collector.away_after = 1
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertEqual(1, self.journal.outbox.waiting())
        self.assertLessEqual(
            self.reporter._pause_after(errors.Unreachable('no answer')),
            retry_pause.SPREAD[1],
        )

    def test_a_reply_with_another_generation_fetches_once(self):
        self.collector.overridden = collector_replies.Overrides(
            7, (collector_replies.Override('u', 7, 1000, 2000, 'capped'),)
        )
        self.post()
        self.post()
        self.reporter.deliver()
        self.assertEqual([self.collector.overridden], self.overrides)

    def test_announced_overrides_are_fetched(self):
        self.post()
        self.reporter.deliver()
        self.reporter.overrides_changed({}, generation=3)
        self.reporter.deliver()
        self.assertEqual([self.collector.overridden], self.overrides)
        self.assertEqual([], self.jobs)

    def test_announced_jobs_are_fetched(self):
        self.post()
        self.reporter.deliver()
        self.reporter.jobs_changed({}, generation=3)
        self.reporter.deliver()
        self.assertEqual([self.collector.ordered], self.jobs)
        self.assertEqual([], self.overrides)

    def test_fetches_without_a_batch(self):
        self.reporter.fetch_overrides()
        self.reporter.deliver()
        # The collector does not know this run yet.
        self.assertEqual([], self.overrides)
        self.post()
        self.reporter.deliver()
        self.reporter.deliver()
        self.assertEqual([collector_replies.Overrides(0)], self.overrides)
        self.reporter.deliver()
        self.assertEqual(1, len(self.overrides))

    def test_a_failed_fetch_is_tried_again(self):
        self.post()
        self.reporter.deliver()
        self.collector.away = True
        self.reporter.fetch_overrides()
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.now += collector_session.MIN_PULL_INTERVAL_S
        self.collector.away = False
        self.reporter.deliver()
        self.assertEqual(1, len(self.overrides))

    def test_however_many_ask_it_pulls_once_a_second(self):
        self.post()
        self.reporter.deliver()
        for _ in range(100):
            self.reporter.fetch_overrides()
            self.reporter.fetch_jobs()
            self.reporter.deliver()
        self.assertEqual((1, 1), (len(self.overrides), len(self.jobs)))
        self.assertEqual(
            collector_session.MIN_PULL_INTERVAL_S, self.reporter._pull_wait_s()
        )
        self.now += collector_session.MIN_PULL_INTERVAL_S
        self.reporter.deliver()
        self.assertEqual((2, 2), (len(self.overrides), len(self.jobs)))

    def test_announcements_are_logged_once_for_each_pull(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.post()
        self.reporter.deliver()
        for generation in range(100):
            self.reporter.on_overrides_changed(generation)
            self.reporter.on_jobs_changed(generation)
        self.assertEqual(2, log.output.count('are announced'), log.output)

    def test_what_is_no_announcement(self):
        log = self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.post()
        self.reporter.deliver()
        for odd in (None, 'x', 1.5, True, -1, 2**63, [], {}):
            self.reporter.overrides_changed({}, odd)
            self.reporter.jobs_changed({}, odd)
        self.assertEqual('', log.output)
        self.assertIsNone(self.reporter._pull_wait_s())

    def test_a_new_epoch_is_begun_after_the_newest_batch(self):
        self.collector.answers = [self.unopened(41), self.current(42)]
        number = self.post()
        self.reporter.deliver()
        self.assertEqual(
            [None, 41], [one.after for one in self.collector.asked]
        )
        self.assertEqual(
            [number] * 2, [one.batch for one in self.collector.asked]
        )
        self.assertEqual(0, self.journal.outbox.waiting())
        self.post()
        self.reporter.deliver()
        self.assertEqual(42, self.collector.asked[-1].after)

    def test_a_collector_that_never_begins_an_epoch_is_not_asked_for_ever(
        self,
    ):
        self.collector.answers = [self.unopened(41)] * 10
        self.post()
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertEqual(4, len(self.collector.asked))
        self.assertEqual(1, self.journal.outbox.waiting())

    def test_a_replaced_epoch_goes_on_under_another(self):
        old = self.journal.outbox.epoch
        first, second = self.post(), self.post()
        self.collector.answers = [
            collector_replies.ReportReply(
                True,
                0,
                epoch_state=collector_replies.EpochState.REPLACED,
                last_batch=7,
                epoch_batch=first,
            )
        ]
        self.reporter.deliver()
        self.assertEqual(
            [(first, old), (second, self.journal.outbox.epoch)],
            [(one.batch, one.epoch) for one in self.collector.asked],
        )
        self.assertEqual(7, self.collector.asked[1].after)
        self.assertNotEqual(old, self.journal.outbox.epoch)

    def unopened(self, last_batch):
        return collector_replies.ReportReply(
            False,
            0,
            epoch_state=collector_replies.EpochState.UNOPENED,
            last_batch=last_batch,
        )

    def current(self, last_batch):
        return collector_replies.ReportReply(False, 0, last_batch=last_batch)

    def test_resync(self):
        self.collector.resync = True
        self.post()
        self.reporter.deliver()
        self.assertEqual([1], self.resyncs)

    def test_the_thread_delivers_and_stops(self):
        self.reporter.start()
        self.addCleanup(self.reporter.stop)
        number = self.post()
        latest = time.monotonic() + 30
        while self.journal.outbox.waiting() and time.monotonic() < latest:
            time.sleep(0.01)
        self.reporter.stop()
        self.assertEqual(
            [number], [one.batch for one in self.collector.reports]
        )


class TestRecovery(journals.JournalCase):
    """How long reports wait for a broker that was away, in simulated time."""

    def recovered_s(self, random_):
        """Return when a report is stored, after the broker's return."""
        reporter = collector_session.Reporter(
            'here', self.journal, None, None, None, None
        )
        for pause in (reporter._pause, reporter._bus_pause):
            pause._uniform = random_.uniform
        answer_s = collector_rpc.REPORT_TIMEOUT_S
        connect_s = collector_rpc.CONNECT_S
        # Both consumers have connected by then.
        connected_s = [random_.uniform(0, rpc.RECONNECT_S) for _ in range(2)]
        now_s = -random_.uniform(0, 100)
        # The answer to a request that was under way is lost.
        if random_.random() < 0.5:
            now_s += answer_s
            now_s += reporter._pause_after(errors.Unreachable('lost'))
        while True:
            if now_s < 0:
                # Refused at once, or a call that waits for a connection.
                if random_.random() < 0.2:
                    now_s += answer_s + connect_s
                now_s += reporter._pause_after(errors.BusUnavailable('away'))
            elif now_s < connected_s[0] and random_.random() < 0.5:
                # There is no queue of the collector.
                now_s += reporter._pause_after(errors.BusUnavailable('none'))
            elif now_s < max(connected_s):
                now_s += answer_s + random_.uniform(0, connect_s)
                now_s += reporter._pause_after(errors.Unreachable('lost'))
            else:
                return now_s

    def test_the_time_is_bounded(self):
        random_ = random.Random(16)
        found = [self.recovered_s(random_) for _ in range(5000)]
        self.assertLess(max(found), collector_session.RECOVERY_S)
        # The bound is not far from what happens.
        self.assertGreater(max(found), 0.8 * collector_session.RECOVERY_S)

    def test_the_documented_bound(self):
        self.assertEqual(20.5, collector_session.RECOVERY_S)
