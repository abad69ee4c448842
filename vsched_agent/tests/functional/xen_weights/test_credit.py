# SPDX-License-Identifier: Apache-2.0

"""Reservations by Credit2 or Credit on a real Xen, with the real helper.

The scheduler is that of the node, see ``tools/lab.sh --scheduler``.
"""

import re

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import credit as backends
from vsched_agent.enforcement.xen import doctor
from vsched_agent.enforcement.xen import scheduler
from vsched_agent.privileged import xen
from vsched_agent.state import directory
from vsched_agent.tests.functional.xen import xen_case
from vsched_lib.contract import errors
from vsched_lib.model import reservation


class CreditCase(xen_case.BackendCase):
    def make_backend(self):
        self.running = xen_case.scheduler()
        self.assertIn(self.running, scheduler.CREDIT)
        self.name = reservation.Backend(self.running)
        return backends.CreditBackend(self.name)

    def parameters(self, domid):
        """Weight and cap, by another way than the backend's."""
        (found,) = re.findall(
            r' %d +(\d+) +(\d+)$' % domid,
            xen_case.run('xl', 'sched-' + self.running, '-d', str(domid)),
            re.MULTILINE,
        )
        return tuple(map(int, found))

    def set_by_hand(self, domid, weight, cap):
        """As an operator does it."""
        xen_case.run(
            *('xl', 'sched-' + self.running, '-d', str(domid)),
            *('-w', str(weight), '-c', str(cap)),
        )

    def asked(self, runtime_us, mode=reservation.Mode.CAPPED):
        return reservation.Reservation(
            runtime_us, 100_000, mode, backend=self.name
        )


class TestReservations(CreditCase, xen_case.ReservationCase):
    def test_set_repaired_and_restored(self):
        guest, domain = self.instance(vcpus=2)
        self.assertEqual((256, 0), self.parameters(guest.domid))
        self.set_by_hand(guest.domid, 300, 150)
        self.assertIsNone(self.enforcer.hold(domain, self.asked(60_000)))
        self.assertEqual((1_200, 120), self.parameters(guest.domid))
        self.assertEqual(([], set()), self.enforcer.attest())
        self.assertEqual(1_200, self.enforcer.admitted_mcpu())
        self.set_by_hand(guest.domid, 1_200, 0)
        # What was read before is not too old yet.
        self.backend.scheduler.domains(newest=True)
        (drift,), _ = self.enforcer.attest()
        self.assertEqual(guest.uuid, drift.instance_uuid)
        self.assertEqual((1_200, 120), self.parameters(guest.domid))
        self.enforcer.hold(
            domain, self.asked(60_000, reservation.Mode.WORK_CONSERVING)
        )
        self.assertEqual((1_200, 0), self.parameters(guest.domid))
        self.assertEqual(
            (1, 0, ()),
            directory.restore_all(
                self.enforcer, self.hypervisor, self.state.journal
            ),
        )
        self.assertEqual((300, 150), self.parameters(guest.domid))

    def test_the_sum_beyond_capacity_is_refused(self):
        cpus = self.connection.getInfo()[2]
        guest, domain = self.instance(vcpus=cpus)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, domain, self.asked(95_000)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual(950 * cpus, refusal.figures['asked_mcpu'])
        # The first domain has a weight as well.
        self.assertLess(refusal.figures['capacity_mcpu'], 1_000 * cpus)
        self.assertEqual((256, 0), self.parameters(guest.domid))
        refused = self.assertRaises(
            OSError, xen.set_credit, self.running, guest.domid, 1_000 * cpus, 0
        )
        self.assertIn('the weights of all domains would be', str(refused))
        self.assertEqual((256, 0), self.parameters(guest.domid))


class TestDoctor(CreditCase):
    def test_this_host(self):
        found = doctor.examine((self.name,))
        self.assertEqual(
            [], [one for one in found if one.level is diagnosis.Level.PROBLEM]
        )
        self.assertIn('scheduler ' + self.running, found[0].text)

    def test_the_helper_refuses_the_first_domain(self):
        refused = self.assertRaises(
            PermissionError, xen.set_credit, self.running, 0, 256, 0
        )
        self.assertIn('a domain', str(refused))
