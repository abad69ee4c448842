# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import leak_repair
from vsched_agent.host import cgroup
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.privileged import cgroup_partitions
from vsched_agent.privileged import sched

NotRepairable = leak_repair.NotRepairable


class Cgroups:
    """Control groups with one mount.

    :param found: the mount of each controller.
    """

    def __init__(self, found):
        self.found = found

    def mount(self, controller):
        return self.found

    unpartitioned_cpus = cgroup.Cgroups.unpartitioned_cpus


class RepairCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.now_s = 0.0
        self.patch(leak_repair.time, 'monotonic', lambda: self.now_s)
        self.patch(leak_repair.time, 'sleep', self.sleep)

    def sleep(self, seconds):
        self.now_s += seconds

    def groups(self, version):
        return Cgroups(cgroup.Mount(version, str(self.top), '/'))

    def threads(self, count=1):
        return [
            capacity.DeadlineThread(10, 11 + index, 'CPU 0/KVM', 7)
            for index in range(count)
        ]


class TestQuiet(RepairCase):
    def test_nothing_has_left(self):
        leak_repair.await_quiet(self.threads)
        self.assertGreaterEqual(self.now_s, 1.5)
        self.assertLess(self.now_s, 2)

    def test_after_the_last_one_has_left(self):
        leak_repair.await_quiet(
            lambda: self.threads(2 if self.now_s < 1 else 1)
        )
        self.assertGreaterEqual(self.now_s, 2.5)

    def test_threads_that_leave_all_the_time(self):
        counts = iter(range(10_000, 0, -1))
        self.assertRaises(
            NotRepairable,
            leak_repair.await_quiet,
            lambda: [
                capacity.DeadlineThread(10, next(counts), 'CPU 0/KVM', 7)
            ],
        )


class TestVersion1(RepairCase):
    def test_the_switch(self):
        switch = self.top / 'cpuset.sched_load_balance'
        switch.write_text('1')
        writes = []
        self.patch(privileged, 'write', lambda one: writes.extend(one) or {})
        leak_repair.rebuild_root_domains(self.groups(1), self.threads)
        self.assertEqual([(str(switch), '0'), (str(switch), '1')], writes)

    def test_domains_of_the_host(self):
        (self.top / 'cpuset.sched_load_balance').write_text('0')
        self.assertRaises(
            NotRepairable,
            leak_repair.rebuild_root_domains,
            self.groups(1),
            self.threads,
        )

    def test_no_cpusets(self):
        error = self.assertRaises(
            NotRepairable, leak_repair.check, Cgroups(None)
        )
        self.assertIn('reboot', str(error))


class TestVersion2(RepairCase):
    def setUp(self):
        super().setUp()
        self.effective = self.top / 'cpuset.cpus.effective'
        self.effective.write_text('0-3')
        self.control = self.top / 'cgroup.subtree_control'
        self.control.write_text('cpu cpuset')
        self.calls = []
        self.failure = {}
        #: CPUs of the threads, and what they are in the partition.
        self.cpus = {}
        self.patch(
            cgroup_partitions,
            'rebuild_root_domains',
            self.rebuild_root_domains,
        )
        self.patch(capacity, 'threads', lambda: [(t, t) for t in self.cpus])
        self.patch(leak_repair, '_is_kernels', lambda pid: False)
        self.patch(leak_repair.os, 'sched_getaffinity', self.cpus.__getitem__)
        self.patch(
            sched, 'set_affinity', lambda wanted: self.cpus.update(wanted)
        )

    def rebuild_root_domains(self, path, cpu):
        self.calls.append((path, cpu))
        for tid in self.cpus:
            self.cpus[tid] = {0, 1, 2, 3}
        return self.failure

    def rebuild(self):
        leak_repair.rebuild_root_domains(self.groups(2), self.threads)

    def test_a_partition_of_the_last_cpu(self):
        self.rebuild()
        ((path, cpu),) = self.calls
        self.assertEqual(3, cpu)
        self.assertIn('vsched-probe-%d-' % os.getpid(), path)

    def test_where_the_controller_is_enabled_for_the_moment(self):
        self.control.write_text('cpu')
        writes = []
        self.patch(
            leak_repair, '_write', lambda path, text: writes.append(text)
        )
        self.rebuild()
        self.assertEqual(['+cpuset', '-cpuset'], writes)
        self.assertEqual(1, len(self.calls))

    def test_where_the_controller_is_used_meanwhile(self):
        def write(path, text):
            if text == '-cpuset':
                raise OSError(16, 'Device or resource busy')

        self.control.write_text('cpu')
        self.patch(leak_repair, '_write', write)
        self.rebuild()
        self.assertEqual(1, len(self.calls))

    def test_where_it_may_not_be_enabled(self):
        self.control.write_text('cpu')

        def refuse(path, text):
            raise PermissionError(1, 'Operation not permitted')

        self.patch(leak_repair, '_write', refuse)
        error = self.assertRaises(NotRepairable, self.rebuild)
        self.assertIn('as root', str(error))
        self.assertEqual([], self.calls)

    def test_a_cpu_without_confined_threads(self):
        self.cpus.update({7: {3}, 8: {0, 1, 2, 3}, 9: {1, 2}})
        self.rebuild()
        self.assertEqual(2, self.calls[0][1])
        self.assertEqual(
            {7: [3], 8: {0, 1, 2, 3}, 9: [1, 2]},
            self.cpus,
            'threads are confined again',
        )

    def test_threads_are_confined_again_after_a_failure(self):
        def rebuild_root_domains(path, cpu):
            self.rebuild_root_domains(path, cpu)
            raise OSError('the helper died')

        self.patch(
            cgroup_partitions, 'rebuild_root_domains', rebuild_root_domains
        )
        self.cpus[7] = {3}
        self.assertRaises(OSError, self.rebuild)
        self.assertEqual({7: [3]}, self.cpus)

    def test_threads_that_the_helper_refuses_are_confined_again(self):
        def refuse(wanted):
            raise PermissionError('thread 7 is the shell')

        self.patch(sched, 'set_affinity', refuse)
        self.patch(leak_repair.os, 'sched_setaffinity', self.set_affinity)
        self.cpus.update({7: {3}, 8: {1}})
        self.rebuild()
        self.assertEqual(
            {7: {3}, 8: {0, 1, 2, 3}}, self.cpus, 'one is not permitted'
        )

    def set_affinity(self, tid, cpus):
        if tid == 8:
            raise PermissionError(1, 'Operation not permitted')
        self.cpus[tid] = cpus

    def test_threads_are_confined_to_each(self):
        self.cpus.update({10 + cpu: {cpu} for cpu in range(4)})
        self.rebuild()
        self.assertEqual(3, self.calls[0][1])

    def test_a_refusal(self):
        for failure, words in (
            ({'state': 'root invalid (no CPU)'}, 'no CPU'),
            ({'errno': 13}, 'Permission denied'),
        ):
            self.failure = failure
            error = self.assertRaises(NotRepairable, self.rebuild)
            self.assertIn(words, str(error))

    def test_a_single_cpu(self):
        for text in ('0', ''):
            self.effective.write_text(text)
            self.assertRaises(NotRepairable, self.rebuild)
        self.effective.unlink()
        self.assertRaises(NotRepairable, self.rebuild)
        self.assertEqual([], self.calls)
