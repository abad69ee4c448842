# SPDX-License-Identifier: Apache-2.0

"""Backends credit2 and credit, with a toolstack that only pretends."""

from fractions import Fraction
import itertools
import os

import ddt
import fixtures
from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement.xen import capacity
from vsched_agent.enforcement.xen import credit as backends
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.tests import assignments
from vsched_agent.tests import backend_suite
from vsched_agent.tests import fake_xl
from vsched_lib.contract import errors
from vsched_lib.model import reservation

R = reservation.Reservation
WORK_CONSERVING = reservation.Mode.WORK_CONSERVING


class CreditCase(base.BaseTestCase):
    """Two CPUs, and a first domain with the default weight."""

    name = reservation.Backend.CREDIT2

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger())
        self.xl = self.useFixture(fake_xl.FakeXl(scheduler=str(self.name)))
        self.xl.words = 'sched=%s' % self.name
        self.now = 0.0
        self.backend = self.started()
        self.domids = itertools.count(1)

    def started(self):
        """The backend of an agent that starts."""
        return backends.CreditBackend(
            self.name, scheduler.Scheduler(clock=lambda: self.now)
        )

    def targets(self, count):
        """vCPUs of domains of their own."""
        return [
            enforcement.Target(index, self.instance(1)[0].tid)
            for index in range(count)
        ]

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

    def sent(self):
        return [one for one in self.xl.commands if '-d' in one]

    def refused(self, assigned):
        return self.assertRaises(
            errors.Refused, self.backend.apply_each, assigned
        )


class TestCredit2(CreditCase, backend_suite.BackendSuite):
    pass


class TestCredit(CreditCase, backend_suite.BackendSuite):
    name = reservation.Backend.CREDIT


@ddt.ddt
class TestSupport(CreditCase):
    @ddt.data('rtds', 'credit')
    def test_another_scheduler(self, name):
        self.xl.scheduler = name
        support = self.backend.supports()
        self.assertEqual(
            ('the hypervisor runs %s: start it with sched=credit2' % name,),
            support.reasons,
        )
        self.assertFalse(support.usable)

    def test_one_pool_only(self):
        self.xl.pools = 2
        self.assertIn('2 CPU pools', self.backend.supports().reasons[0])

    def test_no_toolstack(self):
        self.xl.unavailable = 'there is no xl'
        self.assertEqual(('there is no xl',), self.backend.supports().reasons)


