# SPDX-License-Identifier: Apache-2.0

import os
import threading

import fixtures
from oslotest import base

from vsched_agent.host import switches


class SwitchesTestCase(base.BaseTestCase):
    def test_a_thread_that_sleeps(self):
        wake, asleep = threading.Semaphore(0), threading.Semaphore(0)
        tids = []

        def sleep():
            tids.append(threading.get_native_id())
            for _ in range(6):
                asleep.release()
                wake.acquire()

        thread = threading.Thread(target=sleep, daemon=True)
        thread.start()
        asleep.acquire()
        before = switches.voluntary(tids[0])
        for _ in range(5):
            wake.release()
            asleep.acquire()
        after = switches.voluntary(tids[0])
        wake.release()
        thread.join()
        self.assertGreater(after, before)
        self.assertRaises(OSError, switches.voluntary, 1 << 30)

    def test_since_the_last_call(self):
        proc = self.useFixture(fixtures.TempDir()).path

        def write(tid, text):
            os.makedirs(os.path.join(proc, str(tid)), exist_ok=True)
            with open(os.path.join(proc, str(tid), 'status'), 'w') as file:
                file.write(text)

        def slept(tid, count):
            write(
                tid,
                'Name:\tCPU 0/KVM\nvoluntary_ctxt_switches:\t%d\n'
                'nonvoluntary_ctxt_switches:\t7\n' % count,
            )

        counter = switches.SleepCounter(proc)
        slept(1, 10)
        slept(2, 5)
        write(3, 'Name:\tcut off')
        self.assertEqual({}, counter.since([1, 2, 3, 4]))
        slept(1, 25)
        # Its number is that of another thread now.
        slept(2, 1)
        self.assertEqual({1: 15}, counter.since([1, 2]))
        slept(2, 3)
        self.assertEqual({2: 2}, counter.since([2]))
        self.assertEqual({}, counter.since([1]))
