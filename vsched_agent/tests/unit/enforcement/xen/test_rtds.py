# SPDX-License-Identifier: Apache-2.0

"""Backend rtds, with a toolstack that only pretends."""

from fractions import Fraction
import itertools
import os

import fixtures
from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement.xen import rtds as backends
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.privileged import xen
from vsched_agent.tests import assignments
from vsched_agent.tests import backend_suite
from vsched_agent.tests import fake_xl
from vsched_lib.contract import errors
from vsched_lib.model import reservation
from vsched_lib.model import rtds

R = reservation.Reservation


class RtdsCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.xl = self.useFixture(fake_xl.FakeXl())
        self.now = 0.0
        self.backend = backends.RtdsBackend(
            scheduler.Scheduler(clock=lambda: self.now)
        )
        self.domids = itertools.count(1)

    def targets(self, count):
        """vCPUs of domains of their own."""
        made = []
        for index in range(count):
            domid = next(self.domids)
            self.xl.start(domid)
            made.append(enforcement.Target(index, vcpu_ids.encode(domid)))
        return made

    def instance(self, vcpus):
        """All vCPUs of one domain."""
        domid = next(self.domids)
        self.xl.start(domid, vcpus)
        return [
            enforcement.Target(index, vcpu_ids.encode(domid, index))
            for index in range(vcpus)
        ]

    def end(self, target):
        self.xl.end(vcpu_ids.decode(target.tid)[0])
        self.now += 60


class TestSuite(RtdsCase, backend_suite.BackendSuite):
    pass


class TestSupport(RtdsCase):
    def reason(self):
        support = self.backend.supports()
        self.assertFalse(support.usable)
        (reason,) = support.reasons
        return reason

    def test_the_silent_fall_back(self):
        self.xl.scheduler = 'credit2'
        reason = self.reason()
        self.assertIn('was started with sched=rtds and runs credit2', reason)
        self.assertIn('CONFIG_SCHED_RTDS', reason)

    def test_another_scheduler(self):
        self.xl.scheduler, self.xl.words = 'credit', ''
        reason = self.reason()
        self.assertIn('runs credit: start it with sched=rtds', reason)

    def test_one_pool_only(self):
        self.xl.pools = 2
        self.assertIn('2 CPU pools', self.reason())

    def test_no_toolstack(self):
        self.xl.unavailable = 'there is no xl'
        self.assertEqual('there is no xl', self.reason())


