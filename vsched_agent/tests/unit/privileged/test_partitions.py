# SPDX-License-Identifier: Apache-2.0

import errno
import pathlib
import shutil

import fixtures
from oslotest import base

from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import ownership
from vsched_agent.privileged import partitions
from vsched_agent.tests import in_process

_SCOPE = 'machine.slice/machine-qemu-1.scope'


class PartitionCase(base.BaseTestCase):
    """Files in place of the unified hierarchy: a virtual machine's groups."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(partitions.partitions_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.patch(cgroup_tree, 'ROOT', str(self.top))
        self.patch(cgroup_tree, '_version', lambda folder: 2)
        self.refused = {}
        self.patch(ownership, 'refusals', lambda tids: self.refused)
        for name in (
            'machine.slice',
            _SCOPE,
            _SCOPE + '/libvirt',
            _SCOPE + '/libvirt/vcpu0',
        ):
            self.file(name, 'cgroup.threads', '')
            self.file(name, 'cpuset.cpus', '')
            self.file(name, 'cpuset.cpus.effective', '0-3')
            self.file(name, 'cpuset.cpus.exclusive', '')
            self.file(name, 'cpuset.cpus.partition', 'member')
        self.vcpu = str(self.top / _SCOPE / 'libvirt/vcpu0')
        self.file(_SCOPE + '/libvirt/vcpu0', 'cgroup.threads', '7\n')
        real = cgroup_tree.Group.write

        def write(group, name, text):
            self.before_write(group, name, text)
            real(group, name, text)
            self.after_write(group, name, text)

        self.patch(cgroup_tree.Group, 'write', write)

    def before_write(self, group, name, text):
        pass

    def after_write(self, group, name, text):
        pass

    def file(self, group, name, text):
        path = self.top / group / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def state(self):
        return {
            str(path.relative_to(self.top)): path.read_text().strip()
            for path in self.top.rglob('cpuset.cpus*')
        }

    def read(self, group, name):
        return (self.top / group / name).read_text().strip()


class TestIsolate(PartitionCase):
    def test_there_and_back(self):
        self.file('machine.slice', 'cpuset.cpus.exclusive', '2')
        before = self.state()
        self.assertEqual({}, partitions.isolate(self.vcpu, 1))
        self.assertEqual(
            ('1', 'root', '1'),
            tuple(
                self.read(self.vcpu, name)
                for name in (
                    'cpuset.cpus',
                    'cpuset.cpus.partition',
                    'cpuset.cpus.exclusive',
                )
            ),
        )
        self.assertEqual(
            '1,2', self.read('machine.slice', 'cpuset.cpus.exclusive')
        )
        self.assertEqual(
            [],
            partitions.dissolve(
                self.vcpu,
                1,
                '',
                [self.vcpu, *map(str, pathlib.Path(self.vcpu).parents[:3])],
            ),
        )
        # An empty cpuset cannot be written again: as wide as the parent.
        vcpu = _SCOPE + '/libvirt/vcpu0/cpuset.cpus'
        self.assertEqual({**before, vcpu: '0-3'}, self.state())

    def test_a_partition_that_is_not_valid(self):
        def after_write(group, name, text):
            if text == 'root':
                self.file(group.path, name, 'root invalid (no CPU is left)')

        self.after_write = after_write
        before = self.state()
        failure = partitions.isolate(self.vcpu, 1)
        self.assertEqual(
            ('root invalid (no CPU is left)', []),
            (failure['state'], failure['unrestored']),
        )
        vcpu = _SCOPE + '/libvirt/vcpu0/cpuset.cpus'
        self.assertEqual({**before, vcpu: '0-3'}, self.state())

    def test_a_cpu_of_another_partition(self):
        def before_write(group, name, text):
            if group.path.endswith('libvirt') and '1' in text:
                raise OSError(errno.EINVAL, 'another has it')

        self.before_write = before_write
        before = self.state()
        self.assertEqual(
            errno.EINVAL, partitions.isolate(self.vcpu, 1)['errno']
        )
        vcpu = _SCOPE + '/libvirt/vcpu0/cpuset.cpus'
        self.assertEqual({**before, vcpu: '0-3'}, self.state())

    def test_groups_of_others(self):
        before = self.state()
        self.refused[7] = 'thread 7 is the shell'
        self.file('user.slice', 'cgroup.threads', '7')
        for path in (self.vcpu, str(self.top / 'user.slice')):
            self.assertRaises(PermissionError, partitions.isolate, path, 1)
            self.assertRaises(
                PermissionError, partitions.dissolve, path, 1, '', []
            )
        self.refused.clear()
        self.assertRaises(
            PermissionError,
            partitions.isolate,
            str(self.top / 'machine.slice'),
            1,
        )
        self.assertRaises(
            PermissionError,
            partitions.dissolve,
            self.vcpu,
            1,
            '',
            [str(self.top / 'machine')],
        )
        self.assertEqual(before, self.state())

    def test_groups_that_are_not_a_vcpus(self):
        names = (
            'machine.slice',
            _SCOPE,
            _SCOPE + '/libvirt',
            _SCOPE + '/libvirt/emulator',
            _SCOPE + '/libvirt/vcpu0/vcpu',
            'kubepods/machine/x',
            'kubepods/machine/vcpu0',
            'machine.slice.other/vcpu0',
        )
        for name in names:
            self.file(name, 'cgroup.threads', '7')
            self.file(name, 'cpuset.cpus', '')
            self.file(name, 'cpuset.cpus.effective', '0-3')
            self.file(name, 'cpuset.cpus.exclusive', '')
            self.file(name, 'cpuset.cpus.partition', 'member')
        before = self.state()
        for name in names:
            path = str(self.top / name)
            self.assertRaises(PermissionError, partitions.isolate, path, 1)
            self.assertRaises(
                PermissionError, partitions.dissolve, path, 1, '', [path]
            )
        self.assertRaises(
            PermissionError, partitions.dissolve, '/machine/vcpu0', 1, '', []
        )
        self.assertEqual(before, self.state())

    def test_text_that_is_no_list_of_cpus(self):
        before = self.state()
        for text in ('root', '0-', '1,', '1 2', '1\n', '-1'):
            self.assertRaises(
                ValueError, partitions.dissolve, self.vcpu, 1, text, []
            )
        self.assertEqual(before, self.state())
        self.assertEqual([], partitions.dissolve(self.vcpu, 1, '0-1,3', []))

    def test_a_machine_that_has_ended(self):
        partitions.isolate(self.vcpu, 1)
        shutil.rmtree(self.top / _SCOPE)
        claimed = [
            str(self.top / 'machine.slice'),
            str(self.top / _SCOPE),
            self.vcpu,
        ]
        self.assertEqual([], partitions.dissolve(self.vcpu, 1, '', claimed))
        self.assertEqual(
            '', self.read('machine.slice', 'cpuset.cpus.exclusive')
        )

    def test_a_group_above_that_is_a_partition_is_left(self):
        self.file('machine.slice', 'cpuset.cpus.exclusive', '1')
        self.file('machine.slice', 'cpuset.cpus.partition', 'root')
        self.assertEqual(
            [str(self.top / 'machine.slice')],
            partitions.dissolve(
                self.vcpu, 1, '', [str(self.top / 'machine.slice')]
            ),
        )