class TestApply(CreditCase):
    def test_weight_and_cap_by_one_command(self):
        targets = self.instance(3)
        self.backend.apply_each(assignments.alike(targets, R(5_000, 10_000)))
        self.assertEqual(
            [('sched-credit2', '-d', '1', '-w', '1500', '-c', '150')],
            self.sent(),
        )
        self.assertEqual([256, 0], self.xl.domains[0])

    def test_work_conserving_has_no_cap(self):
        targets = self.instance(1)
        reserved = R(6_000, 10_000, WORK_CONSERVING)
        self.backend.apply_each(assignments.alike(targets, reserved))
        self.assertEqual([600, 0], self.xl.domains[1])
        self.assertEqual(
            [enforcement.Enforced.of(reserved)],
            list(self.backend.read(targets).values()),
        )

    def test_each_vcpu_its_own(self):
        targets = self.instance(2)
        self.backend.apply_each(
            list(
                zip(targets, (R(6_000, 10_000), R(2_500, 20_000)), strict=True)
            )
        )
        self.assertEqual([725, 73], self.xl.domains[1])
        self.assertEqual(
            [(6_000, 10_000), (2_500, 20_000)],
            [
                (one.runtime_us, one.period_us)
                for _, one in sorted(self.backend.read(targets).items())
            ],
        )

    def test_what_is_in_force_is_not_sent_again(self):
        targets = self.instance(1)
        for _ in range(2):
            self.backend.apply_each(
                assignments.alike(targets, R(6_000, 10_000))
            )
        self.assertEqual(1, len(self.sent()))

    def test_the_default_weight_can_be_reserved(self):
        targets = self.instance(1)
        self.assertEqual([None], list(self.backend.read(targets).values()))
        reserved = R(25_600, 100_000, WORK_CONSERVING)
        self.backend.apply_each(assignments.alike(targets, reserved))
        self.assertEqual(
            [enforcement.Enforced.of(reserved)],
            list(self.backend.read(targets).values()),
        )

    def test_a_failure_restores_what_was_set(self):
        targets = self.targets(2)
        self.backend.apply_each(assignments.alike(targets, R(2_000, 10_000)))
        self.xl.problem = 'Device or resource busy', 2
        refusal = self.refused(assignments.alike(targets, R(6_000, 10_000)))
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertIn('resource busy', refusal.detail)
        self.assertEqual([200, 20], self.xl.domains[1])
        self.assertEqual([200, 20], self.xl.domains[2])

    def test_the_helper_bounds_the_sum_itself(self):
        """Admission happens before, and others set weights meanwhile."""
        targets = self.instance(2)
        self.instance(1)
        refusal = self.refused(assignments.alike(targets, R(7_445, 10_000)))
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertIn(
            'the weights of all domains would be 2001 mcpu of 2000: 1489 of '
            'domain 1, and 512 of all others',
            refusal.detail,
        )
        self.assertEqual([256, 0], self.xl.domains[1])
        self.backend.apply_each(assignments.alike(targets, R(7_440, 10_000)))

    def test_more_than_there_are_weights(self):
        self.xl.cpus = 128
        targets = self.instance(66)
        refusal = self.refused(assignments.alike(targets, R(100, 100)))
        self.assertEqual(errors.Code.RESERVATION_INVALID, refusal.code)
        self.assertIn('66000 mcpu', refusal.detail)

    def test_a_period_that_is_not_kept_is_logged(self):
        targets = self.instance(2)
        self.backend.apply_each(assignments.alike(targets, R(500, 5_000)))
        self.assertEqual(1, self.log.output.count('no period of 5000 us'))

    def test_threads_of_linux_are_none(self):
        target = enforcement.Target(0, os.getpid())
        self.assertEqual({}, self.backend.read([target]))
        self.assertEqual({}, self.backend.prior([target]))
        self.backend.restore([target], {})
        self.assertEqual(
            errors.Code.THREADS_GONE,
            self.refused([(target, R(6_000, 10_000))]).code,
        )

    def test_xen_does_not_answer(self):
        targets = self.instance(1)
        self.xl.unavailable = 'xl took too long'
        refusal = self.refused(assignments.alike(targets, R(6_000, 10_000)))
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertRaises(errors.Refused, self.backend.prior, targets)
        self.assertRaises(
            scheduler.SchedulerUnavailable, self.backend.read, targets
        )


