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

"""What instances come to hold, and what is said of it."""

import dataclasses

from vsched_agent.tests import bad_extra_specs
from vsched_agent.tests import fakes
from vsched_agent.tests import passes
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State


class TestSettler(passes.TestCase):

    def test_io_without_a_price_is_told_once(self):
        costs = passes.Costs()
        self.make(costs=costs)
        one = fakes.domain(1, cpu_runtime_us=3_000, net_rx_pps=10,
                           io_charging='overprovision')
        unpriced = errors.Code.IO_UNPRICED
        self.assertIn(unpriced, self.codes(self.run_(one)))
        self.reconciler.changed(one.uuid)
        self.assertNotIn(unpriced, self.codes(self.run_()))
        # It is gone, and what comes back is told of like any other.
        del self.hypervisor.running[one.uuid]
        self.reconciler.changed(one.uuid)
        self.run_()
        self.assertIn(unpriced, self.codes(self.run_(one)))
        costs.why = None
        self.assertNotIn(unpriced, self.codes(self.run_(
            one, fakes.domain(2, cpu_runtime_us=3_000, net_rx_pps=10,
                              io_charging='overprovision'))))

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
        for number, specs in enumerate(bad_extra_specs.SETS, 1):
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
        for specs in bad_extra_specs.SETS:
            with self.subTest(specs=specs):
                reports = self.run_(fakes.domain(1, **specs)) + self.run_()
                self.assertEqual([errors.Code.EXTRA_SPECS_INVALID],
                                 self.codes(reports))
                details.add(reports[0].reservations[0].detail)
        self.assertEqual(len(bad_extra_specs.SETS), len(details))

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
