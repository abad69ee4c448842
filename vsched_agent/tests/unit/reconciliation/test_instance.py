# SPDX-License-Identifier: Apache-2.0

"""How instances are reconciled, and what is reported of it."""

import dataclasses

from vsched_agent.tests import bad_extra_specs
from vsched_agent.tests import fakes
from vsched_agent.tests import passes
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State


class TestInstanceReconciler(passes.TestCase):
    def test_io_without_a_price_is_reported_once(self):
        costs = passes.Costs()
        self.make(costs=costs)
        one = fakes.domain(
            1, cpu_runtime_us=3_000, net_rx_pps=10, io_charging='overprovision'
        )
        unpriced = errors.Code.IO_UNPRICED
        self.assertIn(unpriced, self.codes(self.run_(one)))
        self.reconciler.changed(one.uuid)
        self.assertNotIn(unpriced, self.codes(self.run_()))
        # An instance that comes back is reported like any other.
        del self.hypervisor.running[one.uuid]
        self.reconciler.changed(one.uuid)
        self.run_()
        self.assertIn(unpriced, self.codes(self.run_(one)))
        costs.why = None
        self.assertNotIn(
            unpriced,
            self.codes(
                self.run_(
                    one,
                    fakes.domain(
                        2,
                        cpu_runtime_us=3_000,
                        net_rx_pps=10,
                        io_charging='overprovision',
                    ),
                )
            ),
        )

    def test_a_flavors_reservation_is_applied_and_reported_once(self):
        reports = self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        self.assertEqual([('1', State.APPLIED)], self.states(reports))
        self.assertEqual(
            [errors.Code.RESERVATION_APPLIED], self.codes(reports)
        )
        self.assertEqual(12_000, self.deadline.held[101].runtime_us)
        sent = reports[0].reservations[0]
        self.assertEqual(messages.Source.METADATA, sent.source)
        self.assertEqual('deadline', sent.enforced_backend)
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
                self.assertEqual(
                    [errors.Code.EXTRA_SPECS_INVALID], self.codes(reports)
                )
                event = [
                    event for report in reports for event in report.events
                ][0]
                self.assertEqual(one.uuid, event.instance_uuid)
                self.assertIn('vsched:', event.detail)
                self.assertLess(len(event.detail), 1000)
        self.assertEqual([], self.deadline.applied + self.cfs.applied)
        self.assertEqual([], self.journal.touched())

    def test_bad_metadata_keeps_what_the_instance_had(self):
        self.run_(fakes.domain(1, cpu_runtime_us=12_000))
        reports = self.run_(fakes.domain(1, cpu_runtime_us='much'))
        self.assertEqual([('1', State.REFUSED)], self.states(reports))
        sent = reports[0].reservations[0]
        self.assertEqual(12_000, sent.enforced_runtime_us)
        self.assertIn(101, self.deadline.held)

    def test_one_bad_set_after_another_on_one_instance(self):
        details = set()
        for specs in bad_extra_specs.SETS:
            with self.subTest(specs=specs):
                reports = self.run_(fakes.domain(1, **specs)) + self.run_()
                self.assertEqual(
                    [errors.Code.EXTRA_SPECS_INVALID], self.codes(reports)
                )
                details.add(reports[0].reservations[0].detail)
        self.assertEqual(len(bad_extra_specs.SETS), len(details))

    def test_metadata_that_is_no_xml(self):
        one = dataclasses.replace(
            fakes.domain(1), metadata_problem='not well formed'
        )
        reports = self.run_(one)
        self.assertEqual(
            [errors.Code.EXTRA_SPECS_INVALID], self.codes(reports)
        )

    def test_an_override_wins_and_its_end_gives_the_flavor_back(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                5,
                (
                    collector_replies.Override(
                        one.uuid, 5, 6_000, 20_000, 'capped'
                    ),
                ),
            )
        )
        reports = self.run_(due=False)
        sent = reports[0].reservations[0]
        self.assertEqual(
            (messages.Source.OVERRIDE, 5, 6_000),
            (sent.source, sent.generation, sent.enforced_runtime_us),
        )
        self.assertEqual(6_000, self.deadline.held[101].runtime_us)
        self.reconciler.set_overrides(collector_replies.Overrides(6))
        reports = self.run_(due=False)
        self.assertEqual(
            messages.Source.METADATA, reports[0].reservations[0].source
        )
        self.assertEqual(12_000, self.deadline.held[101].runtime_us)

    def test_overrides_of_instances_that_are_not_here_change_nothing(self):
        one = fakes.domain(1, cpu_runtime_us=12_000)
        self.run_(one)
        held = dict(self.deadline.held)
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                5,
                tuple(
                    collector_replies.Override(
                        fakes.domain(number).uuid, 5, 6_000, 20_000, 'capped'
                    )
                    for number in range(2, 12)
                ),
            )
        )
        reports = self.run_(due=False)
        self.assertEqual(held, self.deadline.held)
        self.assertEqual(
            [],
            [
                reservation
                for report in reports
                for reservation in report.reservations
                if reservation.instance_uuid != one.uuid
            ],
        )

    def test_an_override_for_an_instance_without_one_and_back(self):
        one = fakes.domain(1)
        self.run_(one)
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                1,
                (
                    collector_replies.Override(
                        one.uuid, 1, 6_000, 20_000, 'capped'
                    ),
                ),
            )
        )
        self.assertEqual([('1', State.APPLIED)], self.states(self.run_()))
        self.reconciler.set_overrides(collector_replies.Overrides(2))
        reports = self.run_()
        self.assertEqual([('1', State.RELEASED)], self.states(reports))
        self.assertEqual(
            [errors.Code.RESERVATION_RELEASED], self.codes(reports)
        )
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.touched())

    def test_an_invalid_override(self):
        one = fakes.domain(1)
        self.reconciler.set_overrides(
            collector_replies.Overrides(
                1,
                (
                    collector_replies.Override(
                        one.uuid, 1, 6_000, 5_000, 'capped'
                    ),
                ),
            )
        )
        reports = self.run_(one)
        self.assertEqual(
            [errors.Code.RESERVATION_INVALID], self.codes(reports)
        )

    def test_refused_until_there_is_room(self):
        self.run_(fakes.domain(1, cpu_runtime_us=16_000))
        reports = self.run_(fakes.domain(2, vcpus=2, cpu_runtime_us=12_000))
        self.assertEqual([('2', State.REFUSED)], self.states(reports))
        self.assertEqual([errors.Code.DOES_NOT_FIT], self.codes(reports))
        self.assertEqual([], self.codes(self.run_()))
        self.hypervisor.running = {
            uuid: one
            for uuid, one in self.hypervisor.running.items()
            if one.pid != 100
        }
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
