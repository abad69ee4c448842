# SPDX-License-Identifier: Apache-2.0

"""Counters of threads."""

import pathlib
import subprocess
import threading

import ddt
import fixtures
from oslotest import base

from vsched_agent.host import schedstat


@ddt.ddt
class TestSchedstat(base.BaseTestCase):
    def test_this_thread(self):
        tid = threading.get_native_id()
        before = schedstat.read(tid)
        self.assertGreater(before.run_ns, 0)
        self.assertGreater(before.timeslices, 0)
        self.assertGreaterEqual(schedstat.read(tid), before)

    def test_what_a_file_holds(self):
        self.assertEqual(
            (1, 2**64 - 1, 3), schedstat.parse(b'1 18446744073709551615 3\n')
        )

    @ddt.data(b'', b'1 2', b'1 2 3 4', b'1 2 x')
    def test_something_else(self, text):
        self.assertRaises(ValueError, schedstat.parse, text)

    def test_a_thread_that_is_gone(self):
        # Reaped, so that the kernel has let go of it: a thread that was
        # joined may still be there for a moment.
        gone = subprocess.Popen(['true'])
        gone.wait()
        self.assertRaises(ProcessLookupError, schedstat.read, gone.pid)

    def test_another_procfs(self):
        proc = self.useFixture(fixtures.TempDir()).path
        folder = pathlib.Path(proc, '7')
        folder.mkdir()
        (folder / 'schedstat').write_text('4 5 6\n')
        self.assertEqual(
            schedstat.Counters(run_ns=4, wait_ns=5, timeslices=6),
            schedstat.read(7, proc),
        )
