# SPDX-License-Identifier: Apache-2.0

"""Tests that ask this kernel, and leave it as they found it."""

import os
import time

from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import capacity
from vsched_agent.host import schedstat
from vsched_agent.tests import fixtures
from vsched_agent.tests import thread_farm


class KernelCase(base.BaseTestCase):
    """Real threads, and a look at the kernel's books before and after.

    :cvar busy_us: what each thread works in a turn; 0 for sleepers.
    """

    busy_us = 0

    def setUp(self):
        super().setUp()
        fixtures.require_deadline(self)
        self.books = capacity.KernelCapacity()
        before = self.books.measured()
        self.addCleanup(self._same_books, before)
        self.farm = thread_farm.ThreadFarm(self.busy_us)
        self.addCleanup(self.farm.close)

    def _same_books(self, before):
        # The bandwidth of threads that ended in the class is free at their
        # 0-lag time, a period later at the most.
        time.sleep(0.1)
        self.books.invalidate()
        after = self.books.measured()
        # Linux 6.12 forgets or finds its fair servers meanwhile.
        self.assertEqual(
            (before.total_units, before.live_units, before.leaked_units),
            (after.total_units, after.live_units, after.leaked_units),
        )

    def targets(self, count):
        return [
            enforcement.Target(index, tid)
            for index, tid in enumerate(self.farm.add(count))
        ]

    def end(self, target):
        self.farm.remove([target.tid])

    def run_ns(self, tid):
        return schedstat.read(tid).run_ns

    def nice(self, tid):
        return os.getpriority(os.PRIO_PROCESS, tid)