class TestApply(RtdsCase):
    def test_all_vcpus_by_one_command(self):
        self.xl.cpus = 6
        targets = self.instance(3)
        self.backend.apply_each(
            assignments.alike(
                targets, R(6_000, 10_000, reservation.Mode.WORK_CONSERVING)
            )
        )
        sent = [one for one in self.xl.commands if '-d' in one]
        self.assertEqual(1, len(sent))
        self.assertEqual(
            [[10_000, 6_000, True]] * 3,
            [self.xl.vcpus[1, index] for index in range(3)],
        )
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[0, 0])

    def test_what_is_in_force_is_not_sent_again(self):
        targets = self.instance(1)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        sent = len([one for one in self.xl.commands if '-d' in one])
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.assertEqual(
            sent, len([one for one in self.xl.commands if '-d' in one])
        )

    def test_the_default_can_be_reserved(self):
        targets = self.instance(1)
        self.assertEqual([None], list(self.backend.read(targets).values()))
        reserved = R(
            rtds.DEFAULT_BUDGET_US,
            rtds.DEFAULT_PERIOD_US,
            reservation.Mode.WORK_CONSERVING,
        )
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, reserved))
        self.assertEqual(
            [enforcement.Enforced.of(reserved)],
            list(self.backend.read(targets).values()),
        )
        self.backend.restore(targets, prior)
        self.assertEqual([None], list(self.backend.read(targets).values()))

    def test_a_failure_restores_what_was_set(self):
        self.xl.cpus = 6
        targets = self.instance(3)
        self.backend.apply_each(assignments.alike(targets, R(2_000, 10_000)))
        self.xl.problem = 'setting vcpu sched rtds', 2
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(targets, R(6_000, 10_000)),
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertIn('setting vcpu', refusal.detail)
        self.assertEqual(
            [[10_000, 2_000, False]] * 3,
            [self.xl.vcpus[1, index] for index in range(3)],
        )

    def test_the_helper_bounds_the_sum_itself(self):
        """Admission happens before, and others set budgets meanwhile."""
        targets = self.instance(2)
        self.instance(1)
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(targets, R(8_001, 10_000)),
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertIn(
            'the budgets of all vCPUs would be 2401 mcpu of 2000: 1601 of '
            'domain 1, and 800 of all others',
            refusal.detail,
        )
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 0])
        self.assertEqual(frozenset(), self.backend.reserved())

    def test_what_cannot_be_restored_is_no_refusal(self):
        targets = self.instance(2)
        real = self.xl._set

        def half(domid, words):
            real(domid, words[:8])
            self.xl.unavailable = 'xl was killed'
            raise xen.ToolstackError('xl was killed')

        self.xl._set = half
        # Refused promises that every thread has what it had.
        self.assertRaises(
            scheduler.SchedulerUnavailable,
            self.backend.apply_each,
            assignments.alike(targets, R(6_000, 10_000)),
        )

    def test_more_vcpus_than_a_command_takes(self):
        self.xl.cpus = 6
        targets = self.instance(9)
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(2_000, 10_000)))
        self.assertEqual(
            [[10_000, 2_000, False]] * 9,
            [self.xl.vcpus[1, index] for index in range(9)],
        )
        self.backend.restore(targets, prior)
        self.assertEqual(
            [[10_000, 4_000, True]] * 9,
            [self.xl.vcpus[1, index] for index in range(9)],
        )

    def test_parameters_that_only_a_whole_domain_can_have(self):
        """They do not keep other instances from a reservation."""
        targets = self.instance(1)
        self.xl.start(99)
        self.xl.vcpus[99, 0] = [60_000_000, 5, False]
        self.backend.apply_each(assignments.alike(targets, R(2_000, 10_000)))
        self.assertEqual([10_000, 2_000, False], self.xl.vcpus[1, 0])

    def test_a_domain_that_ends_meanwhile(self):
        targets = self.instance(1)
        real = self.xl._set

        def end_first(domid, words):
            self.xl.end(domid)
            return real(domid, words)

        self.xl._set = end_first
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(targets, R(6_000, 10_000)),
        )
        self.assertEqual(errors.Code.THREADS_GONE, refusal.code)

    def test_what_rtds_cannot_express(self):
        targets = self.instance(1)
        for reserved in (R(5, 10_000), R(6_001, 10_000, granularity=2)):
            refusal = self.assertRaises(
                errors.Refused,
                self.backend.apply_each,
                assignments.alike(targets, reserved),
            )
            self.assertEqual(errors.Code.RESERVATION_INVALID, refusal.code)

    def test_a_small_one_is_applied_with_a_warning(self):
        targets = self.instance(2)
        self.backend.apply_each(assignments.alike(targets, R(500, 10_000)))
        self.assertIn('at least 1000 us', self.log.output)
        self.assertEqual(1, self.log.output.count('at least 1000 us'))

    def test_threads_of_linux_are_none(self):
        target = enforcement.Target(0, os.getpid())
        self.assertEqual({}, self.backend.read([target]))
        self.assertEqual({}, self.backend.prior([target]))
        self.backend.restore([target], {})
        self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            [(target, R(6_000, 10_000))],
        )


