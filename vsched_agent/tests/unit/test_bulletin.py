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

import dataclasses
import os
import tempfile

from oslotest import base

from vsched_agent import bulletin
from vsched_agent import charging
from vsched_agent import in_force
from vsched_agent import journal
from vsched_agent.tests import fakes
from vsched_agent import wanted
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_lib.tests import balloon_reports

State = messages.State

INFO = messages.HostInfo('1', '6', 'b', 'fake', 2, 4000, 1800, 0, 0)
PROMISE = reservation.Reservation(12_000, 20_000)
WANTED = wanted.Wanted(PROMISE, messages.Source.METADATA)


class TestBulletin(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.journal = journal.Journal(
            os.path.join(folder.name, 'agent.sqlite'))
        self.addCleanup(self.journal.close)
        self.domain = fakes.domain(1)
        self.make()

    def make(self, most=100):
        self.bulletin = bulletin.Bulletin('here', self.journal, most)

    def held(self, promise=PROMISE):
        return in_force.Holding(
            reservation.Backend.DEADLINE, promise, self.domain.pid,
            in_force.targets_of(self.domain))

    def refused(self, detail='no room', code=errors.Code.DOES_NOT_FIT):
        self.bulletin.reservation(
            self.domain, WANTED, None, State.REFUSED,
            errors.Refused(detail, code, {'asked_mcpu': 1}))

    def post(self, domains=(), info=INFO):
        self.bulletin.post(info, domains)
        while (report := self.journal.oldest()) is not None:
            self.journal.confirm(report.batch)
            last = report
        return last

    def test_the_first_batch_is_full_and_the_next_only_news(self):
        first = self.post([self.domain])
        self.assertEqual((INFO, 1), (first.host_info, len(first.instances)))
        self.assertFalse(self.bulletin.urgent)
        second = self.post([self.domain])
        self.assertEqual((None, None), (second.host_info, second.instances))
        third = self.post(
            [], dataclasses.replace(INFO, capacity_mcpu=900))
        self.assertEqual((900, ()), (
            third.host_info.capacity_mcpu, third.instances))

    def test_i_o_threads(self):
        wants = dataclasses.replace(
            WANTED, io_charging=extra_specs.IoCharging.CHARGE)
        self.bulletin.reservation(
            self.domain, wants, self.held(), State.APPLIED, None)
        self.post([self.domain])
        io = messages.IoReport('charge', 2, 3_400, 20_000, 9_000, 100)
        self.bulletin.io(self.domain, charging.News(self.domain.uuid, io))
        report = self.post([self.domain])
        self.assertEqual([io], [one.io for one in report.reservations])
        # Figures are no event; a refusal is.
        self.assertEqual((), report.events)
        self.bulletin.io(self.domain, charging.News(
            self.domain.uuid, io, errors.Refused(
                'no room', errors.Code.DOES_NOT_FIT), True))
        self.bulletin.io(self.domain, charging.News(
            self.domain.uuid, io, None, True))
        report = self.post([self.domain])
        self.assertEqual(
            [(errors.Code.IO_REFUSED, messages.Severity.WARNING),
             (errors.Code.IO_HELD, messages.Severity.INFO)],
            [(one.code, one.severity) for one in report.events])
        # They stay what they are while the reservation changes, and go with
        # the word that wanted them.
        self.bulletin.reservation(
            self.domain, wants, self.held(), State.REFUSED,
            errors.Refused('no room', errors.Code.DOES_NOT_FIT))
        report = self.post([self.domain])
        self.assertEqual([io], [one.io for one in report.reservations])
        self.bulletin.reservation(
            self.domain, WANTED, self.held(), State.REFUSED,
            errors.Refused('no room', errors.Code.DOES_NOT_FIT))
        report = self.post([self.domain])
        self.assertEqual([None], [one.io for one in report.reservations])
        self.assertEqual((), report.events)

    def test_balloons(self):
        self.bulletin.balloon(balloon_reports.report(self.domain.uuid))
        self.assertTrue(self.bulletin.urgent)
        report = self.post([self.domain])
        self.assertTrue(report.all_balloons)
        self.assertFalse(self.bulletin.urgent)
        last = balloon_reports.report(self.domain.uuid, online_vcpus=1)
        begun = balloon_reports.change(self.domain.uuid)
        for told in (balloon_reports.report(self.domain.uuid,
                                            online_vcpus=2),
                     begun, last, dataclasses.replace(begun, took_ms=7)):
            self.bulletin.balloon(told)
        report = self.post([self.domain])
        self.assertEqual((False, (last,), (7,)), (
            report.all_balloons, report.balloons,
            tuple(one.took_ms for one in report.balloon_changes)))
        report = self.post([self.domain])
        self.assertEqual(((), ()), (report.balloons, report.balloon_changes))
        # A full report tells of all that run.
        self.bulletin.balloon(balloon_reports.report('gone'))
        self.bulletin.resync()
        report = self.post([self.domain])
        self.assertEqual((True, (last,)),
                         (report.all_balloons, report.balloons))
        self.bulletin.forget(self.domain.uuid)
        self.bulletin.resync()
        self.assertEqual((), self.post([self.domain]).balloons)

    def test_nobody_knows_what_runs(self):
        self.bulletin.event('vsched.agent.started',
                            messages.Severity.INFO, 'it has')
        report = self.post(None)
        self.assertEqual((INFO, None), (report.host_info, report.instances))
        self.assertEqual(1, len(report.events))
        # What was held back is told as soon as somebody knows.
        self.assertTrue(self.bulletin.urgent)
        self.assertEqual((), self.post([]).instances)

    def test_a_state_is_told_once(self):
        for _ in range(2):
            self.bulletin.reservation(
                self.domain, WANTED, self.held(), State.APPLIED, None)
        report = self.post([self.domain])
        self.assertEqual([State.APPLIED],
                         [one.state for one in report.reservations])
        self.assertEqual([errors.Code.RESERVATION_APPLIED],
                         [one.code for one in report.events])
        self.bulletin.reservation(
            self.domain, WANTED, self.held(), State.APPLIED, None)
        self.assertEqual((), self.post([self.domain]).reservations)

    def test_figures_are_no_news_but_texts_are(self):
        self.refused('1900 needed')
        self.post()
        self.refused('1950 needed')
        self.assertEqual((), self.post().events)
        self.refused('a: bad', errors.Code.EXTRA_SPECS_INVALID)
        self.post()
        self.refused('b: bad', errors.Code.EXTRA_SPECS_INVALID)
        report = self.post()
        self.assertEqual(['b: bad'],
                         [one.detail for one in report.reservations])
        self.assertIn('b: bad', report.events[0].detail)

    def test_since_stays_while_the_state_does(self):
        self.bulletin.reservation(
            self.domain, WANTED, self.held(), State.APPLIED, None)
        since = self.post().reservations[0].since
        self.bulletin.reservation(
            self.domain, dataclasses.replace(WANTED, generation=1),
            self.held(), State.APPLIED, None)
        self.assertEqual(since, self.post().reservations[0].since)
        self.refused()
        self.assertLess(since, self.post().reservations[0].since)

    def test_what_was_said_outlives_the_agent(self):
        self.bulletin.reservation(
            self.domain, WANTED, self.held(), State.APPLIED, None)
        since = self.post().reservations[0].since
        self.make()
        self.bulletin.reservation(
            self.domain, WANTED, self.held(), State.APPLIED, None)
        report = self.post()
        self.assertEqual((), report.events)
        self.assertEqual([since], [one.since for one in report.reservations])

    def test_what_more_room_would_help(self):
        self.refused()
        self.assertEqual({self.domain.uuid}, self.bulletin.unmet())
        self.refused('a: bad', errors.Code.EXTRA_SPECS_INVALID)
        self.assertEqual(set(), self.bulletin.unmet())

    def test_the_gone_are_forgotten(self):
        self.refused()
        self.post()
        self.bulletin.forget(self.domain.uuid)
        self.assertEqual([], list(self.bulletin.spoken_of))
        self.assertEqual({}, self.journal.reservations())

    def test_dropped_batches_are_counted_and_all_is_told_again(self):
        self.make(most=1)
        sample = messages.UsageSample(self.domain.uuid, 1.0, 1, 1, 0)
        for _ in range(2):
            self.bulletin.used([sample, sample])
            self.bulletin.post(INFO, [])
        report = self.post([])
        event, = report.events
        self.assertEqual(
            (errors.Code.REPORTS_DROPPED, {'batches': 1, 'samples': 2}),
            (event.code, event.figures))
        self.assertEqual((INFO, ()), (report.host_info, report.instances))

    def test_the_host_changes(self):
        self.assertFalse(self.bulletin.compare(INFO))
        self.post()
        less = dataclasses.replace(INFO, capacity_mcpu=900, cpus=1,
                                   leaked_mcpu=300)
        self.assertTrue(self.bulletin.compare(less))
        codes = [one.code for one in self.post(info=less).events]
        self.assertEqual([errors.Code.BANDWIDTH_LEAKED,
                          errors.Code.CAPACITY_CHANGED], codes)
        self.assertFalse(self.bulletin.compare(less))
