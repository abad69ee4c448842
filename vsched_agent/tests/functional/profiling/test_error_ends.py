# SPDX-License-Identifier: Apache-2.0

"""What the profiler refuses, and what it leaves when it ends at any point.

Nothing is asserted of what it measures.
"""

import glob
import json
import os
import random
import signal
import subprocess
import time

from vsched_agent.host import cgroup
from vsched_agent.hypervisor import qemu_process
from vsched_agent.privileged import sched
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional.profiling import profiler_case
from vsched_agent.tests import thread_farm


class TestEnds(profiler_case.ProfilerCase):
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

    def test_it_ends_with_its_input(self):
        running = subprocess.Popen(
            self.command(*profiler_case.RUN, '--watch-input', '--run', 'u-1'),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(2)
        self.assertIsNone(running.poll())
        running.stdin.close()
        self.assertEqual(3, running.wait(profiler_case.PATIENCE_S))

    def test_killed_at_any_point_it_leaves_nothing(self):
        for turn in range(8):
            running = subprocess.Popen(
                self.command(*profiler_case.RUN, '--json'),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            # From the first moment to the second half, however long a busy
            # machine takes to get there.
            for line in running.stdout if turn else ():
                if line.startswith('{') and (
                    json.loads(line)['progress_ppm'] >= turn * 75_000
                ):
                    break
            time.sleep(random.uniform(0.2, 1))
            running.kill()
            running.wait()
            running.stdout.close()
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
        give_up = time.monotonic() + profiler_case.PATIENCE_S
        while not glob.glob(mount.point + '/vsched-probe-*'):
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        self.profile(
            *profiler_case.RUN, '--backends', 'deadline', '--seconds', '1'
        )


class TestEndsInGuest(profiler_case.ProfilerCase):
    def setUp(self):
        super().setUp()
        agent_fixtures.require_libvirt(self)

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
        give_up = time.monotonic() + profiler_case.PATIENCE_S
        while not profiler_case.processes(b'vsched-calibration-'):
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
                for pid, name in profiler_case.processes(
                    b'vsched-calibration-'
                )
                if qemu_process.tids(pid)
            },
        )
