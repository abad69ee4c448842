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
from fractions import Fraction
import os
import tempfile
from unittest import mock

from oslotest import base

from vsched_agent import enforcer
from vsched_agent import journal
from vsched_agent import reconciler
from vsched_agent.tests import fakes
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import error_change
from vsched_lib.model import reservation
from vsched_lib.tests import overhead_profiles

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
State = messages.State

#: Sets that say nothing enforceable; each must give one event and leave the
#: instance untouched.
BAD_EXTRA_SPECS = (
    {'cpu_runtime_us': '-1'},
    {'cpu_runtime_us': '0'},
    {'cpu_runtime_us': '1'},
    {'cpu_runtime_us': ''},
    {'cpu_runtime_us': ' 12000'},
    {'cpu_runtime_us': '12_000'},
    {'cpu_runtime_us': '12000.5'},
    {'cpu_runtime_us': '0x10'},
    {'cpu_runtime_us': '1e4'},
    {'cpu_runtime_us': '9' * 30},
    {'cpu_runtime_us': '18446744073709551617'},
    {'cpu_runtime_us': '\u0661\u0662\u0660\u0660\u0660'},
    {'cpu_runtime_us': '12000\u200b'},
    {'cpu_runtime_us': 'x' * 10_000},
    {'cpu_runtime_us': '20001'},
    {'cpu_runtime_us': '12000', 'cpu_period_us': '11999'},
    {'cpu_runtime_us': '50', 'cpu_period_us': '99'},
    {'cpu_period_us': '20000'},
    {'cpu_mode': 'capped'},
    {'cpu_runtime_us': '12000', 'cpu_mode': 'Capped'},
    {'cpu_runtime_us': '12000', 'backend': 'fifo'},
    {'cpu_runtime_us': '900', 'cpu_period_us': '2000', 'backend': 'cfs'},
    {'cpu_runtime_us': '12000', 'backend': 'cfs',
     'cpu_mode': 'work_conserving'},
    {'cpu_runtime_us': '12000', 'cpu_runtime': '12000'},
    {'cpu_runtime_us': '12000', '\u00b5': '1'},
    {'cpu_runtime_us': '12000', 'balloon': 'off', 'min_vcpus': '1'},
    {'cpu_runtime_us': '12000', 'min_vcpus': '1'},
    {'cpu_runtime_us': '12000', 'max_alloc_error_pct': 'nan'},
    {'cpu_runtime_us': '12000', 'comm_aware': 'yes'},
    {'cpu_runtime_us': '12000', 'weight': '0'},
)


