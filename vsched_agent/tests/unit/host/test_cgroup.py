# SPDX-License-Identifier: Apache-2.0

import os

import ddt
import fixtures
from oslotest import base

from vsched_agent.host import cgroup
from vsched_agent.tests import fake_cgroups


@ddt.ddt
class TestCgroups(base.BaseTestCase):
    def make(self, version):
        self.tree = self.useFixture(fake_cgroups.FakeCgroups(version))
        return cgroup.Cgroups(self.tree.root)

    @ddt.data(1, 2)
    def test_where_a_thread_is(self, version):
        groups = self.make(version)
        self.tree.group('machine/vm/vcpu0', (7,), cpus='1')
        for controller, top in (
            ('cpu', self.tree.cpu),
            ('cpuset', self.tree.cpuset),
        ):
            place = groups.place(7, controller)
            self.assertEqual(version, place.version)
            self.assertEqual(
                os.path.join(self.tree.root, top, 'machine/vm/vcpu0'),
                place.path,
            )
            self.assertEqual({7}, place.threads())
        self.assertEqual('1', groups.place(7, 'cpuset').read('cpuset.cpus'))

    @ddt.data(1, 2)
    def test_up_to_the_top(self, version):
        groups = self.make(version)
        self.tree.group('a/b', (7,))
        place = groups.place(7, 'cpu')
        self.assertTrue(place.parent.path.endswith('/a'))
        self.assertEqual(place.mount, place.parent.parent.path)
        self.assertIsNone(place.parent.parent.parent)

    @ddt.data(1, 2)
    def test_a_thread_that_is_gone(self, version):
        groups = self.make(version)
        self.assertRaises(ProcessLookupError, groups.place, 7, 'cpu')

    def test_threads_of_kvm_in_a_group(self):
        groups = self.make(2)
        self.tree.group('a/vcpu0', (7, 8))
        place = groups.place(7, 'cpu')
        self.assertFalse(groups.is_alone(7, place))
        self.tree.write('proc/7/task/8/comm', 'CPU 1/KVM\n')
        self.assertFalse(groups.is_alone(7, place))
        self.tree.write('proc/7/task/8/comm', 'kvm-nx-lpage-re\n')
        self.assertTrue(groups.is_alone(7, place))
        self.assertFalse(groups.is_alone(9, place))

    def test_both_versions_side_by_side(self):
        self.assertEqual({1, 2}, self.make(1).versions)
        self.assertEqual({2}, self.make(2).versions)

    def test_a_controller_nobody_mounts(self):
        for version in (1, 2):
            groups = self.make(version)
            self.tree.group('a', (7,))
            self.assertIsNone(groups.mount('rdma'))
            self.assertIsNone(groups.place(7, 'rdma'))

    def test_a_part_of_the_hierarchy_is_mounted(self):
        """As in a container without a cgroup namespace."""
        groups = self.make(2)
        self.tree.write(
            'proc/self/mountinfo',
            '31 1 0:27 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n',
        )
        self.tree.group('vm', (7, 8))
        self.tree.write('proc/7/cgroup', '0::/box/vm')
        self.tree.write('proc/8/cgroup', '0::/elsewhere')
        self.assertEqual({7, 8}, groups.place(7, 'cpu').threads())
        self.assertIsNone(groups.place(8, 'cpu'))

    def test_odd_names_in_the_mount_table(self):
        groups = self.make(2)
        self.tree.write(
            'proc/self/mountinfo',
            '1 1 0:1 / /odd\\040\\134place rw '
            'shared:1 master:2 - cgroup2 none rw\n',
        )
        self.tree.write('odd \\place/cgroup.controllers', 'cpu')
        self.assertTrue(groups.mount('cpu').point.endswith('odd \\place'))


class TestReading(base.BaseTestCase):
    def test_a_file_that_is_not_there(self):
        folder = self.useFixture(fixtures.TempDir()).path
        self.assertRaises(
            FileNotFoundError, cgroup.read_text, folder + '/none'
        )

    def test_a_group_that_goes_away_while_it_is_read(self):
        # A folder can be opened and not be read, like a removed group.
        folder = self.useFixture(fixtures.TempDir()).path
        self.assertRaises(FileNotFoundError, cgroup.read_text, folder)
