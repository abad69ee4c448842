# SPDX-License-Identifier: Apache-2.0

"""Tests that run the profiler on this kernel, as an operator does."""

import glob
import os
import subprocess
import sys

import fixtures
from oslotest import base

from vsched_agent.enforcement import capacity
from vsched_agent.host import cgroup
from vsched_agent.tests import fixtures as agent_fixtures

#: How long a run may take to begin, in seconds.
PATIENCE_S = 120
#: Shares, windows and neighbours of a short run.
RUN = ('error', '--shares', '30,60', '--seconds', '2', '--contend', '2')


class ProfilerCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        agent_fixtures.require_deadline(self)
        self.books = capacity.KernelCapacity()
        self.before = self.books.measured()
        self.addCleanup(self.as_before)
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.config = os.path.join(self.folder, 'vsched.conf')
        with open(self.config, 'w', encoding='utf-8') as file:
            file.write('[agent]\nstate_path = %s/state\n' % self.folder)

    def as_before(self):
        agent_fixtures.await_nothing_left(self, self.leftovers)

    def leftovers(self):
        """Return groups, hogs, VMs and bandwidth that are left."""
        self.books.invalidate()
        now = self.books.measured()
        mount = cgroup.Cgroups().mount('cpu')
        return [
            *(
                [
                    '%d units held, before %d'
                    % (now.live_units, self.before.live_units)
                ]
                if now.live_units != self.before.live_units
                else []
            ),
            *(
                ['%d units lost' % (now.leaked_units + now.recovered_units)]
                if now.leaked_units or now.recovered_units
                else []
            ),
            *(glob.glob(mount.point + '/vsched-probe-*') if mount else []),
            *(
                '%d %s' % found
                for found in processes(b'.prctl(1, 9)', b'vsched-calibration-')
            ),
        ]

    def command(self, *words):
        return [
            sys.executable,
            '-W',
            'ignore',
            '-m',
            'vsched_agent.cmd.agent',
            '--config-file',
            self.config,
            'profile',
            *words,
        ]

    def profile(self, *words, code=0):
        done = subprocess.run(
            self.command(*words), capture_output=True, text=True, timeout=600
        )
        self.assertEqual(code, done.returncode, done.stderr)
        return done


def processes(*words):
    """(PID, word) of processes whose command line has one of the words."""
    found = []
    for pid in os.listdir('/proc'):
        if pid.isdigit():
            try:
                with open('/proc/%s/cmdline' % pid, 'rb') as file:
                    line = file.read()
            except OSError:
                continue
            found += [
                (int(pid), word.decode()) for word in words if word in line
            ]
    return found
