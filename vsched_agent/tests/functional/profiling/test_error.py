# SPDX-License-Identifier: Apache-2.0

"""The profiler on this kernel, as an operator runs it."""

import csv
import glob
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import fixtures
from oslotest import base

from vsched_agent.enforcement import capacity
from vsched_agent.host import cgroup
from vsched_agent.hypervisor import qemu_process
from vsched_agent.privileged import sched
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests import thread_farm

#: How long a run may take to begin, in seconds.
PATIENCE_S = 120


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
                for found in _processes(
                    b'.prctl(1, 9)', b'vsched-calibration-'
                )
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


def _processes(*words):
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


class TestErrorRuns(ProfilerCase):
    RUN = ('error', '--shares', '30,60', '--seconds', '2', '--contend', '2')

    def test_measured_shown_and_exported(self):
        self.profile('show', code=1)
        plan = self.profile(*self.RUN, '--dry-run').stdout
        self.assertIn('8 points', plan)
        stolen_s = agent_guests.stolen_s()
        done = self.profile(*self.RUN, '--json')
        stolen_s = agent_guests.stolen_s() - stolen_s
        last = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(1_000_000, last['progress_ppm'])
        found = json.loads(self.profile('show', '--format', 'json').stdout)
        self.assertEqual(
            (1, True, 8),
            (found['version'], found['complete'], len(found['points'])),
        )
        for point in found['points']:
            self.assertEqual(2, point['n'])
            if point['backend'] == 'deadline':
                # A tick of a second's 300 ms, at each end of the window, and
                # what the machine under this one took.
                self.assertLess(
                    point['largest_ppm'][0],
                    150_000 + 1e6 * stolen_s / 0.3,
                    point,
                )
        rows = list(
            csv.DictReader(
                io.StringIO(self.profile('show', '--format', 'csv').stdout)
            )
        )
        self.assertEqual({'deadline', 'cfs'}, {row['backend'] for row in rows})
        self.profile('plot', '--output', self.folder)
        self.assertEqual(3, len(glob.glob(self.folder + '/alert-*.svg')))

    def test_what_is_promised_to_others_is_not_taken(self):
        farm = thread_farm.ThreadFarm()
        self.addCleanup(farm.close)
        (tid,) = farm.add(1)
        self.assertEqual(
            {}, sched.set_deadline([(tid, 19_000_000, 20_000_000, 0)])
        )
        self.addCleanup(sched.leave_deadline, [(tid, 0, 0, 0, 0)])
        plan = self.profile(
            'error', '--shares', '30,90', '--backends', 'deadline', '--dry-run'
        ).stdout
        self.assertIn('2 points', plan)
        self.assertIn('no room for 2', plan)

    def test_what_makes_no_sense_is_told(self):
        for words, text in (
            (('--shares', '0'), 'share: 0 is outside'),
            (('--backends', 'rtds'), 'it can use'),
            (('--seconds', '9999'), '9999 is outside 1..3600'),
            (('--quick', '--seconds', '3'), '--quick'),
        ):
            done = self.profile('error', *words, code=2)
            self.assertIn(text, done.stderr)

    def test_stopped_and_gone_on_with(self):
        # Its second half is longer than this test may stand still.
        words = (*self.RUN, '--backends', 'deadline', '--seconds', '5')
        running = subprocess.Popen(
            self.command(*words, '--json'),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in running.stdout:
            if line.startswith('{') and (
                json.loads(line)['progress_ppm'] > 500_000
            ):
                break
        running.send_signal(signal.SIGTERM)
        _, said = running.communicate(timeout=PATIENCE_S)
        self.assertEqual(3, running.returncode, said)
        self.assertIn('--resume goes on', said)
        self.as_before()
        self.assertIn(
            'another order',
            self.profile('error', '--shares', '20', '--resume', code=2).stderr,
        )
        done = self.profile(*words, '--resume', '--json')
        progress = [
            json.loads(line)['detail'] for line in done.stdout.splitlines()
        ]
        self.assertNotIn('slot 2 of 2', ' '.join(progress))

    def test_it_ends_with_its_input(self):
        running = subprocess.Popen(
            self.command(*self.RUN, '--watch-input', '--run', 'u-1'),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2)
        self.assertIsNone(running.poll())
        running.stdin.close()
        self.assertEqual(3, running.wait(PATIENCE_S))

    def test_killed_at_any_point_it_leaves_nothing(self):
        for turn in range(8):
            running = subprocess.Popen(
                self.command(*self.RUN),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # From the first moment to the second half.
            time.sleep(random.uniform(0.2, 1 + turn))
            running.kill()
            running.wait()
            self.as_before()

    def test_a_killed_helper_leaves_its_group_to_the_next_run(self):
        running = subprocess.Popen(
            self.command(
                'error',
                '--shares',
                '50',
                '--seconds',
                '60',
                '--backends',
                'cfs',
                '--contend',
                '0',
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        mount = cgroup.Cgroups().mount('cpu')
        give_up = time.monotonic() + PATIENCE_S
        while not glob.glob(mount.point + '/vsched-probe-*'):
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        self.profile(*self.RUN, '--backends', 'deadline', '--seconds', '1')


class TestInGuest(ProfilerCase):
    def setUp(self):
        super().setUp()
        agent_fixtures.require_libvirt(self)

    def test_a_real_vcpu_is_given_the_share(self):
        stolen_s = agent_guests.stolen_s()
        self.profile(
            'error',
            '--in-guest',
            '--shares',
            '30',
            '--backends',
            'deadline',
            '--seconds',
            '3',
            '--contend',
            '0',
        )
        found = json.loads(self.profile('show', '--format', 'json').stdout)
        stolen_s = agent_guests.stolen_s() - stolen_s
        (point,) = found['points']
        self.assertEqual(('vcpu', 3), (point['probe'], point['n']))
        # In three seconds, of a share of 0.3.
        self.assertLess(
            abs(point['mean_ppm']), 100_000 + 1e6 * stolen_s / 3 / 0.3
        )
        # KVM where it runs the guest; the profile says which it was.
        emulated = any('it is emulated' in note for note in found['notes'])
        self.assertEqual(
            'qemu' if emulated else 'kvm', found['features']['virt_type']
        )

    def test_killed_it_takes_its_vm_along(self):
        running = subprocess.Popen(
            self.command(
                'error',
                '--in-guest',
                '--shares',
                '30',
                '--backends',
                'deadline',
                '--seconds',
                '60',
            ),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        give_up = time.monotonic() + PATIENCE_S
        while not _processes(b'vsched-calibration-'):
            self.assertLess(time.monotonic(), give_up)
            self.assertIsNone(running.poll())
            time.sleep(0.1)
        time.sleep(2)
        running.kill()
        running.wait()
        self.as_before()
        self.assertEqual(
            {},
            {
                pid: name
                for pid, name in _processes(b'vsched-calibration-')
                if qemu_process.tids(pid)
            },
        )
