# SPDX-License-Identifier: Apache-2.0

import time

from vsched_agent.enforcement import deadline
from vsched_agent.tests import assignments
from vsched_agent.tests.functional.enforcement import kernel_case
from vsched_lib.model import reservation


class TestEndedThreads(kernel_case.KernelCase):
    """Threads that work, end in the class, and have overrun their budgets."""

    busy_us = 1_000

    def test_what_they_owe_is_no_leak(self):
        backend = deadline.DeadlineBackend()
        for _ in range(3):
            targets = self.targets(1)
            # 5242 of the kernel's units; an overrun by a tick of 4 ms is paid
            # back for 0.8 s.
            backend.apply_each(
                assignments.alike(
                    targets, reservation.Reservation(500, 100_000)
                )
            )
            time.sleep(0.3)
            self.end(targets[0])
            self.books.invalidate()
            measured = self.books.measured()
            self.assertEqual(
                (0, 0), (measured.leaked_units, measured.recovered_units)
            )
