# SPDX-License-Identifier: Apache-2.0

"""What the profiler measures on this kernel, as an operator runs it."""

import csv
import glob
import io
import json
import signal
import subprocess

from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.profiling import profiler_case


class TestErrorRuns(profiler_case.ProfilerCase):
    def test_measured_shown_and_exported(self):
        self.profile('show', code=1)
        plan = self.profile(*profiler_case.RUN, '--dry-run').stdout
        self.assertIn('8 points', plan)
        stolen_s = agent_guests.stolen_s()
        done = self.profile(*profiler_case.RUN, '--json')
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

    def test_stopped_and_gone_on_with(self):
        # Its second half is longer than this test may stand still.
        words = (
            *profiler_case.RUN,
            '--backends',
            'deadline',
            '--seconds',
            '5',
        )
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
        _, said = running.communicate(timeout=profiler_case.PATIENCE_S)
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


class TestInGuest(profiler_case.ProfilerCase):
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
