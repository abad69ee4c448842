# SPDX-License-Identifier: Apache-2.0

import errno
import os
import pathlib

import ddt
import fixtures
from oslotest import base

from vsched_agent.privileged import cgroup
from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import ownership
from vsched_agent.tests import in_process


class CgroupCase(base.BaseTestCase):
    """A tree of files in place of a hierarchy."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(cgroup.cgroup_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.outside = top / 'vm' / 'cpu.max'
        self.outside.parent.mkdir()
        self.outside.write_text('keep')
        self.root = top / 'cgroup'
        self.root.mkdir()
        self.patch(cgroup_tree, 'ROOT', str(self.root))
        self.patch(cgroup_tree, '_version', lambda folder: 1)
        self.refused = {}
        for name in ('refusals', 'child_refusals'):
            self.patch(
                ownership,
                name,
                lambda tids: {
                    tid: self.refused[tid]
                    for tid in tids
                    if tid in self.refused
                },
            )
        self.quota = self.file('vm/cpu.cfs_quota_us', '-1')
        self.period = self.file('vm/cpu.cfs_period_us', '100000')
        self.file('vm/tasks', '7\n')

    def file(self, name, text):
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return str(path)

    def read(self, path):
        return pathlib.Path(path).read_text()


@ddt.ddt
class TestWrite(CgroupCase):
    def test_all(self):
        self.assertEqual(
            {}, cgroup.write([(self.period, '20000'), (self.quota, '6000')])
        )
        self.assertEqual(
            ('20000', '6000'), (self.read(self.period), self.read(self.quota))
        )

    def test_or_none(self):
        missing = str(self.root / 'gone' / 'cpu.max')
        failure = cgroup.write([(self.quota, '6000'), (missing, '1 2')])
        self.assertEqual(
            (missing, errno.ENOENT, []),
            (failure['path'], failure['errno'], failure['unrestored']),
        )
        self.assertEqual('-1', self.read(self.quota))

    def test_an_empty_value_is_a_value(self):
        cpus = self.file('vm/cpuset.cpus', '0-1')
        self.assertEqual({}, cgroup.write([(cpus, '')]))
        self.assertEqual('\n', self.read(cpus))

    def test_only_files_of_ours_below_the_mounts(self):
        os.symlink(self.outside, self.root / 'vm' / 'cpu.max')
        os.symlink(self.outside.parent, self.root / 'up')
        for path in (
            str(self.outside),
            self.file('vm/memory.max', '1'),
            str(self.root / '..' / 'vm' / 'cpu.max'),
            '/etc/cpu.max',
            str(self.root / 'vm' / '..' / '..' / 'vm' / 'cpu.max'),
            str(self.root / 'up' / 'cpu.max'),
            str(self.root) + '//vm/cpu.cfs_quota_us',
            str(self.root) + '/./vm/cpu.cfs_quota_us',
            'vm/cpu.cfs_quota_us',
            '',
        ):
            self.assertRaises(
                PermissionError,
                cgroup.write,
                [(self.quota, '6000'), (path, '0 1')],
            )
        # The last component is a link: the kernel says so.
        failure = cgroup.write(
            [(self.quota, '6000'), (str(self.root / 'vm' / 'cpu.max'), '1 2')]
        )
        self.assertEqual(errno.ELOOP, failure['errno'])
        self.assertEqual('-1', self.read(self.quota))
        self.assertEqual('keep', self.read(self.outside))

    @ddt.data(
        ('cpu.cfs_quota_us', '-2'),
        ('cpu.cfs_quota_us', '1\n2'),
        ('cpu.cfs_quota_us', ''),
        ('cpu.cfs_period_us', '-1'),
        ('cpu.max', 'max'),
        ('cpu.max', '1 2 3'),
        ('cpu.max', 'x 1'),
        ('cpuset.cpus', '0;1'),
        ('cpuset.cpus', '1,' * 4000),
        ('cpu.cfs_quota_us', '１'),
    )
    @ddt.unpack
    def test_only_such_values(self, name, text):
        path = self.file('vm/' + name, 'before')
        refusal = self.assertRaises(
            PermissionError, cgroup.write, [(path, text)]
        )
        self.assertIn('may not be set to', str(refusal))
        self.assertEqual('before', self.read(path))

    def test_a_group_of_others(self):
        self.file('vm/tasks', '7\n8\n')
        self.refused[8] = 'thread 8 is the shell'
        refusal = self.assertRaises(
            PermissionError, cgroup.write, [(self.quota, '6000')]
        )
        self.assertEqual('thread 8 is the shell', str(refusal))
        self.assertEqual('-1', self.read(self.quota))

    def test_a_group_that_became_that_of_others(self):
        """Between the look and the act; what was written is undone."""
        other = self.file('other/cpu.cfs_quota_us', '-1')
        self.file('other/tasks', '8')
        real = cgroup._write

        def write(path, text):
            if path == other:
                self.refused[8] = 'thread 8 is the shell'
            return real(path, text)

        self.patch(cgroup, '_write', write)
        self.assertRaises(
            PermissionError,
            cgroup.write,
            [(self.quota, '6000'), (other, '6000')],
        )
        self.assertEqual(
            ('-1', '-1'), (self.read(self.quota), self.read(other))
        )

    def test_an_empty_group(self):
        self.file('vm/tasks', '')
        self.assertEqual(
            errno.ENOENT, cgroup.write([(self.quota, '6000')])['errno']
        )
        self.assertEqual('-1', self.read(self.quota))

    def test_what_is_written_at_the_top(self):
        switch = self.file('cpuset.sched_load_balance', '1')
        self.assertEqual({}, cgroup.write([(switch, '0'), (switch, '1')]))
        for path in (
            self.file('cpuset.cpus', '0'),
            self.file('vm/cpuset.sched_load_balance', '1'),
        ):
            self.assertRaises(PermissionError, cgroup.write, [(path, '0')])


class TestProbeGroups(CgroupCase):
    def setUp(self):
        super().setUp()
        self.path = str(self.root / ('vsched-probe-%d-1' % os.getpid()))
        self.patch(cgroup, '_EMPTY_S', 0.0)

    def test_made_for_a_probe(self):
        # Files make themselves in a real hierarchy only.
        failure = cgroup.make_probe_group(self.path, os.getpid())
        self.assertEqual(errno.ENOENT, failure['errno'])
        self.assertFalse(os.path.exists(self.path))

    def test_for_nobody_else(self):
        self.refused[1] = 'thread 1 is init'
        self.assertRaises(
            PermissionError, cgroup.make_probe_group, self.path, 1
        )
        self.assertFalse(os.path.exists(self.path))

    def test_names(self):
        for path in (
            str(self.root / 'other'),
            str(self.root / 'vsched-probe-1-1'),
            '/tmp/vsched-probe-%d-1' % os.getpid(),
        ):
            self.assertRaises(
                PermissionError, cgroup.make_probe_group, path, os.getpid()
            )
        for path in (
            str(self.root / 'other'),
            str(self.root / 'vsched-probe-1-1'),
        ):
            self.assertRaises(PermissionError, cgroup.remove_probe_group, path)

    def test_at_the_top_only(self):
        below = self.root / 'vm' / ('vsched-probe-%d-1' % os.getpid())
        self.assertRaises(
            PermissionError, cgroup.make_probe_group, str(below), os.getpid()
        )
        self.assertRaises(
            PermissionError, cgroup.remove_probe_group, str(below)
        )
        self.assertFalse(below.exists())

    def test_stale_ones(self):
        gone = self.root / ('vsched-probe-%d-1' % (1 << 23))
        gone.mkdir()
        mine = pathlib.Path(self.path)
        mine.mkdir()
        self.assertEqual(1, cgroup.remove_stale_probe_groups(str(self.root)))
        self.assertEqual((False, True), (gone.exists(), mine.exists()))
        self.assertTrue(cgroup.remove_probe_group(self.path))
        self.assertFalse(mine.exists())
        self.assertRaises(
            PermissionError,
            cgroup.remove_stale_probe_groups,
            str(self.root / 'vm'),
        )
