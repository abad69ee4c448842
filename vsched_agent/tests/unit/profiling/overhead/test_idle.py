# SPDX-License-Identifier: Apache-2.0


import os
import tempfile

from oslotest import base

from vsched_agent.profiling.overhead import idle


class VirtualTest(base.BaseTestCase):
    def cpuinfo(self, text):
        file = tempfile.NamedTemporaryFile('w')
        self.addCleanup(file.close)
        file.write(text)
        file.flush()
        return file.name

    def test_a_virtual_machine(self):
        self.assertTrue(
            idle.is_virtual(
                self.cpuinfo(
                    'processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\n\n'
                )
            )
        )

    def test_bare_metal(self):
        self.assertFalse(
            idle.is_virtual(
                self.cpuinfo(
                    'processor\t: 0\nmodel name\t: hypervisor\n'
                    'flags\t\t: fpu lahf_lm\n'
                )
            )
        )

    def test_one_that_does_not_tell(self):
        self.assertFalse(idle.is_virtual(self.cpuinfo('processor: 0\n')))


class AwakeTest(base.BaseTestCase):
    def children(self):
        with open('/proc/self/task/%d/children' % os.getpid()) as file:
            return set(map(int, file.read().split()))

    def test_each_cpu_has_one_that_gives_way(self):
        before = self.children()
        with idle.awake():
            hogs = self.children() - before
            self.assertEqual(
                [{cpu} for cpu in sorted(os.sched_getaffinity(0))],
                sorted((os.sched_getaffinity(pid) for pid in hogs), key=min),
            )
            self.assertEqual(
                {os.SCHED_IDLE}, {os.sched_getscheduler(pid) for pid in hogs}
            )
        self.assertEqual(set(), self.children() - before)
