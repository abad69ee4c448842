# SPDX-License-Identifier: Apache-2.0

import errno
import os
import threading

from oslotest import base

from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel

CPU = fake_kernel.CPU


class TestProbing(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        # Not this machine's: on one CPU it would stop before the bounds.
        self.patch(os, 'sysconf', {'SC_NPROCESSORS_CONF': 4}.__getitem__)

    def test_the_last_unit_is_found_and_nothing_is_kept(self):
        for bound in (CPU * 18 // 10, CPU * 2, 1887438, CPU // 3, 128):
            self.kernel.bound = bound
            self.assertEqual(bound, sched.probe_free_bandwidth(4 * CPU))
            self.assertEqual((0, 0), (self.kernel.used, self.kernel.leaked))

    def test_what_is_held_is_not_free(self):
        tid = self.kernel.start()
        sched.set_deadline([(tid, 6_000_000, 20_000_000, 0)])
        self.assertEqual(self.kernel.free, sched.probe_free_bandwidth(4 * CPU))

    def test_a_full_kernel(self):
        self.kernel.bound = 0
        self.assertEqual(0, sched.probe_free_bandwidth(2 * CPU))

    def test_it_stops_where_it_is_told(self):
        self.kernel.bound = 1 << 60
        self.assertEqual(2 * CPU, sched.probe_free_bandwidth(2 * CPU))

    def test_it_stops_beyond_all_cpus(self):
        """A caller cannot make the helper start threads without end."""
        self.kernel.bound = 1 << 60
        self.patch(os, 'sysconf', {'SC_NPROCESSORS_CONF': 2}.__getitem__)
        self.assertEqual(3 * CPU, sched.probe_free_bandwidth(1 << 50))

    def test_no_thread_is_left_behind(self):
        sched.probe_free_bandwidth(2 * CPU)
        # What other tests have left may start others meanwhile.
        self.assertNotIn('probe', [one.name for one in threading.enumerate()])

    def test_trying_the_class(self):
        self.assertEqual(0, sched.try_deadline())
        self.kernel.bound = 0
        self.assertEqual(0, sched.try_deadline())

        def set_attr(tid, attr):
            raise PermissionError(errno.EPERM, 'no')

        self.patch(syscalls, 'set_attr', set_attr)
        self.assertEqual(errno.EPERM, sched.try_deadline())
        self.assertRaises(PermissionError, sched.probe_free_bandwidth, 2 * CPU)
