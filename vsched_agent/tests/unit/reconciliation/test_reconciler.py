# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction
import tempfile
from unittest import mock

from vsched_agent.communication import base as communication
from vsched_agent.profiling import new_profiles
from vsched_agent.profiling import store
from vsched_agent.profiling import withdrawal
from vsched_agent.tests import fakes
from vsched_agent.tests import passes
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error_change
from vsched_lib.tests import overhead_profiles

State = messages.State


class TestReconciler(passes.TestCase):
    def test_a_new_profile_is_reported_and_changes_margins(self):
        bounded = fakes.domain(
            1, cpu_runtime_us=12_000, max_alloc_error_pct='2'
        )
        self.measurements.lower_ppm = 0
        self.run_(bounded, fakes.domain(2, cpu_runtime_us=3_000))
        self.assertEqual([12_000, 3_000], self.profiles.seen[-1])
        before = profiles.profile(profiles.point([0] * 200))
        after = profiles.profile(profiles.point([-30_000] * 200), version=2)
        self.profiles.new = [
            (after, error_change.changes(before.points, after.points))
        ]
        self.measurements.lower_ppm = -30_000
        reports = self.run_()
        self.assertEqual(
            [after],
            [one for report in reports for one in report.error_profiles],
        )
        self.assertEqual(
            [errors.Code.PROFILE_DRIFTED, errors.Code.RESERVATION_APPLIED],
            self.codes(reports),
        )
        self.assertEqual(
            [('1', 12_000, 12_124)],
            [
                (
                    one.instance_uuid[-1],
                    one.runtime_us,
                    one.enforced_runtime_us,
                )
                for report in reports
                for one in report.reservations
            ],
        )
        self.assertEqual([12_000, 3_000], self.profiles.seen[-1])

    def test_runs_that_ended_without_the_agent_are_reported_once(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        kept = store.Profiles(contract.ErrorProfile, folder.name)

        def start():
            """Start a new agent with the journal of the last one."""
            self.make()
            found = new_profiles.News(kept)
            self.profiles.poll = lambda: [
                (profile, []) for profile, _ in found.poll()
            ]
            self.profiles.measured = found.measured

        def reported():
            return [
                event.figures['version']
                for report in self.run_()
                for event in report.events
                if event.code == errors.Code.PROFILE_MEASURED
            ]

        for before, versions in (
            ((1,), [1]),
            ((), []),
            ((2, 3), [2, 3]),
            ((), []),
        ):
            for version in before:
                kept.keep(
                    profiles.profile(
                        profiles.point([0] * 200), version=version
                    )
                )
            start()
            self.assertEqual(versions, reported())
            self.assertEqual([], reported())
        # While it runs.
        kept.keep(profiles.profile(profiles.point([0] * 200), version=4))
        self.assertEqual([4], reported())
        self.assertEqual([], reported())
        start()
        self.assertEqual([], reported())

    def test_withdrawn_certificates_are_reported(self):
        self.run_(fakes.domain(1, cpu_runtime_us=3_000))
        self.profiles.judged = withdrawal.Event(
            errors.Code.CERTIFICATES_WITHDRAWN,
            messages.Severity.WARNING,
            'too many',
            {'threads': 9},
        )
        reports = self.run_()
        (event,) = (event for report in reports for event in report.events)
        self.assertEqual(
            ('vsched.certificates.withdrawn', 'too many', {'threads': 9}),
            (event.code, event.detail, event.figures),
        )

    def test_overhead_profiles_are_reported(self):
        costs = passes.Costs()
        self.make(costs=costs)
        reported = overhead_profiles.profile()
        poor = overhead_profiles.profile(good=False, version=4)
        costs.new = [reported, poor]
        reports = self.run_(fakes.domain(1))
        self.assertEqual(
            [reported, poor],
            [one for report in reports for one in report.overhead_profiles],
        )
        self.assertEqual([errors.Code.PROFILE_POOR], self.codes(reports))
        self.assertEqual(1, len(costs.samples))

    def test_drifted_instances_give_no_passive_samples(self):
        self.run_(
            fakes.domain(1, cpu_runtime_us=12_000),
            fakes.domain(2, cpu_runtime_us=3_000),
        )
        self.deadline.held.pop(101)
        self.run_()
        self.assertEqual([3_000], self.profiles.seen[-1])

    def test_jobs_are_reported_at_once(self):
        self.run_(fakes.domain(1))
        report = messages.JobReport(
            '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f',
            1,
            messages.JobState.DONE,
            1_000_000,
            1.0,
        )
        self.reconciler.job(report)
        (found,) = self.run_(due=False)
        self.assertEqual((report,), found.jobs)

    def test_metering_continues_from_the_last_agents_checkpoint(self):
        self.hypervisor.away = True
        self.run_()
        self.assertIsNone(self.journal.outbox.usage_checkpoint())
        self.hypervisor.away = False
        self.run_(fakes.domain(1))
        self.assertIsNone(self.meter.resumed)
        self.assertEqual({'fake': 1}, self.journal.outbox.usage_checkpoint())
        self.make()
        self.hypervisor.away = True
        self.run_()
        # The running instances are not known yet; metering none of them
        # would lose the time since.
        self.assertIsNone(self.meter.resumed)
        self.assertEqual({'fake': 1}, self.journal.outbox.usage_checkpoint())
        self.hypervisor.away = False
        self.reconciler.changed(None)
        self.run_()
        self.assertEqual({'fake': 1}, self.meter.resumed)

    def test_drift_is_repaired_within_the_pass(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.deadline.held.clear()
        reports = self.run_()
        self.assertEqual([errors.Code.DRIFT_REPAIRED], self.codes(reports))
        self.assertIn(101, self.deadline.held)

    def test_an_absent_hypervisor_changes_nothing(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.hypervisor.away = True
        self.reconciler.changed(None)
        reports = self.run_()
        self.assertEqual([errors.Code.HYPERVISOR_LOST], self.codes(reports))
        self.deadline.held.clear()
        self.assertEqual([errors.Code.DRIFT_REPAIRED], self.codes(self.run_()))
        self.hypervisor.away = False
        self.assertEqual(
            [errors.Code.HYPERVISOR_BACK], self.codes(self.run_())
        )
        self.assertIn(101, self.deadline.held)

    def test_a_restarted_agent_applies_and_says_nothing_again(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        applied = list(self.deadline.applied)
        self.make()
        reports = self.run_()
        self.assertEqual(applied, self.deadline.applied)
        self.assertEqual([], self.codes(reports))
        # The first batch is full all the same.
        self.assertEqual([('1', State.APPLIED)], self.states(reports))

    def test_a_restarted_agent_attests_what_it_can_not_read(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.run_(fakes.domain(1, cpu_runtime_us='much'))
        self.make()
        said = self.run_()[0].reservations[0]
        self.assertEqual(
            (State.REFUSED, 12_000), (said.state, said.enforced_runtime_us)
        )
        self.deadline.held.clear()
        self.assertEqual([errors.Code.DRIFT_REPAIRED], self.codes(self.run_()))

    def test_a_restarted_agent_takes_up_all_before_it_admits_more(self):
        self.run_(fakes.domain(2, cpu_runtime_us=19_000))
        self.make()
        reports = self.run_(fakes.domain(1, cpu_runtime_us=19_000))
        self.assertIn(('1', State.REFUSED), self.states(reports))
        self.assertIn(201, self.deadline.held)
        self.assertNotIn(101, self.deadline.held)

    def test_what_drifted_while_the_agent_was_away_goes_first(self):
        self.run_(fakes.domain(2, cpu_runtime_us=19_000))
        self.deadline.held.clear()
        self.make()
        reports = self.run_(fakes.domain(1, cpu_runtime_us=19_000))
        self.assertIn(('1', State.REFUSED), self.states(reports))
        self.assertEqual({201}, set(self.deadline.held))

    def test_instances_that_left_while_the_agent_was_away(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.hypervisor.running.clear()
        self.make()
        reports = self.run_()
        self.assertEqual((), reports[0].instances)
        self.assertEqual([], self.journal.touched())
        self.assertEqual({}, self.journal.reservations())

    def test_one_that_left_and_cannot_be_forgotten(self):
        self.run_(
            fakes.domain(1, cpu_runtime_us=3_000),
            fakes.domain(2, cpu_runtime_us=3_000),
        )
        self.hypervisor.running.clear()
        self.make()
        real = self.journal.note_reservations

        def note_reservations(reports, gone=()):
            if fakes.domain(1).uuid in gone:
                raise OSError('no space is left')
            real(reports, gone)

        self.patch(self.journal, 'note_reservations', note_reservations)
        self.run_(fakes.domain(3, cpu_runtime_us=6_000))
        self.assertIn(301, self.deadline.held)
        self.assertEqual(
            [fakes.domain(1).uuid, fakes.domain(3).uuid],
            sorted(self.journal.reservations()),
        )

    def test_dead_threads_wait_for_new_ones(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        self.deadline.dead = {101}
        self.run_()
        self.assertEqual(
            [('1', State.PENDING)], self.states(self.run_(due=False))
        )
        self.run_(fakes.domain(1, pid=700, cpu_runtime_us=12_000))
        self.assertIn(701, self.deadline.held)

    def test_one_instances_failure_does_not_affect_the_others(self):
        self.deadline.prior = mock.Mock(
            side_effect=[OSError('the helper died'), {}, {}]
        )
        reports = self.run_(
            fakes.domain(1, cpu_runtime_us=4_000),
            fakes.domain(2, cpu_runtime_us=4_000),
        )
        self.assertEqual([('2', State.APPLIED)], self.states(reports))
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))

    def test_a_failed_observation_is_repeated(self):
        self.hypervisor.domain = mock.Mock(
            side_effect=[
                OSError('the test says so'),
                fakes.domain(1, cpu_runtime_us=4_000),
            ]
        )
        self.run_()
        self.reconciler.changed(fakes.domain(1).uuid)
        self.assertEqual([], self.states(self.run_()))
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))

    def test_one_that_fails_each_pass_is_logged_once(self):
        log = self.reconciler._problems._log = mock.Mock()
        self.deadline.prior = mock.Mock(side_effect=OSError('no'))
        for _ in range(5):
            reports = self.run_(
                fakes.domain(1, cpu_runtime_us=4_000), fakes.domain(2)
            )
            self.assertEqual([], self.states(reports))
        self.assertEqual(5, self.deadline.prior.call_count)
        log.log.assert_called_once()
        self.assertIsInstance(log.log.call_args.kwargs['exc_info'], OSError)

    def test_dead_threads_are_retried_once_an_interval(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.deadline.dead = {101}
        self.run_()
        self.assertEqual(
            [('1', State.PENDING)], self.states(self.run_(due=False))
        )
        self.deadline.dead = set()
        self.assertEqual([], self.states(self.run_(due=False)))
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))

    def test_a_full_buffer_drops_the_oldest_and_says_so(self):
        self.make(outbox_batches=2)
        self.hypervisor.running = {'u': fakes.domain(1)}
        for _ in range(4):
            self.reconciler.run_pass()
        reports = self.run_()
        self.assertIn(errors.Code.REPORTS_DROPPED, self.codes(reports))
        self.assertIsNotNone(reports[-1].host_info)

    def test_before_the_first_listing_no_instances_are_reported(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        self.make()
        self.hypervisor.away = True
        self.reconciler.start()
        self.reconciler.stop()
        reports = self.run_()
        self.assertEqual([errors.Code.AGENT_STARTED], self.codes(reports))
        # An empty one would say that every instance has left the host.
        self.assertEqual([None], [one.instances for one in reports])
        self.assertEqual([], self.states(reports))
        self.hypervisor.away = False
        self.reconciler.changed(None)
        reports = self.run_()
        self.assertEqual(1, len(reports[0].instances))
        self.assertEqual([('1', State.APPLIED)], self.states(reports))

    def test_resync_reports_everything(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.reconciler.resync()
        reports = self.run_()
        self.assertEqual([('1', State.APPLIED)], self.states(reports))
        self.assertIsNotNone(reports[0].host_info)
        self.assertIsNotNone(reports[0].instances)

    def test_a_changed_capacity_is_reported_and_tried(self):
        self.run_(fakes.domain(1, vcpus=3, cpu_runtime_us=12_000))
        self.run_(fakes.domain(2, cpu_runtime_us=12_000))
        self.capacity_mcpu = 2700
        self.deadline.bound = Fraction(27, 10)
        self.capacity.value = type(self.capacity.value)(3, Fraction(27, 10))
        reports = self.run_()
        self.assertEqual([errors.Code.CAPACITY_CHANGED], self.codes(reports))
        self.assertEqual(2700, reports[0].host_info.capacity_mcpu)
        self.assertIn(('2', State.APPLIED), self.states(self.run_()))
        self.deadline.bound = Fraction(18, 10)
        self.capacity_mcpu = 1800
        self.assertIn(errors.Code.CAPACITY_CHANGED, self.codes(self.run_()))

    def test_leaked_bandwidth_is_reported_once(self):
        self.run_()
        self.leaked_mcpu = 300
        reports = self.run_() + self.run_()
        self.assertEqual([errors.Code.BANDWIDTH_LEAKED], self.codes(reports))
        self.assertIn('300 mcpu', reports[0].events[0].detail)

    def test_the_loop_acts_on_a_change_and_stops(self):
        self.reconciler.start()
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.hypervisor.running[one.uuid] = one
        self.reconciler.changed(one.uuid)
        self.reconciler.stop()
        self.assertFalse(self.reconciler._thread.is_alive())


class Divider:
    """Divides what the test says."""

    def __init__(self):
        self.aware = {}
        self.changes = []
        self.forgotten = []

    def set_aware(self, uuid, aware):
        self.aware[uuid] = aware

    def forget(self, uuid):
        self.forgotten.append(uuid)

    def adjust(self, domains, samples, threads):
        changes, self.changes = self.changes, []
        return changes


class TestCommunication(passes.TestCase):
    def setUp(self):
        super().setUp()
        self.divider = Divider()
        self.make(communication=self.divider)

    def change(self, uuid, granularity):
        self.divider.changes = [
            communication.Change(
                uuid,
                messages.CommunicationReport(granularity),
                communication.Event(
                    errors.Code.PERIOD_DIVIDED,
                    messages.Severity.INFO,
                    'because',
                    {'granularity': granularity},
                ),
            )
        ]

    def test_aware_by_its_flavor(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        two = fakes.domain(2, cpu_runtime_us=4_000, comm_aware='false')
        self.run_(one, two)
        self.assertEqual({one.uuid: True, two.uuid: False}, self.divider.aware)

    def test_changes_are_reported_and_kept(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.run_(one)
        self.change(one.uuid, 4)
        (report,) = self.run_()
        self.assertEqual([errors.Code.PERIOD_DIVIDED], self.codes([report]))
        self.assertEqual('instance-1: because', report.events[0].detail)
        (found,) = report.reservations
        self.assertEqual(4, found.communication.granularity)
        # With the next report of the reservation as well.
        (report,) = self.run_(fakes.domain(1, cpu_runtime_us=6_000))
        self.assertEqual(4, report.reservations[0].communication.granularity)

    def test_of_an_instance_that_has_left(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.run_(one)
        del self.hypervisor.running[one.uuid]
        self.reconciler.changed(None)
        self.change(one.uuid, 4)
        reports = self.run_()
        self.assertEqual([], self.codes(reports))
        self.assertEqual([one.uuid], self.divider.forgotten)
