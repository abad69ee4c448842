# SPDX-License-Identifier: Apache-2.0

"""Children and grandchildren count, with what they used."""

import os
import subprocess
import sys

from oslotest import base

from benchmarks import process_family

#: Starts a child of its own, says so and waits.
PARENT = """\
import subprocess, sys
child = subprocess.Popen([sys.executable, '-c', %r], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
sys.stdin.read()
"""
#: Uses 0.3 s of CPU time, says so and waits.
CHILD = """\
import sys, time
while time.process_time() < 0.3:
    pass
print(flush=True)
sys.stdin.read()
"""


class ProcessFamilyTestCase(base.BaseTestCase):
    def test_helpers_of_helpers(self):
        before = process_family.descendants(os.getpid())
        parent = subprocess.Popen(
            [sys.executable, '-c', PARENT % CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.addCleanup(parent.wait)
        self.addCleanup(parent.stdin.close)
        self.addCleanup(parent.stdout.close)
        child = int(parent.stdout.readline())
        found = process_family.descendants(os.getpid())
        self.assertEqual({parent.pid, child}, set(found) - set(before))
        used = process_family.use((parent.pid, child))
        self.assertGreaterEqual(used.cpu_s, 0.25)
        self.assertGreater(used.pss_mib, 0.5)
        self.assertGreaterEqual(used.rss_mib, used.pss_mib)

    def test_gone(self):
        process = subprocess.Popen(['true'])
        process.wait()
        used = process_family.use((process.pid,))
        self.assertEqual((0, 0, 0), (used.cpu_s, used.pss_mib, used.rss_mib))
