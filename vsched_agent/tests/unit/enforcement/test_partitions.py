# SPDX-License-Identifier: Apache-2.0

import errno
import os

from oslotest import base

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import deadline
from vsched_agent.enforcement import leak_repair
from vsched_agent.enforcement import partitions
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import leaving
from vsched_agent.privileged import partitions as privileged
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_cgroups
from vsched_agent.tests import fake_kernel
from vsched_agent.tests import in_process
from vsched_lib.contract import errors
from vsched_lib.model import reservation

_LIBVIRT = 'machine.slice/machine-qemu-1.scope/libvirt'
_VCPU = _LIBVIRT + '/vcpu0'


class PartitionCase(base.BaseTestCase):
    """A vCPU pinned to CPU 1 on cgroup v2, and a kernel with partitions."""

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(
            fake_kernel.FakeKernel(cpus=frozenset(range(4)))
        )
        self.tree = self.useFixture(fake_cgroups.FakeCgroups(2))
        manager = in_process.entrypoints(privileged.partitions_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        self.tid = self.kernel.start(cpus=frozenset((1,)))
        for name in (_LIBVIRT, *map(os.path.dirname, (_LIBVIRT, _VCPU))):
            while name:
                self.make(name, cpus='')
                name = os.path.dirname(name)
        self.make(_VCPU, (self.tid,), cpus='1')
        self.state = 'root'
        real = cgroup_tree.Group.write

        def write(group, name, text):
            self.before_write(name, text)
            real(group, name, text)
            self.follow(group, name, text)

        self.patch(cgroup_tree.Group, 'write', write)
        self.target = enforcement.Target(0, self.tid, frozenset((1,)))
        self.waits = []
        self.backend = self.make_backend({1})

    def make(self, name, tids=(), cpus=''):
        self.tree.group(name, tids, cpus=cpus)
        for file, text in (
            ('cpus.effective', cpus or '0-3'),
            ('cpus.exclusive', ''),
            ('cpus.partition', 'member'),
        ):
            self.tree.write(
                '%s/%s/cpuset.%s' % (self.tree.cpuset, name, file), text
            )

    def make_backend(self, cpus):
        groups = cgroup.Cgroups(self.tree.root)
        return deadline.DeadlineBackend(
            affinity.Affinity(groups),
            isolation=partitions.Partitions(
                cpus, groups, lambda: self.waits.append(1)
            ),
        )

    def before_write(self, name, text):
        pass

    def follow(self, group, name, text):
        if not group.path.endswith('vcpu0'):
            return
        if name == 'cpuset.cpus.partition':
            if text == 'root':
                self.tree.write(self.path(name), self.state)
            self.kernel.threads[self.tid].domain = (
                frozenset((1,)) if self.read('.partition') == 'root' else None
            )
        if name == 'cpuset.cpus':
            cpus = cpu_list.parse(text)
            self.tree.write(self.path('cpuset.cpus.effective'), text)
            thread = self.kernel.threads[self.tid]
            thread.cpuset = thread.cpus = cpus

    def path(self, name, group=_VCPU):
        return os.path.join(self.tree.cpuset, group, name)

    def read(self, name, group=_VCPU):
        return self.tree.read(self.path('cpuset.cpus' + name, group))

    def found(self):
        return (
            self.kernel.threads[self.tid].cpus,
            self.read(''),
            self.read('.partition'),
            self.read('.exclusive'),
            self.read('.exclusive', 'machine.slice'),
        )

    def apply(self, runtime_us, backend=None):
        (backend or self.backend).apply_each(
            [(self.target, reservation.Reservation(runtime_us, 20_000))]
        )


class TestPartitions(PartitionCase):
    before = ({1}, '1', 'member', '', '')
    made = ({1}, '1', 'root', '1', '1')

    def test_there_and_back(self):
        prior = self.backend.prior([self.target])
        for runtime_us in (4_000, 6_000):
            self.apply(runtime_us)
            self.assertEqual(self.made, self.found())
        self.assertEqual([1], self.waits)
        self.backend.restore([self.target], prior)
        self.assertEqual(self.before, self.found())
        self.assertEqual(
            syscalls.SCHED_OTHER, self.kernel.get_attr(self.tid).policy
        )
        self.assertEqual([1, 1], self.waits)

    def test_a_cpu_that_is_not_permitted(self):
        backend = self.make_backend({2, 3})
        self.assertNotIn('partition', backend.prior([self.target])[self.tid])
        self.assertEqual(
            [], partitions.Partitions({2, 3}).wanted([self.target])
        )

    def test_what_is_no_candidate(self):
        groups = cgroup.Cgroups(self.tree.root)
        isolation = partitions.Partitions({1, 2}, groups)
        for target in (
            enforcement.Target(0, self.tid, frozenset((1, 2))),
            enforcement.Target(0, self.tid, frozenset((1,)), True),
            enforcement.Target(0, self.tid),
        ):
            self.assertEqual([], isolation.wanted([target]))
        os.unlink(
            os.path.join(self.tree.root, self.path('cpuset.cpus.exclusive'))
        )
        # Linux 6.1 and earlier.
        self.assertEqual([], isolation.wanted([self.target]))
        self.assertFalse(isolation.is_made(self.target))

    def test_a_refused_reservation_leaves_no_partition(self):
        self.kernel.bound = 0
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(self.before, self.found())

    def test_a_refused_partition(self):
        self.state = 'root invalid (no CPU is left)'
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertIn('no CPU is left', refusal.detail)
        self.assertEqual(self.before, self.found())

    def test_no_helper(self):
        def isolate(path, cpu):
            raise OSError('sudo: a password is required')

        self.patch(privileged, 'isolate', isolate)
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertIn('a password is required', refusal.detail)

    def before_write_refused(self, name, text):
        if name == 'cpuset.cpus.exclusive' and text:
            raise OSError(errno.EINVAL, 'another partition has it')

    def test_a_cpu_of_another_partition(self):
        self.before_write = self.before_write_refused
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.PINNING_UNSUPPORTED, refusal.code)
        self.assertEqual([1], refusal.figures['pinned_cpus'])
        self.assertEqual(self.before, self.found())

    def test_a_partition_of_others_is_left(self):
        self.apply(4_000)
        other = self.make_backend(set())
        prior = other.prior([self.target])
        self.apply(6_000, other)
        other.restore([self.target], prior)
        self.assertEqual(self.made, self.found())

    def test_a_record_that_is_older_than_the_partition(self):
        prior = self.make_backend(set()).prior([self.target])
        self.apply(4_000)
        self.backend.restore([self.target], prior)
        self.assertEqual(self.before, self.found())

    def test_an_instance_that_has_ended(self):
        prior = self.backend.prior([self.target])
        self.apply(4_000)
        self.kernel.end(self.tid)
        self.tree.gone(self.tid)
        self.tree.write(self.path('cpuset.cpus.partition'), 'member')
        self.tree.write(self.path('cgroup.threads'), '')
        self.follow = lambda *unused: None
        self.backend.clean_up(prior)
        self.assertEqual('', self.read('.exclusive', 'machine.slice'))
        self.assertEqual('', self.read('.exclusive', _LIBVIRT))

    def test_one_that_is_left_does_not_keep_the_others(self):
        def dissolve(path, cpu, cpus, claimed):
            dissolved.append(path)
            if path == 'a':
                raise OSError('sudo: a password is required')
            return ['machine.slice'] if path == 'b' else []

        dissolved = []
        self.patch(privileged, 'dissolve', dissolve)
        failure = self.assertRaises(
            partitions.NotRemoved,
            self.backend.clean_up,
            {
                number: partitions.Former(path, 1, '', ()).to_dict()
                for number, path in enumerate('abc')
            },
        )
        self.assertEqual(['a', 'b', 'c'], dissolved)
        self.assertIn('a password is required', str(failure))
        self.assertIn('machine.slice was not restored', str(failure))

    def test_a_thread_is_confined_where_its_partition_is_left(self):
        prior = self.backend.prior([self.target])
        self.apply(4_000)
        self.patch(privileged, 'dissolve', lambda *unused: ['machine.slice'])
        confined = []
        self.patch(self.backend._pinning, 'confine', confined.extend)
        self.assertRaises(
            partitions.NotRemoved, self.backend.restore, [self.target], prior
        )
        self.assertEqual([self.tid], [one.tid for one in confined])

    def test_a_refusal_is_known_where_a_partition_is_left(self):
        def dissolve(*unused):
            raise OSError('the helper died')

        self.kernel.bound = 0
        self.patch(privileged, 'dissolve', dissolve)
        refusal = self.assertRaises(errors.Refused, self.apply, 4_000)
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)

    def test_a_host_that_is_never_quiet(self):
        def await_quiet():
            raise leak_repair.NotRepairable('threads leave all the time')

        groups = cgroup.Cgroups(self.tree.root)
        backend = deadline.DeadlineBackend(
            affinity.Affinity(groups),
            isolation=partitions.Partitions({1}, groups, await_quiet),
        )
        self.apply(4_000, backend)
        self.assertEqual(self.made, self.found())
