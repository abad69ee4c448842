# SPDX-License-Identifier: Apache-2.0

import os
import threading

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_agent.privileged import syscalls
from vsched_lib.model import reservation


class TestSyscalls(base.BaseTestCase):
    """Reading needs no privilege, so it is the kernel that answers."""

    def test_the_caller(self):
        self.assertTrue(syscalls.known())
        attr = syscalls.get_attr(0)
        self.assertEqual(os.sched_getscheduler(0), attr.policy)
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, 0), attr.nice)

    def test_a_thread_by_number_from_another_thread(self):
        found = []
        thread = threading.Thread(
            target=lambda: found.append(syscalls.get_attr(os.getpid()))
        )
        thread.start()
        thread.join()
        self.assertEqual([syscalls.get_attr(0)], found)

    def test_no_such_thread(self):
        error = self.assertRaises(
            ProcessLookupError, syscalls.get_attr, 0x7FFFFFFF
        )
        self.assertIn('2147483647', str(error))

    def test_what_the_kernel_does_not_know_is_an_error(self):
        self.assertRaises(
            OSError, syscalls.set_attr, 0, syscalls.Attr(policy=99)
        )

    @given(st.integers(0, 1 << 42), st.integers(1, 1 << 42))
    def test_bandwidth_is_counted_as_the_model_counts_it(
        self, runtime_ns, period_ns
    ):
        self.assertEqual(
            reservation.kernel_bandwidth(runtime_ns, period_ns),
            syscalls.kernel_bandwidth(runtime_ns, period_ns),
        )
