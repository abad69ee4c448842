# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction
import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.enforcement import capacity
from vsched_agent.host import kernel
from vsched_agent.privileged import probe as probing
from vsched_agent.privileged import syscalls

CPU = 1 << 20
#: Two CPUs of 0.95, less the fair servers of Linux 6.18.
BOUND = 1_887_438


class TestCapacity(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.root = self.useFixture(fixtures.TempDir()).path
        self.write('proc/sys/kernel/osrelease', '6.18.0')
        self.write('sys/devices/system/cpu/online', '0-1')
        self.attrs = {}
        self.patch(syscalls, 'get_attr', self.get_attr)
        self.free = BOUND
        self.probes = []

    def write(self, path, text):
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def get_attr(self, tid):
        found = self.attrs[tid]
        if isinstance(found, Exception):
            raise found
        return found

    def thread(self, pid, tid, comm='CPU 0/KVM', runtime_ns=0):
        self.write('proc/%d/task/%d/comm' % (pid, tid), comm + '\n')
        self.attrs[tid] = syscalls.Attr(
            syscalls.SCHED_DEADLINE if runtime_ns else syscalls.SCHED_OTHER,
            0,
            0,
            0,
            runtime_ns,
            20_000_000,
            20_000_000,
        )

    def probe(self, most):
        self.probes.append(most)
        return min(most, self.free)

    def make(self, **how):
        return capacity.KernelCapacity(probe=self.probe, root=self.root, **how)

    def test_free_and_held_make_the_whole(self):
        self.thread(10, 11, runtime_ns=6_000_000)
        self.thread(10, 10, 'qemu')
        held = (6 << 20) // 20
        self.free = BOUND - held
        books = self.make(reserve_mcpu=100)
        self.assertEqual(
            (BOUND, held, 0),
            (
                books.measured().total_units,
                books.measured().live_units,
                books.measured().leaked_units,
            ),
        )
        current = books.current()
        self.assertEqual(
            (2, Fraction(BOUND, CPU), 100),
            (current.cpus, current.admissible, current.reserve_mcpu),
        )

    def test_the_kernel_is_asked_once(self):
        books = self.make()
        for _ in range(3):
            books.current()
        self.assertEqual(1, len(self.probes))
        books.invalidate()
        books.current()
        self.assertEqual(2, len(self.probes))

    def test_and_again_when_cpus_come_or_go(self):
        books = self.make()
        books.current()
        self.write('sys/devices/system/cpu/online', '0')
        self.free = BOUND // 2
        self.assertEqual(1, books.current().cpus)
        self.assertEqual(2, len(self.probes))

    def test_a_partition_is_a_root_domain_of_its_own(self):
        """What is held there does not lessen what a probe outside finds."""
        self.write('sys/fs/cgroup/cgroup.controllers', 'cpuset cpu')
        self.write('sys/fs/cgroup/cpuset.cpus.effective', '0')
        self.write(
            'proc/self/mountinfo',
            '31 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
        )
        self.thread(10, 11, runtime_ns=6_000_000)
        self.thread(10, 12, runtime_ns=4_000_000)
        self.patch(
            os, 'sched_getaffinity', lambda tid: {1} if tid == 11 else {0, 1}
        )
        held = (4 << 20) // 20
        self.free = BOUND // 2 - held
        measured = self.make().measured()
        self.assertEqual(
            (BOUND, 0, {1}),
            (
                measured.total_units,
                measured.leaked_units,
                measured.partition_cpus,
            ),
        )
        self.assertEqual([CPU - held] * len(self.probes), self.probes)
        self.free -= CPU // 10
        self.assertEqual(100, self.make().measured().leaked_mcpu)

    def test_fair_servers_that_were_forgotten(self):
        """Linux 6.12 admits more after a recount: no second look helps."""
        books = self.make()
        books.measured()
        self.free = CPU * 19 // 10
        books.invalidate()
        self.assertEqual(
            (BOUND, 0),
            (books.measured().total_units, books.measured().leaked_units),
        )
        self.assertEqual(2, len(self.probes))

    def test_a_leak(self):
        self.free = BOUND - CPU * 3 // 10
        measured = self.make().measured()
        self.assertEqual(
            (CPU * 3 // 10, 300), (measured.leaked_units, measured.leaked_mcpu)
        )

    def test_what_was_found_again_while_the_bound_was_read(self):
        def probe(most):
            self.probes.append(most)
            return BOUND - (CPU * 3 // 10 if len(self.probes) == 1 else 0)

        measured = capacity.KernelCapacity(
            probe=probe, root=self.root
        ).measured()
        self.assertEqual(
            (0, CPU * 3 // 10),
            (measured.leaked_units, measured.recovered_units),
        )

    def test_what_ended_threads_owe_is_no_leak(self):
        """Their bandwidth is free when a debt of up to a second is paid."""
        now_s = 0.0

        def sleep(seconds):
            nonlocal now_s
            now_s += seconds
            if now_s > 1.2:
                self.free = BOUND

        self.patch(capacity.time, 'sleep', sleep)
        self.patch(capacity.time, 'monotonic', lambda: now_s)
        read, reads = kernel.KernelFacts.read, []

        def count(root):
            reads.append(root)
            return read(root)

        self.patch(kernel.KernelFacts, 'read', count)
        books = self.make()
        books.measured()
        # A thread of 0.5 ms in 100 ms.
        self.free = BOUND - 5_242
        books.invalidate()
        self.assertEqual(
            (0, 0),
            (books.measured().leaked_units, books.measured().recovered_units),
        )
        # The kernel was not made to count anew before that.
        self.assertEqual(1, len(reads))

    def test_the_bound_is_read_only_when_the_books_do_not_balance(self):
        self.patch(capacity, '_SETTLE_S', 0)
        self.patch(capacity, '_PENDING_S', 0.05)
        read, reads = kernel.KernelFacts.read, []

        def count(root):
            reads.append(root)
            return read(root)

        self.patch(kernel.KernelFacts, 'read', count)
        books = self.make()
        for _ in range(3):
            books.invalidate()
            books.measured()
        self.assertEqual(1, len(reads))
        # So little a probe may overlook.
        self.free -= probing.LEAST_UNITS - 1
        books.invalidate()
        self.assertEqual(0, books.measured().leaked_units)
        self.assertEqual(1, len(reads))
        self.free -= 1
        books.invalidate()
        self.assertEqual(probing.LEAST_UNITS, books.measured().leaked_units)
        self.assertEqual(2, len(reads))

    def test_more_than_there_is_is_not_promised(self):
        self.free = BOUND + CPU // 10
        self.assertEqual(
            Fraction(BOUND, CPU), self.make().current().admissible
        )

    def test_a_kernel_that_can_not_be_asked_promises_nothing(self):
        def probe(most):
            raise PermissionError(1, 'no')

        books = capacity.KernelCapacity(probe=probe, root=self.root)
        self.assertEqual(0, books.current().capacity_mcpu)

    def test_it_samples_until_nothing_changes(self):
        def probe(most):
            self.probes.append(most)
            if len(self.probes) == 1:
                self.thread(20, 21, runtime_ns=2_000_000)
                self.free -= (2 << 20) // 20
            return self.free

        measured = capacity.KernelCapacity(
            probe=probe, root=self.root
        ).measured()
        self.assertEqual(2, len(self.probes))
        self.assertEqual(BOUND, measured.total_units)

    def test_who_is_in_the_class(self):
        self.thread(10, 11, 'CPU 0/KVM', 6_000_000)
        self.thread(10, 12, 'CPU 1/KVM', 2_000_000)
        self.thread(10, 10, 'qemu')
        self.thread(2, 2, 'sugov:0', 1_000_000)
        self.thread(30, 31, 'gone', 1_000_000)
        self.attrs[31] = ProcessLookupError(3, 'gone')
        os.makedirs(os.path.join(self.root, 'proc/40'))
        found = capacity.deadline_threads(self.root)
        self.assertEqual(
            [
                (10, 11, 'CPU 0/KVM', (6 << 20) // 20),
                (10, 12, 'CPU 1/KVM', (2 << 20) // 20),
            ],
            sorted((one.pid, one.tid, one.comm, one.units) for one in found),
        )
