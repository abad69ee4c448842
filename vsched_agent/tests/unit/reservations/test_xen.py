# SPDX-License-Identifier: Apache-2.0

"""Reservations on a Xen host: admission, drift, restore."""

import dataclasses
import tempfile

from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement.xen import capacity
from vsched_agent.enforcement.xen import rtds
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.host import kernel
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.reservations import enforcer
from vsched_agent.state import directory
from vsched_agent.tests import fake_xl
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import reservation

R = reservation.Reservation
RTDS = reservation.Backend.RTDS


class TestXenHost(base.BaseTestCase):
    """Two CPUs, and a first domain with a budget of 0.4."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.xl = self.useFixture(fake_xl.FakeXl())
        self.now = 0.0
        self.domains = fakes.FakeHypervisor()
        self.state = directory.open_state(self.folder)
        self.addCleanup(lambda: self.state.close())
        self.enforcer = self.agent()

    def agent(self):
        """What an agent that starts makes of its parts."""
        self.now += 60
        backend = rtds.RtdsBackend(scheduler.Scheduler(clock=lambda: self.now))
        found = capacity.XenCapacity([backend])
        return enforcer.Enforcer(
            {RTDS: backend},
            lambda name: backend.supports(),
            found,
            self.state.journal,
            replacing=found.replacing,
        )

    def instance(self, domid, vcpus=1):
        self.xl.start(domid, vcpus)
        one = hypervisor.Domain(
            '00000000-0000-4000-8000-%012d' % domid,
            'instance-%d' % domid,
            vcpu_ids.encode(domid),
            tuple(
                hypervisor.Vcpu(index, vcpu_ids.encode(domid, index))
                for index in range(vcpus)
            ),
        )
        self.domains.running[one.uuid] = one
        return one

    def test_a_reservation_replaces_the_default_budget(self):
        """Else two vCPUs would not fit beside what they had before."""
        one = self.instance(1, 2)
        self.assertIsNone(self.enforcer.hold(one, R(8_000, 10_000)))
        self.assertEqual([10_000, 8_000, False], self.xl.vcpus[1, 1])
        self.assertEqual(1_600, self.enforcer.admitted_mcpu())

    def test_the_sum_beyond_capacity_is_refused(self):
        one, two = self.instance(1), self.instance(2)
        self.enforcer.hold(one, R(9_000, 10_000))
        self.now += 1
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, R(9_000, 10_000)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual(900, refusal.figures['asked_mcpu'])
        self.assertEqual(1_800, refusal.figures['needed_mcpu'])
        self.assertEqual(1_600, refusal.figures['capacity_mcpu'])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[2, 0])
        self.assertIsNone(self.enforcer.hold(two, R(7_000, 10_000)))

    def test_instances_without_a_reservation_are_counted(self):
        one = self.instance(1)
        for domid in (2, 3, 4):
            self.instance(domid)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, one, R(6_000, 10_000)
        )
        self.assertEqual(400, refusal.figures['capacity_mcpu'])

    def test_drift_is_repaired(self):
        one = self.instance(1)
        self.enforcer.hold(one, R(6_000, 10_000))
        self.xl.vcpus[1, 0] = [10_000, 9_999, True]
        self.now += 1
        (drift,), stale = self.enforcer.attest()
        self.assertEqual(one.uuid, drift.instance_uuid)
        self.assertIn('work_conserving 9999 us every 10000', drift.found)
        self.assertEqual(set(), stale)
        self.assertEqual([10_000, 6_000, False], self.xl.vcpus[1, 0])
        self.now += 1
        self.assertEqual(([], set()), self.enforcer.attest())

    def test_the_next_agent_restores_what_the_first_found(self):
        one = self.instance(1)
        self.xl.vcpus[1, 0] = [30_000, 9_000, True]
        self.enforcer.hold(one, R(6_000, 10_000))
        self.state.close()
        self.state = directory.open_state(self.folder)
        second = self.agent()
        self.assertTrue(second.adopt(one))
        self.assertEqual(600, second.admitted_mcpu())
        sent = len([words for words in self.xl.commands if '-d' in words])
        self.assertIsNone(second.hold(one, R(6_000, 10_000)))
        self.assertEqual(
            sent, len([words for words in self.xl.commands if '-d' in words])
        )
        self.assertEqual(
            (1, 0, ()),
            directory.restore_all(second, self.domains, self.state.journal),
        )
        self.assertEqual([30_000, 9_000, True], self.xl.vcpus[1, 0])

    def test_what_operators_set_is_not_taken_over(self):
        """An agent that starts without a journal is the first one."""
        one = self.instance(1)
        self.xl.vcpus[1, 0] = [30_000, 9_000, True]
        self.assertFalse(self.enforcer.take_over(one, damaged=False))
        self.assertTrue(self.enforcer.take_over(one, damaged=True))

    def test_an_instance_that_reboots_is_another_domain(self):
        before = self.instance(1)
        self.enforcer.hold(before, R(6_000, 10_000))
        self.xl.end(1)
        self.now += 1
        self.assertEqual(([], {before.uuid}), self.enforcer.attest())
        after = hypervisor.Domain(
            before.uuid,
            before.name,
            vcpu_ids.encode(2),
            (hypervisor.Vcpu(0, vcpu_ids.encode(2)),),
        )
        self.xl.start(2)
        self.now += 1
        self.assertIsNone(self.enforcer.hold(after, R(6_000, 10_000)))
        self.assertEqual([10_000, 6_000, False], self.xl.vcpus[2, 0])

    def restarted(self, one, domid):
        """The same instance as another domain."""
        self.xl.end(vcpu_ids.decode(one.pid)[0])
        self.xl.start(domid)
        after = hypervisor.Domain(
            one.uuid,
            one.name,
            vcpu_ids.encode(domid),
            (hypervisor.Vcpu(0, vcpu_ids.encode(domid)),),
        )
        self.domains.running[one.uuid] = after
        self.now += 60
        return after

    def test_values_of_an_earlier_boot_are_not_restored(self):
        one = self.instance(1)
        self.xl.vcpus[1, 0] = [30_000, 9_000, True]
        self.enforcer.hold(one, R(6_000, 10_000))
        after = self.restarted(one, 2)
        self.enforcer.hold(after, R(6_000, 10_000))
        self.enforcer.release(after)
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[2, 0])

    def test_a_number_used_again_is_another_domain(self):
        """The first agent ended before its instance did."""
        one = self.instance(1)
        self.enforcer.hold(one, R(6_000, 10_000))
        after = self.restarted(one, 2)
        self.xl.start(1)
        self.xl.vcpus[1, 0] = [30_000, 9_000, True]
        self.xl.vcpus[2, 0] = [20_000, 9_000, True]
        second = self.agent()
        self.assertFalse(second.adopt(after))
        directory.restore_all(second, self.domains, self.state.journal)
        self.assertEqual([30_000, 9_000, True], self.xl.vcpus[1, 0])
        # Nothing was changed of this boot either.
        self.assertEqual([20_000, 9_000, True], self.xl.vcpus[2, 0])
        self.assertEqual([], self.state.journal.touched())

    def test_numbers_begin_anew_with_a_boot_of_the_host(self):
        one = self.instance(1)
        self.xl.vcpus[1, 0] = [30_000, 9_000, True]
        self.enforcer.hold(one, R(6_000, 10_000))
        self.state.close()
        self.patch(kernel, 'boot_id', lambda: 'another')
        after = self.restarted(one, 1)
        self.assertEqual(one.pid, after.pid)
        self.state = directory.open_state(self.folder)
        second = self.agent()
        self.assertFalse(second.adopt(after))
        self.assertIsNone(second.hold(after, R(6_000, 10_000)))
        self.assertTrue(second.release(after))
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 0])

    def restore_all(self):
        """Return the result, and whose former state does not fit."""
        unfit = {}
        restored = directory.restore_all(
            self.enforcer,
            self.domains,
            self.state.journal,
            lambda domain, error: unfit.update({domain.name: error.figures}),
        )
        return restored, unfit

    def test_restored_as_far_as_it_fits(self):
        one, two, three = (self.instance(domid) for domid in (1, 2, 3))
        self.xl.vcpus[1, 0] = [10_000, 5_000, True]
        for domain, runtime_us in ((one, 1_000), (two, 3_000), (three, 5_000)):
            self.now += 1
            self.enforcer.hold(domain, R(runtime_us, 10_000))
        # 400 mcpu of the first domain and 900 reserved ones: 100 are left.
        self.xl.start(9)
        self.xl.vcpus[9, 0] = [10_000, 6_000, True]
        self.now += 1
        restored, unfit = self.restore_all()
        self.assertEqual((2, 0), restored[:2])
        self.assertEqual(
            {
                'instance-1': {
                    'vcpus': 1,
                    'found_mcpu': 500,
                    'present_mcpu': 100,
                    'left_mcpu': 100,
                }
            },
            unfit,
        )
        (problem,) = restored.problems
        self.assertIn(one.uuid, problem)
        self.assertIn('100 mcpu are left', problem)
        self.assertEqual([10_000, 1_000, False], self.xl.vcpus[1, 0])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[2, 0])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[3, 0])
        self.xl.end(9)
        self.now += 1
        self.assertEqual(((1, 0, ()), {}), self.restore_all())
        self.assertEqual([10_000, 5_000, True], self.xl.vcpus[1, 0])

    def test_what_is_not_restored_takes_capacity(self):
        one, two = self.instance(1), self.instance(2)
        self.enforcer.hold(one, R(3_000, 10_000))
        self.xl.start(9)
        self.xl.vcpus[9, 0] = [10_000, 8_500, True]
        self.now += 1
        self.assertRaises(enforcement.NotRestored, self.enforcer.release, one)
        self.assertIsNone(self.enforcer.holding(one.uuid))
        self.now += 1
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, R(4_600, 10_000)
        )
        # 2000 without 400 of the first domain, 850 and 300.
        self.assertEqual(450, refusal.figures['capacity_mcpu'])

    def test_drift_that_cannot_be_repaired_takes_capacity(self):
        one, two = self.instance(1), self.instance(2)
        self.enforcer.hold(one, R(9_000, 10_000))
        self.xl.vcpus[1, 0] = [10_000, 5_000, True]
        self.xl.start(9)
        self.now += 1
        self.assertEqual({one.uuid}, self.enforcer.attest()[1])
        self.now += 1
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, R(7_100, 10_000)
        )
        # 2000 without 400 of the first domain, 500 and 400.
        self.assertEqual(700, refusal.figures['capacity_mcpu'])

    def test_a_vcpu_that_leaves_may_keep_what_it_has(self):
        one = self.instance(1, 2)
        self.enforcer.hold(one, R(2_000, 10_000))
        self.xl.start(9)
        self.xl.vcpus[9, 0] = [10_000, 9_900, True]
        self.xl.start(10)
        self.xl.vcpus[10, 0] = [10_000, 1_000, True]
        self.now += 1
        smaller = dataclasses.replace(one, vcpus=one.vcpus[:1])
        self.assertIsNone(self.enforcer.hold(smaller, R(1_000, 10_000)))
        self.assertEqual([10_000, 2_000, False], self.xl.vcpus[1, 1])
        self.xl.end(9)
        self.now += 1
        self.assertTrue(self.enforcer.release(smaller))
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 0])
        self.assertEqual([10_000, 4_000, True], self.xl.vcpus[1, 1])

    def test_xen_does_not_answer(self):
        one = self.instance(1)
        self.xl.unavailable = 'xl took too long'
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, one, R(6_000, 10_000)
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