class TestReconciler(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.journal = journal.Journal(
            os.path.join(folder.name, 'agent.sqlite'))
        self.addCleanup(self.journal.close)
        self.hypervisor = fakes.FakeHypervisor()
        self.deadline = fakes.FakeBackend(DEADLINE, Fraction(18, 10))
        self.cfs = fakes.FakeBackend(CFS)
        self.capacity = fakes.FakeCapacity(Fraction(18, 10))
        self.degrade = False
        self.make()

    class Profiles:
        """Tells what the test says, and margins with it."""

        def __init__(self):
            self.new = []
            self.extra_us = 0
            self.seen = []

        def look(self):
            found, self.new = self.new, []
            return found

        def attested(self, holdings):
            self.seen.append([held.asked.runtime_us for held in holdings
                              if held.asked is not None])

        def grant(self, promise, backend, bound_ppm):
            return promise if bound_ppm is None else dataclasses.replace(
                promise, runtime_us=promise.runtime_us + self.extra_us)

    def make(self, **settings):
        self.profiles = self.Profiles()
        backends = {DEADLINE: self.deadline, CFS: self.cfs}
        self.pokes = []
        self.reconciler = reconciler.Reconciler(
            reconciler.Settings('here', report_interval_s=0, **settings),
            self.hypervisor,
            enforcer.Enforcer(
                backends, lambda name: backends[name].supports(),
                self.capacity, self.journal, degrade=self.degrade,
                tick_us=4000, margins=self.profiles),
            self.journal, fakes.FakeMeter(), self.host_info,
            lambda: self.pokes.append(1), self.profiles)
        self.hypervisor.start(self.reconciler.changed)

    capacity_mcpu = 1800
    leaked_mcpu = 0

    def host_info(self):
        return messages.HostInfo(
            '1', '6', 'b', 'fake', 2, 4000, self.capacity_mcpu, 0, 0,
            leaked_mcpu=self.leaked_mcpu)

    def run_(self, *domains, due=True):
        """One pass; returns what it reported, merged."""
        for one in domains:
            self.hypervisor.running[one.uuid] = one
            self.reconciler.changed(one.uuid)
        self.reconciler.run_pass(due)
        merged = []
        while (report := self.journal.oldest()) is not None:
            self.journal.confirm(report.batch)
            merged.append(report)
        return merged

    def states(self, reports):
        return [(one.instance_uuid[-1], one.state)
                for report in reports for one in report.reservations]

    def codes(self, reports):
        return [one.code for report in reports for one in report.events]

    def test_a_new_profile_is_told_and_changes_margins(self):
        bounded = fakes.domain(
            1, cpu_runtime_us=12_000, max_alloc_error_pct='2')
        self.run_(bounded, fakes.domain(2, cpu_runtime_us=3_000))
        self.assertEqual([12_000, 3_000], self.profiles.seen[-1])
        before = profiles.profile(profiles.point([0] * 200))
        after = profiles.profile(profiles.point([-30_000] * 200), version=2)
        self.profiles.new = [(after, error_change.changes(
            before.points, after.points))]
        self.profiles.extra_us = 150
        reports = self.run_()
        self.assertEqual([after], [one for report in reports
                                   for one in report.error_profiles])
        self.assertEqual([errors.Code.PROFILE_DRIFTED,
                          errors.Code.RESERVATION_APPLIED],
                         self.codes(reports))
        self.assertEqual(
            [('1', 12_000, 12_150)],
            [(one.instance_uuid[-1], one.runtime_us,
              one.enforced_runtime_us)
             for report in reports for one in report.reservations])
        self.assertEqual([12_000, 3_000], self.profiles.seen[-1])

    class Costs:
        """Tells what the test says."""

        def __init__(self):
            self.new = []
            self.why = 'not measured'
            self.samples = []

        def look(self):
            found, self.new = self.new, []
            return found

        def used(self, samples):
            self.samples.append(samples)

        def problem(self):
            return self.why

    def test_overhead_profiles_are_told(self):
        costs = self.reconciler._costs = self.Costs()
        told = overhead_profiles.profile()
        poor = overhead_profiles.profile(good=False, version=4)
        costs.new = [told, poor]
        reports = self.run_(fakes.domain(1))
        self.assertEqual([told, poor], [
            one for report in reports for one in report.overhead_profiles])
        self.assertEqual([errors.Code.PROFILE_POOR], self.codes(reports))
        self.assertEqual(1, len(costs.samples))

    def test_io_without_a_price_is_told_once(self):
        costs = self.reconciler._costs = self.Costs()
        one = fakes.domain(1, cpu_runtime_us=3_000, net_rx_pps=10,
                           io_charging='overprovision')
        unpriced = errors.Code.IO_UNPRICED
        self.assertIn(unpriced, self.codes(self.run_(one)))
        self.reconciler.changed(one.uuid)
        self.assertNotIn(unpriced, self.codes(self.run_()))
        costs.why = None
        self.assertNotIn(unpriced, self.codes(self.run_(
            one, fakes.domain(2, cpu_runtime_us=3_000, net_rx_pps=10,
                              io_charging='overprovision'))))

    def test_what_has_drifted_is_no_sample(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000),
                  fakes.domain(2, cpu_runtime_us=3_000))
        self.deadline.held.pop(101)
        self.run_()
        self.assertEqual([3_000], self.profiles.seen[-1])

    def test_jobs_are_told_at_once(self):
        self.run_(fakes.domain(1))
        report = messages.JobReport(
            'j', 1, messages.JobState.DONE, 1_000_000, 1.0)
        self.reconciler.job(report)
        found, = self.run_(due=False)
        self.assertEqual((report,), found.jobs)

    def test_a_flavors_reservation_is_applied_and_reported_once(self):
        reports = self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.assertEqual([('1', State.APPLIED)], self.states(reports))
        self.assertEqual([errors.Code.RESERVATION_APPLIED],
                         self.codes(reports))
        self.assertEqual(12_000, self.deadline.held[101].runtime_us)
        said = reports[0].reservations[0]
        self.assertEqual(messages.Source.METADATA, said.source)
        self.assertEqual('deadline', said.enforced_backend)
        self.assertEqual(1, len(reports[0].instances))
        self.assertIsNotNone(reports[0].host_info)
        reports = self.run_()
        self.assertEqual([], self.states(reports))
        self.assertEqual([], self.codes(reports))
        self.assertEqual(1, len(reports[0].usage))
        self.assertEqual(1, len(reports[0].host_usage))
        self.assertIsNone(reports[0].instances)
        self.assertIsNone(reports[0].host_info)

    def test_an_instance_without_one_is_left_alone(self):
        reports = self.run_(fakes.domain(1))
        self.assertEqual([], self.states(reports))
        self.assertEqual([], self.deadline.applied)
        self.assertEqual(1, len(reports[0].instances))

    def test_bad_extra_specs_give_one_event_each(self):
        for number, specs in enumerate(BAD_EXTRA_SPECS, 1):
            with self.subTest(specs=specs):
                one = fakes.domain(number, **specs)
                reports = self.run_(one) + self.run_(one)
                self.assertEqual([errors.Code.EXTRA_SPECS_INVALID],
                                 self.codes(reports))
                event = [event for report in reports
                         for event in report.events][0]
                self.assertEqual(one.uuid, event.instance_uuid)
                self.assertIn('vsched:', event.detail)
                self.assertLess(len(event.detail), 1000)
        self.assertEqual([], self.deadline.applied + self.cfs.applied)
        self.assertEqual([], self.journal.touched())

    def test_bad_metadata_keeps_what_the_instance_had(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        reports = self.run_(fakes.domain(1, cpu_runtime_us='much'))
        self.assertEqual([('1', State.REFUSED)], self.states(reports))
        said = reports[0].reservations[0]
        self.assertEqual(12_000, said.enforced_runtime_us)
        self.assertIn(101, self.deadline.held)

    def test_one_bad_set_after_another_on_one_instance(self):
        details = set()
        for specs in BAD_EXTRA_SPECS:
            with self.subTest(specs=specs):
                reports = self.run_(fakes.domain(1, **specs)) + self.run_()
                self.assertEqual([errors.Code.EXTRA_SPECS_INVALID],
                                 self.codes(reports))
                details.add(reports[0].reservations[0].detail)
        self.assertEqual(len(BAD_EXTRA_SPECS), len(details))

    def test_metadata_that_is_no_xml(self):
        one = dataclasses.replace(
            fakes.domain(1), metadata_problem='not well formed')
        reports = self.run_(one)
        self.assertEqual([errors.Code.EXTRA_SPECS_INVALID],
                         self.codes(reports))

    def test_an_override_wins_and_its_end_gives_the_flavor_back(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        self.reconciler.set_overrides(messages.Overrides(5, (
            messages.Override(one.uuid, 5, 6_000, 20_000, 'capped'),)))
        reports = self.run_(due=False)
        said = reports[0].reservations[0]
        self.assertEqual(
            (messages.Source.OVERRIDE, 5, 6_000),
            (said.source, said.generation, said.enforced_runtime_us))
        self.assertEqual(6_000, self.deadline.held[101].runtime_us)
        self.reconciler.set_overrides(messages.Overrides(6))
        reports = self.run_(due=False)
        self.assertEqual(messages.Source.METADATA,
                         reports[0].reservations[0].source)
        self.assertEqual(12_000, self.deadline.held[101].runtime_us)

    def test_an_override_for_an_instance_without_one_and_back(self):
        one = fakes.domain(1)
        self.run_(one)
        self.reconciler.set_overrides(messages.Overrides(1, (
            messages.Override(one.uuid, 1, 6_000, 20_000, 'capped'),)))
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))
        self.reconciler.set_overrides(messages.Overrides(2))
        reports = self.run_()
        self.assertEqual([('1', State.RELEASED)], self.states(reports))
        self.assertEqual([errors.Code.RESERVATION_RELEASED],
                         self.codes(reports))
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())

    def test_an_override_that_makes_no_sense(self):
        one = fakes.domain(1)
        self.reconciler.set_overrides(messages.Overrides(1, (
            messages.Override(one.uuid, 1, 6_000, 5_000, 'capped'),)))
        reports = self.run_(one)
        self.assertEqual([errors.Code.RESERVATION_INVALID],
                         self.codes(reports))

    def test_refused_until_there_is_room(self):
        self.run_(fakes.domain(1, cpu_runtime_us=16_000))
        reports = self.run_(fakes.domain(2, vcpus=2, cpu_runtime_us=12_000))
        self.assertEqual([('2', State.REFUSED)], self.states(reports))
        self.assertEqual([errors.Code.DOES_NOT_FIT], self.codes(reports))
        self.assertEqual([], self.codes(self.run_()))
        self.hypervisor.running = {
            uuid: one for uuid, one in self.hypervisor.running.items()
            if one.pid != 100}
        self.deadline.dead = {101}
        self.deadline.held.pop(101)
        self.reconciler.changed(fakes.domain(1).uuid)
        self.assertEqual([('2', State.APPLIED)], self.states(self.run_()))

    def test_degraded_says_so_and_climbs_back(self):
        self.degrade = True
        self.make()
        self.run_(fakes.domain(1, cpu_runtime_us=16_000))
        reports = self.run_(fakes.domain(2, vcpus=2, cpu_runtime_us=12_000))
        self.assertEqual([('2', State.DEGRADED)], self.states(reports))
        self.assertEqual('cfs', reports[0].reservations[0].enforced_backend)
        reports = self.run_(fakes.domain(1, cpu_runtime_us=2_000))
        reports += self.run_()
        self.assertIn(('2', State.APPLIED), self.states(reports))
        self.assertEqual({}, self.cfs.held)

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
        self.assertEqual([errors.Code.DRIFT_REPAIRED],
                         self.codes(self.run_()))
        self.hypervisor.away = False
        self.assertEqual([errors.Code.HYPERVISOR_BACK],
                         self.codes(self.run_()))
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
        self.assertEqual((State.REFUSED, 12_000), (
            said.state, said.enforced_runtime_us))
        self.deadline.held.clear()
        self.assertEqual([errors.Code.DRIFT_REPAIRED],
                         self.codes(self.run_()))

    def test_a_restarted_agent_takes_up_all_before_it_admits_more(self):
        self.run_(fakes.domain(2, cpu_runtime_us=19_000))
        self.make()
        reports = self.run_(fakes.domain(1, cpu_runtime_us=19_000))
        self.assertIn(('1', State.REFUSED), self.states(reports))
        self.assertIn(201, self.deadline.held)
        self.assertNotIn(101, self.deadline.held)

    def test_instances_that_left_while_the_agent_was_away(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.hypervisor.running.clear()
        self.make()
        reports = self.run_()
        self.assertEqual((), reports[0].instances)
        self.assertEqual([], self.journal.touched())
        self.assertEqual({}, self.journal.reservations())

    def test_dead_threads_wait_for_new_ones(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        self.deadline.dead = {101}
        self.run_()
        self.assertEqual([('1', State.PENDING)],
                         self.states(self.run_(due=False)))
        self.run_(fakes.domain(1, pid=700, cpu_runtime_us=12_000))
        self.assertIn(701, self.deadline.held)

    def test_one_instances_trouble_is_none_of_the_others(self):
        self.deadline.prior = mock.Mock(
            side_effect=[OSError('the helper died'), {}, {}])
        reports = self.run_(fakes.domain(1, cpu_runtime_us=4_000),
                            fakes.domain(2, cpu_runtime_us=4_000))
        self.assertEqual([('2', State.APPLIED)], self.states(reports))
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))

    def test_a_look_that_fails_is_done_again(self):
        self.hypervisor.domain = mock.Mock(side_effect=[
            OSError('the test says so'),
            fakes.domain(1, cpu_runtime_us=4_000)])
        self.run_()
        self.reconciler.changed(fakes.domain(1).uuid)
        self.assertRaises(OSError, self.reconciler.run_pass)
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))

    def test_dead_threads_are_looked_for_once_an_interval(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.deadline.dead = {101}
        self.run_()
        self.assertEqual([('1', State.PENDING)],
                         self.states(self.run_(due=False)))
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

    def test_before_the_first_look_no_list_is_told(self):
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

    def test_resync_tells_everything(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.reconciler.resync()
        reports = self.run_()
        self.assertEqual([('1', State.APPLIED)], self.states(reports))
        self.assertIsNotNone(reports[0].host_info)
        self.assertIsNotNone(reports[0].instances)

    def test_a_changed_capacity_is_told_and_tried(self):
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

    def test_leaked_bandwidth_is_told_once(self):
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
