# SPDX-License-Identifier: Apache-2.0

import os
import time

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import deadline
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads
from vsched_agent.profiling.error import hogs
from vsched_agent.tests import assignments
from vsched_agent.tests import backend_suite
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.enforcement import kernel_case
from vsched_lib.contract import errors
from vsched_lib.model import reservation


class TestSleepers(kernel_case.KernelCase, backend_suite.BackendSuite):
    """Threads that sleep: those that leak when left carelessly."""

    def setUp(self):
        super().setUp()
        self.backend = deadline.DeadlineBackend()

    def test_what_was_found_is_put_back(self):
        targets = self.targets(2)
        os.setpriority(os.PRIO_PROCESS, targets[0].tid, 5)
        os.sched_setscheduler(
            targets[1].tid, os.SCHED_BATCH, os.sched_param(0)
        )
        prior = self.backend.prior(targets)
        self.backend.apply_each(
            assignments.alike(targets, reservation.Reservation(4_000, 20_000))
        )
        self.backend.restore(targets, prior)
        self.assertEqual(5, self.nice(targets[0].tid))
        self.assertEqual(os.SCHED_BATCH, os.sched_getscheduler(targets[1].tid))

    def test_work_conserving_reads_back(self):
        targets = self.targets(1)
        prior = self.backend.prior(targets)
        mode = reservation.Mode.WORK_CONSERVING
        self.backend.apply_each(
            assignments.alike(
                targets, reservation.Reservation(4_000, 20_000, mode)
            )
        )
        self.assertEqual([(4_000, 20_000, mode)], self.held(targets))
        self.backend.restore(targets, prior)

    def test_the_kernels_refusal_has_figures(self):
        targets = self.targets(3)
        prior = self.backend.prior(targets)
        self.backend.apply_each(
            assignments.alike(
                targets[:1], reservation.Reservation(2_000, 20_000)
            )
        )
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(
                targets, reservation.Reservation(19_000, 20_000)
            ),
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(2850, refusal.figures['needed_mcpu'])
        held = self.backend.read(targets)
        self.assertEqual(2_000, held[targets[0].tid].runtime_us)
        self.assertEqual([None, None], self.held(targets[1:]))
        self.backend.restore(targets, prior)


class TestBusy(kernel_case.KernelCase, backend_suite.BackendSuite):
    """Threads that work half of the time, over what they are promised."""

    busy_us = 10_000

    def setUp(self):
        super().setUp()
        self.backend = deadline.DeadlineBackend()

    def test_many_lives(self):
        """Fifty times in and out; nothing leaks and nothing stands still."""
        (target,) = self.targets(1)
        prior = self.backend.prior([target])
        for runtime_us in (4_000, 2_000) * 25:
            self.backend.apply_each(
                [(target, reservation.Reservation(runtime_us, 20_000))]
            )
            self.await_run(target.tid)
            self.backend.restore([target], prior)

    def await_run(self, tid):
        """Fail when the thread stands still for five seconds.

        What the machine under this one takes is no standstill of its.
        """
        ran_ns = self.run_ns(tid)
        began, stolen_s = time.monotonic(), agent_guests.stolen_s()
        while self.run_ns(tid) == ran_ns:
            self.assertLess(
                time.monotonic() - began,
                5 + agent_guests.stolen_s() - stolen_s,
                'it stands still',
            )
            time.sleep(0.005)


class TestEnded(kernel_case.KernelCase):
    """A thread that ends in the class."""

    def test_one_that_ends_overdrawn_is_no_leak(self):
        """What it held is free when it would have paid what it owed."""
        backend = deadline.DeadlineBackend()
        for _ in range(3):
            with hogs.Hog() as hog:
                # 5242 units of the kernel's.
                backend.apply_each(
                    [
                        (
                            enforcement.Target(0, hog.pid),
                            reservation.Reservation(500, 100_000),
                        )
                    ]
                )
                with threads.View(hog.pid) as view:
                    give_up = time.monotonic() + 60
                    while view.left_ns() >= 0:
                        self.assertLess(
                            time.monotonic(), give_up, 'never overdrawn'
                        )
                        time.sleep(0.0005)
            self.books.invalidate()
            found = self.books.measured()
            self.assertEqual(
                (0, 0), (found.leaked_units, found.recovered_units)
            )


class TestAlwaysRunnable(kernel_case.KernelCase):
    """A thread that never sleeps."""

    busy_us = 1_000_000

    def test_taken_out_by_others_while_it_was_throttled(self):
        """Its timer finds it outside, and nobody replenishes it any more."""
        backend = deadline.DeadlineBackend()
        promise = reservation.Reservation(500, 100_000)
        (target,) = self.targets(1)
        prior = backend.prior([target])
        for _ in range(3):
            backend.apply_each([(target, promise)])
            with threads.View(target.tid) as view:
                give_up = time.monotonic() + 60
                while view.left_ns() >= 0:
                    self.assertLess(
                        time.monotonic(), give_up, 'never overdrawn'
                    )
                    time.sleep(0.0005)
            syscalls.set_attr(target.tid, syscalls.Attr(syscalls.SCHED_OTHER))
            # Until that timer has come.
            time.sleep(0.2)
            backend.apply_each([(target, promise)])
            ran_ns = self.run_ns(target.tid)
            # A tick is paid back within 0.8 s; without a replenishment it
            # stands still for ever.
            give_up = time.monotonic() + 60
            while self.run_ns(target.tid) == ran_ns:
                self.assertLess(time.monotonic(), give_up, 'it stands still')
                time.sleep(0.05)
            backend.restore([target], prior)
