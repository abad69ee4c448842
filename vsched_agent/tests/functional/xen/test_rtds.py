# SPDX-License-Identifier: Apache-2.0

"""Reservations by RTDS on a real Xen, with the real helper."""

import re

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import doctor
from vsched_agent.enforcement.xen import rtds as backends
from vsched_agent.privileged import xen
from vsched_agent.state import directory
from vsched_agent.tests.functional.xen import xen_case
from vsched_lib.contract import errors
from vsched_lib.model import reservation

R = reservation.Reservation


def parameters(domid):
    """What Xen has of each vCPU, by another way than the backend's."""
    return {
        int(index): (int(period_us), int(budget_us), extratime)
        for index, period_us, budget_us, extratime in re.findall(
            r' %d +(\d+) +(\d+) +(\d+) +(\w+)$' % domid,
            xen_case.run('xl', 'sched-rtds', '-d', str(domid), '-v', 'all'),
            re.MULTILINE,
        )
    }


def set_by_hand(domid, period_us, budget_us, extratime, vcpu='all'):
    """As an operator does it."""
    xen_case.run(
        *('xl', 'sched-rtds', '-d', str(domid), '-v', str(vcpu)),
        *('-p', str(period_us), '-b', str(budget_us), '-e', str(extratime)),
    )


class RtdsCase(xen_case.BackendCase):
    def make_backend(self):
        return backends.RtdsBackend()


class TestReservations(RtdsCase, xen_case.ReservationCase):
    def test_set_read_and_restored(self):
        guest, domain = self.instance(vcpus=2)
        set_by_hand(guest.domid, 30_000, 9_000, 1, vcpu=1)
        before = parameters(guest.domid)
        self.assertEqual(
            {0: (10_000, 4_000, 'yes'), 1: (30_000, 9_000, 'yes')}, before
        )
        self.assertIsNone(self.enforcer.hold(domain, R(60_000, 100_000)))
        self.assertEqual(
            dict.fromkeys((0, 1), (100_000, 60_000, 'no')),
            parameters(guest.domid),
        )
        self.assertEqual(([], set()), self.enforcer.attest())
        self.assertEqual(1_200, self.enforcer.admitted_mcpu())
        self.assertEqual(
            (1, 0, ()),
            directory.restore_all(
                self.enforcer, self.hypervisor, self.state.journal
            ),
        )
        self.assertEqual(before, parameters(guest.domid))

    def test_work_conserving_is_extratime(self):
        guest, domain = self.instance()
        self.enforcer.hold(
            domain, R(6_000, 10_000, reservation.Mode.WORK_CONSERVING)
        )
        self.assertEqual({0: (10_000, 6_000, 'yes')}, parameters(guest.domid))

    def test_drift_is_found_and_repaired(self):
        guest, domain = self.instance()
        self.enforcer.hold(domain, R(60_000, 100_000))
        set_by_hand(guest.domid, 10_000, 1_000, 1)
        # What was read before is not too old yet.
        self.backend.scheduler.parameters(newest=True)
        (drift,), _ = self.enforcer.attest()
        self.assertEqual(guest.uuid, drift.instance_uuid)
        self.assertIn('1000 us every 10000 us', drift.found)
        self.assertEqual({0: (100_000, 60_000, 'no')}, parameters(guest.domid))

    def test_the_sum_beyond_capacity_is_refused(self):
        cpus = self.connection.getInfo()[2]
        guest, domain = self.instance(vcpus=cpus)
        before = parameters(guest.domid)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.hold, domain, R(95_000, 100_000)
        )
        self.assertEqual(errors.Code.DOES_NOT_FIT, refusal.code)
        self.assertEqual(950 * cpus, refusal.figures['asked_mcpu'])
        # The first domain has a budget as well.
        self.assertLess(refusal.figures['capacity_mcpu'], 1_000 * cpus)
        self.assertEqual(before, parameters(guest.domid))


class TestDoctor(RtdsCase):
    def test_this_host(self):
        found = doctor.examine((reservation.Backend.RTDS,))
        self.assertEqual(
            [], [one for one in found if one.level is diagnosis.Level.PROBLEM]
        )
        self.assertIn('scheduler rtds', found[0].text)

    def test_the_helper_refuses_the_first_domain(self):
        refused = self.assertRaises(
            PermissionError, xen.set_rtds, 0, [(0, 10_000, 4_000, True)]
        )
        self.assertIn('a domain', str(refused))
