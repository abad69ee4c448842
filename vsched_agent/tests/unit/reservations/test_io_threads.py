# SPDX-License-Identifier: Apache-2.0

import dataclasses
from unittest import mock

from vsched_agent.accounting import kernel_threads
from vsched_agent.enforcement import base as enforcement
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_threads
from vsched_agent.tests import fake_proc
from vsched_agent.tests import fakes
from vsched_agent.tests import journals
from vsched_lib.contract import errors
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
INSIDE, ON_TOP = applied.IoRoom.INSIDE, applied.IoRoom.ON_TOP


def holding(pid=100, room=ON_TOP, **runtimes_us):
    return applied.IoHolding(
        pid,
        tuple(
            (
                enforcement.Target(index, int(name[1:])),
                reservation.Reservation(runtime_us, 20_000),
            )
            for index, (name, runtime_us) in enumerate(runtimes_us.items())
        ),
        room,
    )


class TestIoThreads(journals.JournalCase):
    def setUp(self):
        super().setUp()
        self.backend = fakes.FakeBackend(DEADLINE, 1)
        self.io = io_threads.IoThreads(self.backend, self.journal)
        self.domain = fakes.domain(1)
        self.uuid = self.domain.uuid

    def runtimes_us(self):
        return {
            tid: held.runtime_us for tid, held in self.backend.held.items()
        }

    def test_apply_and_release(self):
        self.io.apply(self.uuid, holding(t100=1_000, t150=2_000))
        self.assertEqual({100: 1_000, 150: 2_000}, self.runtimes_us())
        self.assertEqual(
            {100, 150}, set(self.journal.priors(self.uuid, io_threads.KEY))
        )
        self.assertTrue(self.io.release(self.domain))
        self.assertEqual({}, self.backend.held)
        self.assertIsNone(self.io.holding(self.uuid))
        self.assertEqual([], self.journal.touched())
        self.assertFalse(self.io.release(self.domain))

    def test_the_same_again_touches_nothing(self):
        for room in (ON_TOP, INSIDE):
            self.io.apply(self.uuid, holding(room=room, t100=1_000))
        self.assertEqual(1, len(self.backend.applied))
        self.assertIs(INSIDE, self.io.holding(self.uuid).room)

    def test_all_or_nothing(self):
        self.io.apply(self.uuid, holding(t100=1_000))
        refusal = self.assertRaises(
            errors.Refused,
            self.io.apply,
            self.uuid,
            holding(t100=2_000, t150=20_000),
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual({100: 1_000}, self.runtimes_us())
        self.assertEqual(holding(t100=1_000), self.io.holding(self.uuid))

    def test_a_refused_change_leaves_no_record(self):
        self.assertRaises(
            errors.Refused,
            self.io.apply,
            self.uuid,
            holding(t100=20_000, t150=1),
        )
        self.assertEqual([], self.journal.touched())

    def test_what_was_found_first_is_put_back(self):
        self.io.apply(self.uuid, holding(t100=1_000))
        before = self.journal.priors(self.uuid, io_threads.KEY)
        self.io.apply(self.uuid, holding(t100=2_000))
        self.assertEqual(
            before, self.journal.priors(self.uuid, io_threads.KEY)
        )

    def test_adopt(self):
        self.assertFalse(self.io.adopt(self.domain, ON_TOP))
        self.io.apply(self.uuid, holding(t100=1_000, t150=2_000))
        successor = io_threads.IoThreads(self.backend, self.journal)
        self.backend.dead.add(150)
        self.assertTrue(successor.adopt(self.domain, ON_TOP))
        self.assertEqual(
            [(100, 1_000)],
            [
                (target.tid, reserved.runtime_us)
                for target, reserved in successor.holding(
                    self.uuid
                ).reservations
            ],
        )
        self.assertEqual([(100,)], self.backend.resumed)

    def test_another_process_is_not_adopted(self):
        self.io.apply(self.uuid, holding(t100=1_000))
        successor = io_threads.IoThreads(self.backend, self.journal)
        self.assertFalse(successor.adopt(fakes.domain(1, pid=900), ON_TOP))

    def take_over(self, held, threads=()):
        """What is recorded of threads in the class.

        :param threads: of the kernel, as (number, name).
        """
        proc = self.useFixture(fake_proc.FakeProc())
        for tid, comm in threads:
            proc.set(tid, tid, 0, comm=comm, parent=2)
        reserved = reservation.Reservation(1_000, 20_000)
        self.backend.held = {
            tid: enforcement.Enforced.of(reserved) for tid in held
        }
        scanner = kernel_threads.Scanner(str(proc.path))
        with mock.patch.object(
            kernel_threads, 'Scanner', autospec=True, return_value=scanner
        ):
            self.io.take_over(self.domain)
        return set(self.journal.priors(self.uuid, io_threads.KEY))

    def test_take_over_workers_of_the_kernel(self):
        """Linux 6.1: of the domain's, vhost's alone are managed."""
        pid = self.domain.pid
        self.domain = dataclasses.replace(self.domain, emulator_tids=(pid,))
        self.assertEqual(
            {pid, 802},
            self.take_over(
                (pid, 800, 801, 802, 902),
                (
                    (800, 'kvm-nx-lpage-recovery-%d' % pid),
                    (801, 'kvm-pit/%d' % pid),
                    (802, 'vhost-%d' % pid),
                    (902, 'vhost-9'),
                ),
            ),
        )

    def test_take_over_workers_of_the_process(self):
        """Linux 6.12: vhost's is one of QEMU's threads."""
        pid = self.domain.pid
        self.domain = dataclasses.replace(
            self.domain, emulator_tids=(pid, 512)
        )
        self.assertEqual({pid, 512}, self.take_over((pid, 512)))

    def test_attest(self):
        self.io.apply(self.uuid, holding(t100=1_000, t150=2_000))
        self.assertEqual([], self.io.attest())
        del self.backend.held[100]
        self.backend.dead.add(150)
        (drift,) = self.io.attest()
        self.assertEqual(
            (self.uuid, (100,)), (drift.instance_uuid, drift.tids)
        )
        self.assertIn('held no reservation', drift.found)
        self.assertEqual(
            {100: 1_000},
            {
                tid: held
                for tid, held in self.runtimes_us().items()
                if tid != 150
            },
        )
        self.assertEqual(1, len(self.io.holding(self.uuid).reservations))

    def test_drift_that_is_not_repaired(self):
        self.io.apply(self.uuid, holding(t100=1_000))
        del self.backend.held[100]
        self.backend.bound = 0
        self.assertEqual(1, len(self.io.attest()))
        # The next charging pass applies it again; the prior state is kept.
        self.assertIsNone(self.io.holding(self.uuid))
        self.assertTrue(self.io.release(self.domain))

    def test_a_host_without_the_class(self):
        io = io_threads.IoThreads(None, self.journal)
        refusal = self.assertRaises(
            errors.Refused, io.apply, self.uuid, holding(t100=1_000)
        )
        self.assertEqual(errors.Code.BACKEND_UNAVAILABLE, refusal.code)
        self.assertFalse(io.release(self.domain))
        self.assertEqual([], io.attest())
