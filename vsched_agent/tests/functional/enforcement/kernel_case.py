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


#: Until bandwidth is free that is held by nobody any more, in seconds.
_SETTLE_S = 60.0
#: How long a test waits at most for what another one had, in seconds.
_FREED_S = 5.0


def _units(measured):
    # Linux 6.12 forgets or finds its fair servers meanwhile.
    return measured.total_units, measured.live_units, measured.leaked_units


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
        # What threads of another test had may be free a little later; what
        # is leaked stays.
        give_up = time.monotonic() + _FREED_S
        while before.leaked_units and time.monotonic() < give_up:
            time.sleep(0.1)
            before = self._measured()
        self.addCleanup(self._same_books, before)
        self.farm = thread_farm.ThreadFarm(self.busy_us)
        self.addCleanup(self.farm.close)

    def _same_books(self, before):
        # The bandwidth of threads that ended in the class is free at their
        # 0-lag time, a period later at the most. What was leaked stays.
        give_up = time.monotonic() + _SETTLE_S
        while _units(before) != _units(self._measured()):
            if time.monotonic() > give_up:
                self.assertEqual(_units(before), _units(self._measured()))
            time.sleep(0.1)

    def _measured(self):
        self.books.invalidate()
        return self.books.measured()

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
