# SPDX-License-Identifier: Apache-2.0

import errno

from oslotest import base

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import deadline
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.privileged import cgroup as privileged
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_cgroups
from vsched_agent.tests import fake_kernel
from vsched_lib.contract import errors
from vsched_lib.model import reservation


class TestPinned(base.BaseTestCase):
    """A pinned vCPU, as libvirt leaves it: a narrow cpuset of its own."""

    version = 1

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.tree = self.useFixture(fake_cgroups.FakeCgroups(self.version))
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        real = privileged._write

        def write(path, text):
            before = cgroup.read_text(path)
            self.follow(path, text)
            return real(path, text) and before

        self.patch(privileged, '_write', write)
        self.tree.group('vm', cpus='0-1')
        self.tid = self.kernel.start(cpus=frozenset((1,)))
        self.tree.group('vm/vcpu0', (self.tid,), cpus='1')
        self.target = enforcement.Target(0, self.tid, frozenset((1,)))
        self.backend = deadline.DeadlineBackend(
            affinity.Affinity(cgroup.Cgroups(self.tree.root))
        )

    def follow(self, path, text):
        if self.version == 2 and not text:
            raise OSError(errno.ENOSPC, 'a cpuset with threads needs CPUs')
        # The kernel moves the threads of a cpuset at once.
        thread = self.kernel.threads[self.tid]
        thread.cpuset = cpu_list.parse(text) or self.kernel.cpus
        thread.cpus = thread.cpuset

    @property
    def cpus(self):
        return self.kernel.threads[self.tid].cpus

    @property
    def cpuset(self):
        return self.tree.read(self.tree.cpuset + '/vm/vcpu0/cpuset.cpus')

    def apply(self, runtime_us):
        self.backend.apply_each(
            [(self.target, reservation.Reservation(runtime_us, 20_000))]
        )

    def test_it_is_held_where_it_is_pinned(self):
        for runtime_us in (4_000, 6_000, 2_000):
            self.apply(runtime_us)
            self.assertEqual({1}, self.cpus)
            self.assertEqual(
                runtime_us,
                self.backend.read([self.target])[self.tid].runtime_us,
            )

    def test_an_unpinned_thread_is_confined_again(self):
        self.apply(4_000)
        self.kernel.threads[self.tid].cpus = self.kernel.cpus
        self.apply(4_000)
        self.assertEqual({1}, self.cpus)

    def test_what_was_found_is_put_back(self):
        prior = self.backend.prior([self.target])
        self.apply(4_000)
        self.backend.restore([self.target], prior)
        self.assertEqual(
            syscalls.SCHED_OTHER, self.kernel.get_attr(self.tid).policy
        )
        self.assertEqual(({1}, '1'), (self.cpus, self.cpuset))
        self.assertEqual(0, self.kernel.leaked)

    def test_a_refusal_leaves_it_confined(self):
        self.kernel.bound = 0
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(({1}, '1'), (self.cpus, self.cpuset))

    def test_a_cpuset_shared_with_others_can_not_be_used(self):
        self.tree.group('vm/vcpu0', (self.tid, 5), cpus='1')
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertIn('no cpuset of its own', refusal.detail)
        self.assertEqual('1', self.cpuset)

    def test_a_group_above_that_is_narrow_itself(self):
        self.tree.group('vm', cpus='1')
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertEqual(({1}, '1'), (self.cpus, self.cpuset))

    def follow_but_not_below(self, path, text):
        if text.strip() not in ('', '1'):
            raise OSError(errno.EACCES, 'the group above has fewer')

    def test_a_cpuset_that_takes_nothing_wider(self):
        self.follow = self.follow_but_not_below
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)

    def test_a_group_with_a_thread_of_kvm(self):
        self.tree.group('vm/vcpu0', (self.tid, 5), cpus='1')
        self.tree.write('proc/%d/task/5/comm' % self.tid, 'kvm-nx-lpage-re\n')
        self.apply(4_000)
        self.assertEqual(({1}, '1'), (self.cpus, self.cpuset))

    def test_pinned_to_everything_is_not_pinned(self):
        target = enforcement.Target(0, self.tid, frozenset((0, 1, 2)))
        self.assertEqual([], affinity.Affinity().pinned([target]))


class TestPinnedVersion2(TestPinned):
    """The same in the unified hierarchy, which has no empty cpuset."""

    version = 2

    def follow_but_not_below(self, path, text):
        if text.strip() != '1':
            raise OSError(errno.EACCES, 'the group above has fewer')

    def test_one_that_had_no_cpuset_is_left_as_wide(self):
        self.tree.group('vm/vcpu0', (self.tid,), cpus='')
        prior = self.backend.prior([self.target])
        self.apply(4_000)
        self.assertEqual('1', self.cpuset)
        self.backend.restore([self.target], prior)
        self.assertEqual(({1}, '0-1'), (self.cpus, self.cpuset))
