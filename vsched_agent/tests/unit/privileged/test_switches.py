# SPDX-License-Identifier: Apache-2.0

import errno
import os
import struct
import subprocess
import sys
import time

from oslotest import base

from vsched_agent.privileged import clocks
from vsched_agent.privileged import switches
from vsched_agent.tests import in_process


def record(kind, misc, at_ns=None):
    body = b'' if at_ns is None else struct.pack('=Q', at_ns)
    return struct.pack('=IHH', kind, misc, 8 + len(body)) + body


class TestParse(base.BaseTestCase):
    def test_on_and_off(self):
        self.assertEqual(
            [(10, True), (20, False), (30, False)],
            switches.parse(
                record(14, 0, 10)
                + record(14, 1 << 13, 20)
                + record(14, 3 << 13, 30)
            ),
        )

    def test_others_are_passed_over(self):
        self.assertEqual(
            [(7, True)], switches.parse(record(2**20, 0, 5) + record(14, 0, 7))
        )

    def test_lost(self):
        self.assertIsNone(switches.parse(record(14, 0, 10) + record(2, 0, 5)))

    def test_nothing(self):
        self.assertEqual([], switches.parse(b''))


class TestKernel(base.BaseTestCase):
    """Against this host's kernel, where it lets us."""

    def setUp(self):
        super().setUp()
        manager = in_process.entrypoints(clocks.perf_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)

    def watch(self, tid):
        number = switches.open_switches([tid])[tid]
        if number in (errno.EPERM, errno.EACCES, errno.ENOSYS):
            self.skipTest('perf_event_open: %s' % os.strerror(number))
        self.assertEqual(0, number)
        self.addCleanup(switches.close_switches, [tid])

    def test_a_sleeper_comes_and_goes(self):
        child = subprocess.Popen(
            [sys.executable, '-c', ('import time\nwhile 1: time.sleep(0.01)')]
        )
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.watch(child.pid)
        give_up = time.monotonic() + 60
        found = []
        while len(found) < 20 and time.monotonic() < give_up:
            time.sleep(0.05)
            (new,) = switches.read_switches([child.pid])
            found += new
        times = [at_ns for at_ns, _ in found]
        self.assertEqual(sorted(times), times)
        # By that clock; others differ by more than any test takes.
        self.assertLess(abs(times[-1] - time.monotonic_ns()), 120 * 10**9)
        runs = [runs for _, runs in found]
        # On and off in turns.
        self.assertEqual([not one for one in runs[1:]], runs[:-1])
        (again,) = switches.read_switches([child.pid])
        self.assertTrue(all(at_ns > times[-1] for at_ns, _ in again))

    def test_who_is_not_there(self):
        child = subprocess.Popen([sys.executable, '-c', ''])
        child.wait()
        self.assertEqual(
            {child.pid: errno.ESRCH}, switches.open_switches([child.pid])
        )
        self.assertEqual([None], switches.read_switches([child.pid]))

    def test_too_many(self):
        self.patch(switches, 'MOST', 0)
        self.assertRaises(ValueError, switches.open_switches, [os.getpid()])
