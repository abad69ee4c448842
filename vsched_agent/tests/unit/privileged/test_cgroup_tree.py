# SPDX-License-Identifier: Apache-2.0

import errno
import os
import pathlib

import ddt
import fixtures
from oslotest import base

from vsched_agent.privileged import cgroup_tree
from vsched_agent.tests import descriptors


@ddt.ddt
class TestOpenGroup(base.BaseTestCase):
    openat2 = staticmethod(cgroup_tree.openat2)

    def setUp(self):
        super().setUp()
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.root = self.top / 'cgroup'
        (self.root / 'a' / 'b').mkdir(parents=True)
        (self.root / 'a' / 'b' / 'tasks').write_text('7\n8\n')
        self.patch(cgroup_tree, 'ROOT', str(self.root))
        self.patch(cgroup_tree, '_version', lambda folder: 1)
        self.patch(cgroup_tree, 'openat2', self.openat2)

    def test_there(self):
        with cgroup_tree.open_group(str(self.root / 'a' / 'b')) as group:
            self.assertEqual((1, 2), (group.version, group.depth))
            self.assertEqual((7, 8), group.threads())
            group.write('tasks', '9')
            self.assertEqual('9', group.read('tasks'))
            for name in ('', '.', '..', '../tasks', 'x/y'):
                self.assertRaises(PermissionError, group.read, name)
        with cgroup_tree.open_group(str(self.root)) as group:
            self.assertEqual(0, group.depth)

    def test_not_there(self):
        failure = self.assertRaises(
            FileNotFoundError, cgroup_tree.open_group, str(self.root / 'c')
        )
        self.assertEqual(errno.ENOENT, failure.errno)

    def test_links_on_the_way(self):
        os.symlink(self.root / 'a', self.root / 'link')
        os.symlink('/proc/self/root', self.root / 'a' / 'magic')
        for path in ('link', 'link/b', 'a/magic', 'a/magic/etc', 'a/b/tasks'):
            refusal = self.assertRaises(
                PermissionError, cgroup_tree.open_group, str(self.root / path)
            )
            self.assertIn('refused', str(refusal))

    @ddt.data(
        '/etc',
        '/',
        '',
        'cgroup/a',
        '%s/../x',
        '%s/a/./b',
        '%s//a',
        '%s/a/',
        '%sx/a',
        '%s/a\0b',
    )
    def test_paths(self, path):
        if '%s' in path:
            path %= self.root
        self.assertRaises(PermissionError, cgroup_tree.open_group, path)

    def test_no_hierarchy_there(self):
        self.patch(cgroup_tree, '_version', lambda folder: 0)
        for path in ('', '/a', '/a/b'):
            self.assertRaises(
                PermissionError, cgroup_tree.open_group, str(self.root) + path
            )

    def test_descriptors_are_closed(self):
        cgroup_tree.open_group(str(self.root)).__exit__()
        before = descriptors.links(str(self.root))
        for _ in range(10):
            self.test_not_there()
            with cgroup_tree.open_group(str(self.root / 'a')):
                pass
        self.assertEqual(before, descriptors.links(str(self.root)))


class TestWithoutTheCall(TestOpenGroup):
    """A kernel before 5.6."""

    @staticmethod
    def openat2(folder, path, flags, resolve):
        raise OSError(errno.ENOSYS, 'no such call')
