# SPDX-License-Identifier: Apache-2.0

"""Trees that look like /proc and /sys/fs/cgroup do."""

import os
import pathlib

import fixtures

_HYBRID = """\
30 1 0:26 / /sys/fs/cgroup ro - tmpfs tmpfs ro
31 30 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 30 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
"""
_UNIFIED = """\
31 1 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
"""


class FakeCgroups(fixtures.Fixture):
    """A host with control groups of one version.

    :param version: 1 (with an empty v2 beside it, as systemd has it) or 2.
    """

    def __init__(self, version: int = 1) -> None:
        super().__init__()
        self.version = version

    def _setUp(self) -> None:
        self.root = self.useFixture(fixtures.TempDir()).path
        for name, new in (
            ('cgroup_tree.ROOT', os.path.join(self.root, 'sys/fs/cgroup')),
            # No file system of the kernel's, and no real threads.
            ('cgroup_tree._version', lambda folder: self.version),
            ('ownership.refusals', lambda tids: {}),
        ):
            self.useFixture(
                fixtures.MonkeyPatch('vsched_agent.privileged.' + name, new)
            )
        self.write(
            'proc/self/mountinfo', _HYBRID if self.version == 1 else _UNIFIED
        )
        if self.version == 1:
            self.cpu = 'sys/fs/cgroup/cpu,cpuacct'
            self.cpuset = 'sys/fs/cgroup/cpuset'
            self.write('sys/fs/cgroup/unified/cgroup.controllers', '')
        else:
            self.cpu = self.cpuset = 'sys/fs/cgroup'
            self.write(
                'sys/fs/cgroup/cgroup.controllers', 'cpuset cpu io memory'
            )
        self.group('', cpus='0-1')

    def write(self, path: str, text: str) -> None:
        """Write a file below the root, with its folders."""
        file = pathlib.Path(self.root, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def read(self, path: str) -> str:
        """A file's text."""
        return pathlib.Path(self.root, path).read_text().strip()

    def group(
        self,
        name: str,
        tids: tuple[int, ...] = (),
        quota: str = '-1',
        period: str = '100000',
        cpus: str = '',
    ) -> None:
        """Make a group and put threads into it."""
        listed = ''.join('%d\n' % tid for tid in tids)
        if self.version == 1:
            cpu = os.path.join(self.cpu, name)
            self.write(cpu + '/tasks', listed)
            self.write(cpu + '/cpu.cfs_quota_us', quota)
            self.write(cpu + '/cpu.cfs_period_us', period)
            cpuset = os.path.join(self.cpuset, name)
            self.write(cpuset + '/tasks', listed)
            self.write(cpuset + '/cpuset.cpus', cpus)
        else:
            folder = os.path.join(self.cpu, name)
            self.write(folder + '/cgroup.threads', listed)
            self.write(
                folder + '/cpu.max',
                '%s %s' % ('max' if quota == '-1' else quota, period),
            )
            self.write(folder + '/cpuset.cpus', cpus)
            self.write(folder + '/cpuset.cpus.effective', cpus or '0-1')
        for tid in tids:
            self.write(
                'proc/%d/cgroup' % tid,
                (
                    '4:cpuset:/%s\n3:cpu,cpuacct:/%s\n0::/' % (name, name)
                    if self.version == 1
                    else '0::/%s' % name
                ),
            )

    def gone(self, tid: int) -> None:
        """Let a thread end."""
        os.unlink(os.path.join(self.root, 'proc/%d/cgroup' % tid))
