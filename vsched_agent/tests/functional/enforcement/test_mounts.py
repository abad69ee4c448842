# SPDX-License-Identifier: Apache-2.0

import json
import os
import subprocess
import sys
import time

import fixtures
from oslotest import base

from vsched_agent.host import cgroup
from vsched_agent.tests.functional.enforcement import extra_unified_mounts
from vsched_lib.tests import requirements


class MountsCase(base.BaseTestCase):
    def remove(self, path):
        for _ in range(200):
            try:
                os.rmdir(path)
            except OSError:
                time.sleep(0.01)
            else:
                return
        os.rmdir(path)

    def run_apart(self, module):
        """Run a module in a mount namespace of its own, return its JSON."""
        folder = self.useFixture(fixtures.TempDir()).path
        done = subprocess.run(
            (
                'unshare',
                '--mount',
                '--propagation',
                'private',
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_agent.tests.functional.enforcement.' + module,
                folder,
                self.name,
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        with open('/proc/self/mountinfo') as table:
            self.assertNotIn(folder, table.read())
        return json.loads(done.stdout)


class TestExtraMounts(MountsCase):
    """The kernel's mounts are as a container's build leaves them."""

    def setUp(self):
        super().setUp()
        self.groups = cgroup.Cgroups()
        mounts = {name: self.groups.mount(name) for name in ('cpu', 'cpuset')}
        if os.geteuid() or None in mounts.values():
            requirements.require(
                self, 'libvirt', 'not root of a host with cgroups'
            )
        if any(mount.version != 1 for mount in mounts.values()):
            # Nothing that can be installed: the host has booted so.
            self.skipTest('this host has no controllers of cgroup v1')
        self.name = 'vsched-test-mounts-%d' % os.getpid()
        self.tops = {name: mount.point for name, mount in mounts.items()}
        for name, top in self.tops.items():
            path = os.path.join(top, self.name)
            os.mkdir(path)
            self.addCleanup(self.remove, path)
            if name == 'cpuset':
                for file in ('cpuset.mems', 'cpuset.cpus'):
                    with open(os.path.join(path, file), 'w') as out:
                        out.write('0')

    def test_quotas_pinning_and_repair_find_the_right_place(self):
        found = self.run_apart('extra_mounts')
        self.assertEqual(
            os.path.join(self.tops['cpu'], self.name), found['place']
        )
        self.assertEqual('6000', found['quota'])
        # As wide as the group above, which is the host's.
        self.assertGreater(len(found['wide']), 1)
        self.assertEqual([0], found['narrow'])
        self.assertEqual(
            self.tops['cpuset'] + '/cpuset.sched_load_balance', found['switch']
        )


class TestExtraUnifiedMounts(MountsCase):
    """The same of version 2, whichever controllers it has on this host."""

    def setUp(self):
        super().setUp()
        mount = cgroup.Cgroups().mount(extra_unified_mounts.UNIFIED)
        if os.geteuid() or mount is None:
            requirements.require(
                self, 'libvirt', 'not root of a host with cgroups'
            )
        self.name = 'vsched-test-unified-%d' % os.getpid()
        self.group = os.path.join(mount.point, self.name)
        os.mkdir(self.group)
        self.addCleanup(self.remove, self.group)
        controllers = cgroup.read_text(
            os.path.join(self.group, 'cgroup.controllers')
        )
        self.has_cpu = 'cpu' in controllers.split()

    def test_the_first_mount_is_used(self):
        found = self.run_apart('extra_unified_mounts')
        self.assertEqual([True, True], found['visible'])
        self.assertEqual(found['before'], found['mount'])
        self.assertEqual(self.group, found['place'])
        self.assertEqual(
            '6000 20000' if self.has_cpu else None, found['quota']
        )
