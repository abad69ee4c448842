# SPDX-License-Identifier: Apache-2.0

"""Reservations on a Xen host by weights: admission, drift, restore."""

import tempfile

from oslotest import base

from vsched_agent.enforcement.xen import capacity
from vsched_agent.enforcement.xen import credit
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.hypervisor.xen import vcpu_ids
from vsched_agent.reservations import enforcer
from vsched_agent.state import directory
from vsched_agent.tests import fake_xl
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import reservation

CREDIT2 = reservation.Backend.CREDIT2


def asked(runtime_us, period_us):
    """A reservation that accepts this backend: it guarantees no period."""
    return reservation.Reservation(runtime_us, period_us, backend=CREDIT2)


class TestXenHost(base.BaseTestCase):
    """Two CPUs, and a first domain with a weight of 256."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.xl = self.useFixture(fake_xl.FakeXl(scheduler='credit2'))
        self.now = 0.0
        self.domains = fakes.FakeHypervisor()
        self.state = directory.open_state(self.folder)
        self.addCleanup(lambda: self.state.close())
        self.enforcer = self.agent()

    def agent(self):
        """What an agent that starts makes of its parts."""
        self.now += 60
        backend = credit.CreditBackend(
            CREDIT2, scheduler.Scheduler(clock=lambda: self.now)
        )
        found = capacity.XenCapacity([backend])
        return enforcer.Enforcer(
            {CREDIT2: backend},
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

    def test_a_reservation_replaces_the_default_weight(self):
        one = self.instance(1, 2)
        self.assertIsNone(self.enforcer.hold(one, asked(8_700, 10_000)))
        self.assertEqual([1_740, 174], self.xl.domains[1])
        self.assertEqual(1_740, self.enforcer.admitted_mcpu())

    def test_the_sum_beyond_capacity_is_refused(self):
        one, two = self.instance(1), self.instance(2)
        self.enforcer.hold(one, asked(9_000, 10_000))
        self.now += 1
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, two, asked(9_000, 10_000)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual(900, refusal.figures['asked_mcpu'])
        self.assertEqual(1_744, refusal.figures['capacity_mcpu'])
        self.assertEqual([256, 0], self.xl.domains[2])
        self.assertIsNone(self.enforcer.hold(two, asked(8_000, 10_000)))

    def test_one_that_names_no_backend_wants_a_guarantee(self):
        refusal = self.assertRaises(
            errors.Refused,
            self.enforcer.hold,
            self.instance(1),
            reservation.Reservation(1_000, 10_000),
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertIn('credit2', refusal.detail)

    def test_drift_is_repaired(self):
        one = self.instance(1)
        self.enforcer.hold(one, asked(6_000, 10_000))
        for found in ([600, 0], [256, 60], [256, 0]):
            self.xl.domains[1] = found
            self.now += 1
            (drift,), stale = self.enforcer.attest()
            self.assertEqual((one.uuid, set()), (drift.instance_uuid, stale))
            self.assertEqual([600, 60], self.xl.domains[1])
        self.now += 1
        self.assertEqual(([], set()), self.enforcer.attest())

    def test_the_next_agent_restores_what_the_first_found(self):
        one = self.instance(1, 2)
        self.xl.domains[1] = [300, 20]
        self.enforcer.hold(one, asked(6_000, 30_000))
        self.state.close()
        self.state = directory.open_state(self.folder)
        second = self.agent()
        self.assertTrue(second.adopt(one))
        self.assertEqual(400, second.admitted_mcpu())
        sent = len([words for words in self.xl.commands if '-d' in words])
        self.assertIsNone(second.hold(one, asked(6_000, 30_000)))
        self.assertEqual(
            sent, len([words for words in self.xl.commands if '-d' in words])
        )
        self.assertEqual(([], set()), second.attest())
        self.assertEqual(
            (1, 0, ()),
            directory.restore_all(second, self.domains, self.state.journal),
        )
        self.assertEqual([300, 20], self.xl.domains[1])

    def test_a_vcpu_that_goes_offline_takes_its_part_along(self):
        one = self.instance(1, 2)
        self.enforcer.hold(one, asked(6_000, 10_000))
        smaller = hypervisor.Domain(one.uuid, one.name, one.pid, one.vcpus[:1])
        self.assertIsNone(self.enforcer.hold(smaller, asked(6_000, 10_000)))
        self.assertEqual([600, 60], self.xl.domains[1])
        self.assertIsNone(self.enforcer.hold(one, asked(6_000, 10_000)))
        self.assertEqual([1_200, 120], self.xl.domains[1])
        self.assertTrue(self.enforcer.release(one))
        self.assertEqual([256, 0], self.xl.domains[1])
