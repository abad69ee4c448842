# SPDX-License-Identifier: Apache-2.0

import threading

from oslotest import base

from vsched_agent.profiling.error import clocks
from vsched_agent.profiling.error import sampler
from vsched_agent.profiling.error import sched_account

MS = 1_000_000


class Machine:
    """Threads that run at certain times, and two views of that.

    Time goes on by a tenth of a millisecond with each look.

    :param runs: by thread, whether it runs at a time in ns.
    :ivar extra_ns: by thread, what the clock alone counts.
    """

    live = True
    TICK_NS = 4 * MS

    def __init__(self, **runs):
        self.now_ns = 0
        self.runs = {int(name[1:]): when for name, when in runs.items()}
        self.ran_ns = dict.fromkeys(self.runs, 0)
        self.accounts_ns = dict.fromkeys(self.runs, 0)
        self.extra_ns = dict.fromkeys(self.runs, 0)

    def go_on(self, by_ns):
        for _ in range(by_ns // (MS // 10)):
            for tid, runs in self.runs.items():
                if runs(self.now_ns):
                    self.ran_ns[tid] += MS // 10
            self.now_ns += MS // 10
            for tid, runs in self.runs.items():
                if not runs(self.now_ns) or not self.now_ns % self.TICK_NS:
                    self.accounts_ns[tid] = self.ran_ns[tid]

    def look(self, tids):
        found = [
            clocks.Look(self.now_ns, self.ran_ns[tid] + self.extra_ns[tid])
            for tid in tids
        ]
        self.go_on(MS // 10)
        return found

    def watch(self, tids):
        pass

    leave = watch


class Account:
    def __init__(self, machine):
        self.machine = machine

    def look(self, tids):
        return [
            clocks.Look(self.machine.now_ns, self.machine.accounts_ns[tid])
            for tid in tids
        ]


class TestSettling(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        # The first millisecond of ten; all the time; never.
        self.machine = Machine(
            t1=lambda now_ns: now_ns % (10 * MS) < MS,
            t2=lambda now_ns: True,
            t3=lambda now_ns: False,
        )
        self.patch(
            sched_account.time, 'monotonic', lambda: self.machine.now_ns * 1e-9
        )
        self.stopping = threading.Event()
        self.patch(self.stopping, 'wait', self.wait)
        self.settling = sched_account.Settling(
            self.machine, Account(self.machine), self.stopping
        )

    def wait(self, seconds):
        self.machine.go_on(round(seconds * 1e9))
        return self.stopping.is_set()

    def charged(self, *tids):
        looks = self.machine.look(tids)
        return looks[0].at_ns, self.settling.charged_ns(tids, looks)

    def test_in_the_middle_of_a_run(self):
        self.machine.go_on(30 * MS + MS // 2)
        at_ns, found = self.charged(1)
        self.assertEqual(30_500_000, at_ns)
        # It had run 3.5 ms, of which the account told 3.
        self.assertEqual([3_500_000], found)

    def test_while_it_does_not_run(self):
        self.machine.go_on(35 * MS)
        self.machine.extra_ns[1] = 7 * MS
        self.assertEqual([4 * MS, 0], self.charged(1, 3)[1])

    def test_one_that_always_runs_is_given_up(self):
        began_ns = self.machine.now_ns
        self.assertEqual([None, 0], self.charged(2, 3)[1])
        self.assertAlmostEqual(
            sched_account.PATIENCE_S,
            (self.machine.now_ns - began_ns) * 1e-9,
            delta=0.002,
        )

    def test_stopped(self):
        self.stopping.set()
        self.assertEqual([None], self.charged(2)[1])
        self.assertLess(self.machine.now_ns, MS)

    def test_clocks_that_are_late_themselves(self):
        self.machine.live = False
        self.assertEqual([None, None], self.charged(1, 3)[1])

    def test_windows_are_what_was_charged(self):
        self.patch(sampler.clocks, 'Ticking', lambda: Account(self.machine))
        self.patch(sampler.time, 'monotonic', sched_account.time.monotonic)

        def stolen(number):
            self.machine.extra_ns[1] += 3 * MS

        first, second = sampler.windows(
            self.machine, (1, 2), 4, 1.0, 4_000, self.stopping, stolen
        )
        self.assertEqual(4, len(first))
        for window in first:
            self.assertAlmostEqual(
                0.1, window.got_ns / window.length_ns, delta=0.001
            )
        for window in second:
            self.assertAlmostEqual(
                1.0, window.got_ns / window.length_ns, delta=0.005
            )
