# SPDX-License-Identifier: Apache-2.0

import contextlib
import os
import select
import subprocess
import sys

from oslotest import base

from vsched_agent.privileged.budget_expiry import alarms
from vsched_agent.privileged.budget_expiry import lending
from vsched_agent.privileged import clocks
from vsched_agent.tests import descriptors
from vsched_agent.tests import in_process

MS = 1_000_000
#: Only a hang takes longer.
_PATIENCE_S = 60.0
_BURN = 'while True: pass'
_SLEEP = 'import time; print(flush=True); time.sleep(600)'


class TestAlarms(base.BaseTestCase):
    """Against this host's kernel, where it permits perf events."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(clocks.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.alarms = alarms.Alarms()

    def child(self, program=_BURN):
        child = subprocess.Popen(
            [sys.executable, '-c', program], stdout=subprocess.PIPE
        )
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def add(self, tid, run_ns):
        with contextlib.closing(lending.Inbox()) as inbox:
            missing = lending.lend([tid], inbox.address)
            if missing:
                self.skipTest(
                    'perf_event_open: %s' % (os.strerror(missing[tid]))
                )
            self.alarms.add(tid, inbox.take()[tid])
        self.addCleanup(self.alarms.drop, tid)
        self.alarms.set(tid, run_ns)

    def rung(self, timeout_s=_PATIENCE_S):
        return self.alarms.threads_of(self.alarms.wait(timeout_s))

    def test_who_runs(self):
        child = self.child()
        self.add(child.pid, 5 * MS)
        self.assertIn(child.pid, self.alarms)
        self.assertEqual(1, len(self.alarms))
        for _ in range(3):
            self.assertEqual([child.pid], self.rung())
        self.alarms.set(child.pid, 1 << 60)
        # Some were under way; after them there are no more.
        self.assertIn([], (self.rung(0.2) for _ in range(10)))
        self.alarms.set(child.pid, 5 * MS)
        self.assertEqual([child.pid], self.rung())

    def test_who_sleeps_does_not(self):
        child = self.child(_SLEEP)
        child.stdout.readline()
        self.add(child.pid, 5 * MS)
        # It may have run a little longer, and a CPU that is stolen from it
        # counts; once it sleeps there are no more.
        self.assertIn([], (self.rung(0.3) for _ in range(10)))

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
        open_before = descriptors.links('anon_inode:')
        self.add(child.pid, 5 * MS)
        rung = self.alarms.wait(_PATIENCE_S)
        self.assertEqual(1, len(rung))
        self.alarms.drop(child.pid)
        self.assertEqual([], self.alarms.threads_of(rung))
        self.assertEqual([], self.rung(0.1))
        self.assertEqual(open_before, descriptors.links('anon_inode:'))
        self.alarms.drop(child.pid)

    def test_what_is_no_event(self):
        event = os.open(os.devnull, os.O_RDONLY)
        self.assertRaises(OSError, self.alarms.add, 7, event)
        self.assertEqual(0, len(self.alarms))
        self.assertRaises(OSError, os.fstat, event)

    def test_unknown_descriptors_are_ignored(self):
        self.assertEqual(
            [], self.alarms.threads_of([(99_999, select.EPOLLIN)])
        )
