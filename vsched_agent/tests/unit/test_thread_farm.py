# SPDX-License-Identifier: Apache-2.0

"""Threads in a process of their own."""

import os

from oslotest import base as test_base

from vsched_agent.host import schedstat
from vsched_agent.hypervisor import qemu_process
from vsched_agent.tests import thread_farm


class ThreadFarmTest(test_base.BaseTestCase):
    def farm(self, **options):
        farm = thread_farm.ThreadFarm(**options)
        self.addCleanup(farm.close)
        return farm

    def test_add_and_remove(self):
        farm = self.farm()
        tids = farm.add(3)
        self.assertEqual({farm.pid, *tids}, qemu_process.tids(farm.pid))
        farm.remove(tids[:2])
        self.assertEqual({farm.pid, tids[2]}, qemu_process.tids(farm.pid))
        farm.remove(tids)
        self.assertEqual({farm.pid}, qemu_process.tids(farm.pid))

    def test_the_process_ends(self):
        farm = self.farm()
        farm.add(2)
        farm.close()
        self.assertFalse(os.path.exists('/proc/%d' % farm.pid))
        self.assertRaises(ValueError, farm.add, 1)

    def test_died(self):
        farm = self.farm()
        os.kill(farm.pid, 9)
        self.assertRaises((RuntimeError, BrokenPipeError), farm.add, 1)

    def test_busy(self):
        farm = self.farm(busy_us=200)
        (tid,) = farm.add(1)
        # Each turn waits and works: turns say that it goes on.
        turns = set()
        while len(turns) < 3:
            turns.add(schedstat.read(tid).timeslices)
