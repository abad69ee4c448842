# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import contextlib
import os
import select
import subprocess
import sys
import time

from oslotest import base

from vsched_agent.privileged import alarms
from vsched_agent.privileged import clocks
from vsched_agent.privileged import context
from vsched_agent.privileged import lending

MS = 1_000_000
_BURN = 'while True: pass'
_SLEEP = 'import time; print(flush=True); time.sleep(60)'


class TestAlarms(base.BaseTestCase):
    """Against this host's kernel, where it lets us."""

    def setUp(self):
        super().setUp()
        manager = context.in_process(clocks.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.alarms = alarms.Alarms()

    def child(self, program=_BURN):
        child = subprocess.Popen(
            [sys.executable, '-c', program], stdout=subprocess.PIPE)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def add(self, tid, run_ns):
        with contextlib.closing(lending.Inbox()) as inbox:
            missing = lending.lend([tid], inbox.address)
            if missing:
                self.skipTest('perf_event_open: %s' % (
                    os.strerror(missing[tid])))
            self.alarms.add(tid, inbox.take()[tid])
        self.addCleanup(self.alarms.drop, tid)
        self.alarms.set(tid, run_ns)

    def rung(self, timeout_s=10.0):
        return self.alarms.whose(self.alarms.wait(timeout_s))

    def test_who_runs(self):
        child = self.child()
        self.add(child.pid, 5 * MS)
        self.assertIn(child.pid, self.alarms)
        self.assertEqual(1, len(self.alarms))
        for _ in range(3):
            self.assertEqual([child.pid], self.rung())
        self.alarms.set(child.pid, 1 << 60)
        # One that was under way.
        self.alarms.wait(0.0)
        self.assertEqual([], self.rung(0.2))
        self.alarms.set(child.pid, 5 * MS)
        self.assertEqual([child.pid], self.rung())

    def test_who_sleeps_does_not(self):
        child = self.child(_SLEEP)
        child.stdout.readline()
        self.add(child.pid, 5 * MS)
        time.sleep(0.05)
        self.alarms.wait(0.0)
        self.assertEqual([], self.rung(0.3))

    def test_who_ended_rings_once(self):
        child = self.child(_SLEEP)
        child.stdout.readline()
        self.add(child.pid, 1 << 60)
        child.kill()
        self.assertEqual([child.pid], self.rung())
        self.assertNotIn(child.pid, self.alarms)
        self.assertEqual([], self.rung(0.1))

    def test_dropped(self):
        child = self.child()
        open_before = set(os.listdir('/proc/self/fd'))
        self.add(child.pid, 5 * MS)
        rung = self.alarms.wait(10.0)
        self.assertEqual(1, len(rung))
        self.alarms.drop(child.pid)
        self.assertEqual([], self.alarms.whose(rung))
        self.assertEqual([], self.rung(0.1))
        self.assertEqual(open_before, set(os.listdir('/proc/self/fd')))
        self.alarms.drop(child.pid)

    def test_what_is_no_event(self):
        event = os.open(os.devnull, os.O_RDONLY)
        self.assertRaises(OSError, self.alarms.add, 7, event)
        self.assertEqual(0, len(self.alarms))
        self.assertRaises(OSError, os.fstat, event)

    def test_strangers_are_nobody(self):
        self.assertEqual([], self.alarms.whose([(99_999, select.EPOLLIN)]))
