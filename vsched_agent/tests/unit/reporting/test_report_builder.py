# SPDX-License-Identifier: Apache-2.0

import dataclasses
from unittest import mock


from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reporting import report_builder
from vsched_agent.reservations import applied
from vsched_agent.reservations import desired
from vsched_agent.reservations import io_charging
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles

State = messages.State

INFO = messages.HostInfo('1', '6', 'b', 'fake', 2, 4000, 1800, 0, 0)
PROMISE = reservation.Reservation(12_000, 20_000)
DESIRED = desired.Desired(PROMISE, messages.Source.METADATA)


class TestReportBuilder(journals.JournalCase):
    def setUp(self):
        super().setUp()
        self.domain = fakes.domain(1)
        self.make()

    def make(self, most=100):
        self.reports = report_builder.ReportBuilder('here', self.journal, most)

    def held(self, reserved=PROMISE):
        return applied.Holding(
            reservation.Backend.DEADLINE,
            reserved,
            self.domain.pid,
            applied.targets_of(self.domain),
        )

    def refused(self, detail='no room', code=errors.Code.DOES_NOT_FIT):
        self.reports.reservations.add(
            self.domain,
            DESIRED,
            None,
            State.REFUSED,
            errors.Refused(detail, code, {'asked_mcpu': 1}),
        )

    def post(self, domains=(), info=INFO):
        self.reports.post(info, domains)
        while (report := self.journal.outbox.oldest()) is not None:
            self.journal.outbox.confirm(report.batch)
            last = report
        return last

    def test_a_weaker_backend(self):
        self.reports.reservations.add(
            self.domain,
            DESIRED,
            self.held(),
            State.DEGRADED,
            errors.Refused(
                'no room', errors.Code.DOES_NOT_FIT, {'asked_mcpu': 1}
            ),
        )
        report = self.post()
        (event,) = report.events
        self.assertEqual(errors.Code.RESERVATION_DEGRADED, event.code)
        self.assertEqual(
            {'asked_mcpu': 1, 'cause': 'vsched.reservation.does_not_fit'},
            event.figures,
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, report.reservations[0].code)

    def test_jobs_that_fail(self):
        for state in messages.JobState:
            self.reports.job(
                messages.JobReport(
                    self.domain.uuid, 2, state, 300_000, 1.0, 'it was killed'
                )
            )
        (event,) = self.post().events
        self.assertEqual(errors.Code.JOB_FAILED, event.code)
        self.assertEqual(
            {'job': self.domain.uuid, 'attempt': 2, 'progress_ppm': 300_000},
            event.figures,
        )
        self.assertIn('failed at 30 %: it was killed', event.detail)

    def test_each_measured_profile_is_one_event(self):
        one = error_profiles.profile([error_profiles.point([1, 2, 3])])
        self.assertIsNone(self.reports.profiles.measured_version)
        self.reports.profiles.add_measured(one)
        # An agent that is killed now has told nobody.
        self.assertIsNone(self.journal.outbox.measured())
        self.assertEqual(one.version, self.reports.profiles.measured_version)
        (event,) = self.post().events
        self.assertEqual(errors.Code.PROFILE_MEASURED, event.code)
        self.assertEqual(
            (len(one.points), one.version, one.finished_at),
            tuple(
                event.figures[name]
                for name in ('points', 'version', 'finished_at')
            ),
        )
        self.make()
        self.assertEqual(one.version, self.reports.profiles.measured_version)

    def test_a_failed_batch_is_reported_with_the_next(self):
        self.reports.profiles.add_measured(
            error_profiles.profile([error_profiles.point([1, 2, 3])])
        )
        with mock.patch.object(
            messages, 'Report', autospec=True, side_effect=MemoryError
        ):
            self.assertRaises(MemoryError, self.post)
        self.assertIsNone(self.journal.outbox.measured())
        (event,) = self.post().events
        self.assertEqual(errors.Code.PROFILE_MEASURED, event.code)
        self.assertEqual(
            event.figures['version'], self.journal.outbox.measured()
        )

    def test_the_first_batch_is_full_and_the_next_has_changes_only(self):
        first = self.post([self.domain])
        self.assertEqual((INFO, 1), (first.host_info, len(first.instances)))
        self.assertFalse(self.reports.urgent)
        second = self.post([self.domain])
        self.assertEqual((None, None), (second.host_info, second.instances))
        third = self.post([], dataclasses.replace(INFO, capacity_mcpu=900))
        self.assertEqual(
            (900, ()), (third.host_info.capacity_mcpu, third.instances)
        )

    def test_a_server_that_is_renamed_is_listed_again(self):
        server = hypervisor.Server('web-1', '8f3c1d0e9b7a4c5d', 'm1.small')
        one = dataclasses.replace(self.domain, server=server)
        for name in ('web-1', 'web-2'):
            one = dataclasses.replace(
                one, server=dataclasses.replace(server, name=name)
            )
            (listed,) = self.post([one]).instances
            self.assertEqual(
                (name, '8f3c1d0e9b7a4c5d', 'm1.small'),
                (listed.server_name, listed.project_id, listed.flavor_name),
            )
        self.assertIsNone(self.post([one]).instances)
        (listed,) = self.post([self.domain]).instances
        self.assertEqual(
            (None, None, None),
            (listed.server_name, listed.project_id, listed.flavor_name),
        )

    def test_i_o_threads(self):
        charged = dataclasses.replace(
            DESIRED, io_charging=extra_specs.IoCharging.CHARGE
        )
        self.reports.reservations.add(
            self.domain, charged, self.held(), State.APPLIED, None
        )
        self.post([self.domain])
        io = messages.IoReport('charge', 2, 3_400, 20_000, 9_000, 100)
        self.reports.reservations.add_io(
            self.domain, io_charging.IoChange(self.domain.uuid, io)
        )
        report = self.post([self.domain])
        self.assertEqual([io], [one.io for one in report.reservations])
        # Figures are no event; a refusal is.
        self.assertEqual((), report.events)
        self.reports.reservations.add_io(
            self.domain,
            io_charging.IoChange(
                self.domain.uuid,
                io,
                errors.Refused('no room', errors.Code.DOES_NOT_FIT),
                True,
            ),
        )
        self.reports.reservations.add_io(
            self.domain, io_charging.IoChange(self.domain.uuid, io, None, True)
        )
        report = self.post([self.domain])
        self.assertEqual(
            [
                (errors.Code.IO_REFUSED, messages.Severity.WARNING),
                (errors.Code.IO_HELD, messages.Severity.INFO),
            ],
            [(one.code, one.severity) for one in report.events],
        )
        # They stay what they are while the reservation changes, and go with
        # the word that wanted them.
        self.reports.reservations.add(
            self.domain,
            charged,
            self.held(),
            State.REFUSED,
            errors.Refused('no room', errors.Code.DOES_NOT_FIT),
        )
        report = self.post([self.domain])
        self.assertEqual([io], [one.io for one in report.reservations])
        self.reports.reservations.add(
            self.domain,
            DESIRED,
            self.held(),
            State.REFUSED,
            errors.Refused('no room', errors.Code.DOES_NOT_FIT),
        )
        report = self.post([self.domain])
        self.assertEqual([None], [one.io for one in report.reservations])
        self.assertEqual((), report.events)

    def test_balloons(self):
        self.reports.balloon(balloon_reports.report(self.domain.uuid))
        self.assertTrue(self.reports.urgent)
        report = self.post([self.domain])
        self.assertTrue(report.all_balloons)
        self.assertFalse(self.reports.urgent)
        last = balloon_reports.report(self.domain.uuid, online_vcpus=1)
        begun = balloon_reports.change(self.domain.uuid)
        for told in (
            balloon_reports.report(self.domain.uuid, online_vcpus=2),
            begun,
            last,
            dataclasses.replace(begun, took_ms=7),
        ):
            self.reports.balloon(told)
        report = self.post([self.domain])
        self.assertEqual(
            (False, (last,), (7,)),
            (
                report.all_balloons,
                report.balloons,
                tuple(one.took_ms for one in report.balloon_changes),
            ),
        )
        report = self.post([self.domain])
        self.assertEqual(((), ()), (report.balloons, report.balloon_changes))
        # A full report tells of all that run.
        self.reports.balloon(balloon_reports.report('gone'))
        self.reports.resync()
        report = self.post([self.domain])
        self.assertEqual(
            (True, (last,)), (report.all_balloons, report.balloons)
        )
        self.reports.forget(self.domain.uuid)
        self.reports.resync()
        self.assertEqual((), self.post([self.domain]).balloons)

    def test_unknown_instances(self):
        self.reports.events.add(
            'vsched.agent.started', messages.Severity.INFO, 'it has'
        )
        report = self.post(None)
        self.assertEqual((INFO, None), (report.host_info, report.instances))
        self.assertEqual(1, len(report.events))
        # What was held back is told as soon as somebody knows.
        self.assertTrue(self.reports.urgent)
        self.assertEqual((), self.post([]).instances)

    def test_a_state_is_reported_once(self):
        for _ in range(2):
            self.reports.reservations.add(
                self.domain, DESIRED, self.held(), State.APPLIED, None
            )
        report = self.post([self.domain])
        self.assertEqual(
            [State.APPLIED], [one.state for one in report.reservations]
        )
        self.assertEqual(
            [errors.Code.RESERVATION_APPLIED],
            [one.code for one in report.events],
        )
        self.reports.reservations.add(
            self.domain, DESIRED, self.held(), State.APPLIED, None
        )
        self.assertEqual((), self.post([self.domain]).reservations)

    def test_details_are_significant_and_figures_are_not(self):
        self.refused('1900 needed')
        self.post()
        self.refused('1950 needed')
        self.assertEqual((), self.post().events)
        self.refused('a: bad', errors.Code.EXTRA_SPECS_INVALID)
        self.post()
        self.refused('b: bad', errors.Code.EXTRA_SPECS_INVALID)
        report = self.post()
        self.assertEqual(
            ['b: bad'], [one.detail for one in report.reservations]
        )
        self.assertIn('b: bad', report.events[0].detail)

    def test_since_stays_while_the_state_does(self):
        self.reports.reservations.add(
            self.domain, DESIRED, self.held(), State.APPLIED, None
        )
        since = self.post().reservations[0].since
        self.reports.reservations.add(
            self.domain,
            dataclasses.replace(DESIRED, generation=1),
            self.held(),
            State.APPLIED,
            None,
        )
        self.assertEqual(since, self.post().reservations[0].since)
        self.refused()
        self.assertLess(since, self.post().reservations[0].since)

    def test_reports_outlive_the_agent(self):
        self.reports.reservations.add(
            self.domain, DESIRED, self.held(), State.APPLIED, None
        )
        since = self.post().reservations[0].since
        self.make()
        self.reports.reservations.add(
            self.domain, DESIRED, self.held(), State.APPLIED, None
        )
        report = self.post()
        self.assertEqual((), report.events)
        self.assertEqual([since], [one.since for one in report.reservations])

    def test_what_more_capacity_may_help(self):
        self.refused()
        self.assertEqual({self.domain.uuid}, self.reports.reservations.unmet())
        self.refused('a: bad', errors.Code.EXTRA_SPECS_INVALID)
        self.assertEqual(set(), self.reports.reservations.unmet())

    def test_instances_that_left_are_forgotten(self):
        self.refused()
        self.post()
        self.reports.forget(self.domain.uuid)
        self.assertEqual(
            [], list(self.reports.reservations.reported_instances)
        )
        self.assertEqual({}, self.journal.reservations())

    def test_dropped_batches_are_counted_and_all_is_reported_again(self):
        self.make(most=1)
        sample = messages.UsageSample(self.domain.uuid, 1.0, 1, 1, 0)
        for _ in range(2):
            self.reports.add_usage([sample, sample])
            self.reports.post(INFO, [])
        report = self.post([])
        (event,) = report.events
        self.assertEqual(
            (errors.Code.REPORTS_DROPPED, {'batches': 1, 'samples': 2}),
            (event.code, event.figures),
        )
        self.assertEqual((INFO, ()), (report.host_info, report.instances))

    def test_the_host_changes(self):
        self.assertFalse(self.reports.compare(INFO))
        self.post()
        less = dataclasses.replace(
            INFO, capacity_mcpu=900, cpus=1, leaked_mcpu=300
        )
        self.assertTrue(self.reports.compare(less))
        codes = [one.code for one in self.post(info=less).events]
        self.assertEqual(
            [errors.Code.BANDWIDTH_LEAKED, errors.Code.CAPACITY_CHANGED], codes
        )
        self.assertFalse(self.reports.compare(less))
