# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import tempfile

from oslotest import base

from vsched_agent import journal
from vsched_agent import reporter
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.contract import messages


class TestReporter(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.journal = journal.Journal(
            os.path.join(folder.name, 'agent.sqlite'))
        self.addCleanup(self.journal.close)
        self.collector = fakes.FakeCollector()
        self.overrides = []
        self.resyncs = []
        self.jobs = []
        self.reporter = reporter.Reporter(
            'here', self.journal, self.collector, self.take,
            lambda: self.resyncs.append(1), self.jobs.append)

    def take(self, overrides):
        self.overrides.append(overrides)
        self.journal.replace_overrides(overrides)

    def post(self):
        return self.journal.post(
            lambda number: messages.Report('here', number, 1.0))

    def test_jobs_are_fetched_when_their_generation_is_another(self):
        self.collector.ordered = messages.Jobs(2)
        for _ in range(2):
            self.post()
            self.reporter.deliver()
        self.assertEqual([self.collector.ordered], self.jobs)
        self.reporter.fetch_jobs()
        self.reporter.deliver()
        self.assertEqual(2, len(self.jobs))

    def test_everything_arrives_in_order(self):
        numbers = [self.post() for _ in range(3)]
        self.reporter.deliver()
        self.assertEqual(
            numbers, [one.batch for one in self.collector.reports])
        self.assertEqual(0, self.journal.waiting())
        self.assertEqual([], self.overrides)

    def test_nothing_is_lost_while_the_bus_is_away(self):
        self.collector.away = True
        number = self.post()
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.assertEqual(1, self.journal.waiting())
        self.collector.away = False
        self.reporter.deliver()
        self.assertEqual(
            [number], [one.batch for one in self.collector.reports])

    def test_a_reply_with_another_generation_fetches_once(self):
        self.collector.overridden = messages.Overrides(7, (
            messages.Override('u', 7, 1000, 2000, 'capped'),))
        self.post()
        self.post()
        self.reporter.deliver()
        self.assertEqual([self.collector.overridden], self.overrides)

    def test_told_to_fetch_without_a_batch(self):
        self.reporter.fetch_overrides()
        self.reporter.deliver()
        self.assertEqual([messages.Overrides(0)], self.overrides)
        self.reporter.deliver()
        self.assertEqual(1, len(self.overrides))

    def test_a_failed_fetch_is_tried_again(self):
        self.collector.away = True
        self.reporter.fetch_overrides()
        self.assertRaises(errors.Unreachable, self.reporter.deliver)
        self.collector.away = False
        self.reporter.deliver()
        self.assertEqual(1, len(self.overrides))

    def test_resync(self):
        self.collector.resync = True
        self.post()
        self.reporter.deliver()
        self.assertEqual([1], self.resyncs)

    def test_the_thread_delivers_and_stops(self):
        self.reporter.start()
        self.post()
        self.reporter.poke()
        self.reporter.stop()
        self.assertGreaterEqual(1, self.journal.waiting())
