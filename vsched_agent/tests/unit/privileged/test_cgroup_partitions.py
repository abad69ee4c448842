# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.privileged import cgroup
from vsched_agent.privileged import cgroup_partitions as partitions
from vsched_agent.privileged import cgroup_tree
from vsched_agent.tests import in_process

_SCOPE = 'machine.slice/machine-qemu-1.scope'


class TestRebuild(base.BaseTestCase):
    """Files in place of the unified hierarchy."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(cgroup.cgroup_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.top = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.patch(cgroup_tree, 'ROOT', str(self.top))
        self.patch(cgroup_tree, '_version', lambda folder: 2)
        (self.top / 'machine.slice').mkdir()
        self.state = 'root'
        write = cgroup_tree.Group.write

        def note(group, name, text):
            self.writes.append((name, text))
            write(group, name, self.state if text == 'root' else text)

        self.patch(cgroup_tree.Group, 'write', note)
        self.path = str(self.top / ('vsched-probe-%d-1' % os.getpid()))
        self.writes = []

        real = os.mkdir

        def mkdir(name, mode=0o777, dir_fd=None):
            real(name, mode, dir_fd=dir_fd)
            if dir_fd is not None:
                for file in ('cpuset.cpus', 'cpuset.cpus.partition'):
                    (self.top / name / file).write_text('')

        self.patch(partitions.os, 'mkdir', mkdir)
        remove = os.rmdir

        def rmdir(name, dir_fd=None):
            for file in (self.top / name).iterdir():
                file.unlink()
            remove(name, dir_fd=dir_fd)

        self.patch(partitions.os, 'rmdir', rmdir)

    def test_a_partition_for_a_moment(self):
        self.assertEqual({}, partitions.rebuild_root_domains(self.path, 3))
        self.assertEqual(
            [
                ('cpuset.cpus', '3'),
                ('cpuset.cpus.partition', 'root'),
                ('cpuset.cpus.partition', 'member'),
            ],
            self.writes,
        )
        self.assertFalse(os.path.exists(self.path))

    def test_a_refusal(self):
        self.state = 'root invalid'
        failure = partitions.rebuild_root_domains(self.path, 3)
        self.assertEqual('root invalid', failure['state'])
        self.assertFalse(os.path.exists(self.path))

    def test_another_path(self):
        for path in (
            str(self.top / 'other'),
            str(self.top / 'machine.slice' / os.path.basename(self.path)),
        ):
            self.assertRaises(
                PermissionError, partitions.rebuild_root_domains, path, 3
            )