@ddt.ddt
class TestRead(CreditCase):
    @ddt.data(
        ([599, 60], 10_000, (11_980, 20_000, 'capped')),
        ([600, 59], 10_000, (11_800, 20_000, 'capped')),
        ([600, 0], 10_000, (12_000, 20_000, 'work_conserving')),
        ([600, 70], 20_000, (6_000, 10_000, 'capped')),
        ([5_000, 0], 20_000, (10_000, 10_000, 'work_conserving')),
    )
    @ddt.unpack
    def test_drift(self, found, period_us, wanted):
        """Whatever differs, the share or the period differs."""
        targets = self.instance(1)
        reserved = R(period_us * 6 // 10, period_us)
        self.backend.apply_each(assignments.alike(targets, reserved))
        self.xl.domains[1] = found
        self.now += 1
        (one,) = self.backend.read(targets).values()
        self.assertEqual(wanted, (one.runtime_us, one.period_us, one.mode))
        self.assertNotEqual(enforcement.Enforced.of(reserved), one)

    def test_the_next_agent(self):
        targets = self.instance(2)
        reserved = R(6_000, 30_000)
        self.backend.apply_each(assignments.alike(targets, reserved))
        second = self.started()
        self.assertEqual(
            [(2_000, 10_000)] * 2,
            [
                (one.runtime_us, one.period_us)
                for one in second.read(targets).values()
            ],
        )
        second.resume(assignments.alike(targets, reserved))
        self.assertEqual(
            [enforcement.Enforced.of(reserved)] * 2,
            list(second.read(targets).values()),
        )

    def test_one_process_for_all(self):
        targets = self.instance(4) + self.instance(4)
        for _ in range(3):
            self.assertEqual(8, len(self.backend.read(targets)))
        self.assertEqual([('info',), ('sched-credit2',)], self.xl.commands)

    def test_ended_domains_are_forgotten(self):
        targets = self.instance(1)
        self.backend.resume([(targets[0], R(6_000, 10_000))])
        self.end(targets[0])
        self.backend.refresh()
        self.xl.start(1)
        self.now += 60
        self.assertEqual([None], list(self.backend.read(targets).values()))


class TestRestore(CreditCase):
    def test_what_an_operator_had_set(self):
        targets = self.instance(2)
        self.xl.domains[1] = [300, 20]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(3_000, 10_000)))
        self.backend.restore(targets, prior)
        self.assertEqual([300, 20], self.xl.domains[1])

    def test_a_vcpu_that_came_later(self):
        """Its record has the parameters of the reservation."""
        first, second = self.instance(2)
        prior = self.backend.prior([first])
        self.backend.apply_each([(first, R(3_000, 10_000))])
        prior |= self.backend.prior([second])
        self.backend.apply_each(
            assignments.alike([first, second], R(3_000, 10_000))
        )
        self.assertEqual([600, 60], self.xl.domains[1])
        # It is taken offline, and later the reservation ends.
        self.backend.restore([second], prior)
        self.assertEqual([300, 30], self.xl.domains[1])
        self.backend.restore([first], prior)
        self.assertEqual([256, 0], self.xl.domains[1])

    def test_without_a_prior_state(self):
        targets = self.instance(1)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.backend.restore(targets, {})
        self.assertEqual([256, 0], self.xl.domains[1])

    def test_what_does_not_fit_any_more(self):
        targets = self.targets(2)
        self.xl.domains[1] = [1_000, 0]
        self.xl.domains[2] = [300, 0]
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(1_000, 10_000)))
        self.xl.start(9)
        self.xl.domains[9] = [1_000, 0]
        self.now += 1
        self.assertEqual(Fraction(11, 10), self.backend.growth(targets, prior))
        error = self.assertRaises(
            enforcement.NotRestored, self.backend.restore, targets, prior
        )
        self.assertEqual({targets[0].tid}, error.tids)
        self.assertEqual(
            {
                'vcpus': 1,
                'found_mcpu': 1_000,
                'present_mcpu': 100,
                'left_mcpu': 344,
            },
            error.figures,
        )
        self.assertEqual([100, 10], self.xl.domains[1])
        self.assertEqual([300, 0], self.xl.domains[2])
        self.xl.end(9)
        self.backend.restore(targets, prior)
        self.assertEqual([1_000, 0], self.xl.domains[1])

    def test_a_failure_is_told(self):
        targets = self.targets(2)
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(2_000, 10_000)))
        self.xl.problem = 'busy', 1
        self.assertRaises(
            scheduler.SchedulerUnavailable,
            self.backend.restore,
            targets,
            prior,
        )
        self.assertEqual([256, 0], self.xl.domains[2])
        self.xl.problem = None
        self.backend.restore(targets, prior)
        self.assertEqual([256, 0], self.xl.domains[1])


class TestCapacity(CreditCase):
    def setUp(self):
        super().setUp()
        self.capacity = capacity.XenCapacity([self.backend], 100)

    def admissible(self):
        self.now += 1
        return self.capacity.current().admissible

    def test_weights_without_a_reservation_count(self):
        self.assertEqual(Fraction(1_744, 1_000), self.admissible())
        targets = self.instance(2)
        self.assertEqual(Fraction(1_488, 1_000), self.admissible())
        with self.capacity.replacing([one.tid for one in targets]):
            self.assertEqual(Fraction(1_744, 1_000), self.admissible())
        prior = self.backend.prior(targets)
        self.backend.apply_each(assignments.alike(targets, R(6_000, 10_000)))
        self.assertEqual(Fraction(1_744, 1_000), self.admissible())
        self.backend.restore(targets, prior)
        self.assertEqual(Fraction(1_488, 1_000), self.admissible())

    def test_caps_bound_what_weights_count(self):
        self.instance(1)
        self.xl.domains[1] = [256, 10]
        self.assertEqual(Fraction(1_644, 1_000), self.admissible())

    def test_another_scheduler_runs(self):
        self.xl.scheduler = 'credit'
        self.assertEqual(0, self.admissible())
        self.assertEqual(2, self.capacity.current().cpus)