class TestRestore(RtdsCase):
    def test_what_an_operator_had_set(self):
        targets = self.instance(2)
        self.xl.vcpus[1, 0] = [30_000, 9_000, False]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.backend.restore(targets, prior)
        self.assertEqual([30_000, 9_000, False], self.xl.vcpus[1, 0])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 1])

    def test_a_failure_is_told_and_forgets_nothing(self):
        self.xl.cpus = 6
        first, second = self.instance(2), self.instance(1)
        targets = [*first, *second]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.xl.problem = 'busy', 1
        self.assertRaises(
            scheduler.SchedulerUnavailable,
            self.backend.restore,
            targets,
            prior,
        )
        # The other domain is as it was found all the same.
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[2, 0])
        # It counts as what other domains have does.
        self.assertEqual(frozenset(), self.backend.reserved())
        self.xl.problem = None
        self.backend.restore(targets, prior)
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 1])
        self.assertEqual(frozenset(), self.backend.reserved())

    def test_without_a_prior_state(self):
        targets = self.instance(1)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.backend.restore(targets, {})
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 0])
        self.assertEqual(frozenset(), self.backend.reserved())

    def unfit(self, targets, prior):
        return self.assertRaises(
            enforcement.NotRestored, self.backend.restore, targets, prior
        )

    def test_the_smallest_changes_that_fit(self):
        targets = self.instance(3)
        self.xl.vcpus[1, 0] = [10_000, 3_000, False]
        self.xl.vcpus[1, 1] = [10_000, 7_000, True]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(2_000, 20_000)))
        self.instance(2)
        # Of 2000 mcpu, 500 are left: 200, 600 and 300 mcpu are needed.
        error = self.unfit(targets, prior)
        self.assertEqual(
            [
                [10_000, 3_000, False],
                # All of the reservation's.
                [20_000, 2_000, False],
                [10_000, 4_000, True],
            ],
            [self.xl.vcpus[1, index] for index in range(3)],
        )
        self.assertEqual({targets[1].tid}, error.tids)
        self.assertEqual(
            {
                'vcpus': 1,
                'found_mcpu': 700,
                'present_mcpu': 100,
                'left_mcpu': 0,
            },
            error.figures,
        )
        self.assertIn('0 mcpu are left', str(error))
        self.xl.end(2)
        self.backend.restore(targets, prior)
        self.assertEqual([10_000, 7_000, True], self.xl.vcpus[1, 1])

    def test_what_needs_less_makes_room_first(self):
        targets = self.instance(2)
        self.xl.vcpus[1, 0] = [10_000, 8_000, True]
        self.xl.vcpus[1, 1] = [10_000, 1_000, True]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.instance(1)
        self.assertEqual(Fraction(-3, 10), self.backend.growth(targets, prior))
        self.backend.restore(targets, prior)
        self.assertEqual([10_000, 8_000, True], self.xl.vcpus[1, 0])
        self.assertEqual([10_000, 1_000, True], self.xl.vcpus[1, 1])

    def test_more_than_there_is_was_found(self):
        """Xen takes any sum, and the helper none that grows beyond."""
        targets = self.instance(1)
        self.instance(4)
        prior = self.backend.prior(targets)
        self.xl.vcpus[1, 0] = [10_000, 1_000, False]
        self.now += 1
        self.assertEqual(Fraction(3, 10), self.backend.growth(targets, prior))
        error = self.unfit(targets, prior)
        self.assertEqual(0, error.figures['left_mcpu'])
        self.xl.vcpus[1, 0] = [10_000, 9_000, False]
        self.backend.restore(targets, prior)
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 0])

    def test_ended_domains_are_forgotten(self):
        targets = self.instance(1)
        self.backend.resume([(targets[0], R(6_000, 10_000))])
        self.assertEqual({(1, 0)}, self.backend.reserved())
        self.end(targets[0])
        self.backend.refresh()
        self.assertEqual(frozenset(), self.backend.reserved())


class TestReading(RtdsCase):
    def test_one_process_for_all(self):
        targets = self.instance(4) + self.instance(4)
        for _ in range(3):
            self.assertEqual(8, len(self.backend.read(targets)))
        self.assertEqual(1, len(self.xl.commands))
        self.now += scheduler.AGE_S
        self.backend.read(targets)
        self.assertEqual(2, len(self.xl.commands))

    def test_a_slow_failure_is_not_waited_for_by_all(self):
        targets = self.instance(1)
        asked = []

        def hang(*arguments):
            asked.append(arguments)
            self.now += 30
            raise xen.ToolstackError('it took longer than 30 s')

        self.patch(xen, '_run', hang)
        for _ in range(3):
            problem = self.assertRaises(
                scheduler.SchedulerUnavailable, self.backend.read, targets
            )
            self.assertIn('longer than 30 s', str(problem))
        self.assertEqual(1, len(asked))
        self.patch(xen, '_run', self.xl.run)
        self.now += scheduler.PAUSE_S
        self.assertEqual([None], list(self.backend.read(targets).values()))

    def test_a_failure_is_no_end_of_all_domains(self):
        targets = self.instance(1)
        self.xl.unavailable = 'xl took too long'
        self.assertRaises(
            scheduler.SchedulerUnavailable, self.backend.read, targets
        )
        for refused, *arguments in (
            (self.backend.prior, targets),
            (
                self.backend.apply_each,
                assignments.alike(targets, R(6_000, 10_000)),
            ),
        ):
            refusal = self.assertRaises(errors.Refused, refused, *arguments)
            self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
            self.assertIn('xl took too long', refusal.detail)
