# SPDX-License-Identifier: Apache-2.0

import json
import os
import subprocess
import sys
import time

import fixtures
from oslotest import base

from vsched_agent.host import cgroup
from vsched_lib.tests import requirements


class TestExtraMounts(base.BaseTestCase):
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

    def remove(self, path):
        for _ in range(200):
            try:
                os.rmdir(path)
            except OSError:
                time.sleep(0.01)
            else:
                return
        os.rmdir(path)

    def test_quotas_pinning_and_repair_find_the_right_place(self):
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
                'vsched_agent.tests.functional.enforcement.extra_mounts',
                folder,
                self.name,
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        self.assertEqual(0, done.returncode, done.stderr)
        found = json.loads(done.stdout)
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
