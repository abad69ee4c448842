# SPDX-License-Identifier: Apache-2.0

import os
import signal
import statistics
import time

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import budget_expiry
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import deadline
from vsched_agent.host import kernel
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged import sched
from vsched_agent.privileged import switches
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.error import hogs
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.enforcement import kernel_case
from vsched_lib.model import reservation

CHECK_US = 500
PROMISE = reservation.Reservation(1_000, 10_000)
_ALL_UNITS = 1 << 32
#: Only a hang takes longer, in seconds.
PATIENCE_S = 120
#: Throttled a thread is off for most of a period; other breaks are shorter.
_BREAK_NS = 3_000_000
#: A burst that takes longer than a period was cut by the machine under this
#: one: what it takes then counts in the clock of the switches.
_LONGEST_NS = PROMISE.period_us * 1000
#: How many watches there are, of which the middle one counts.
_WATCHES = 3


class TestBudgets(kernel_case.KernelCase):
    """A thread that burns under 1 ms in 10 ms, on this kernel."""

    def setUp(self):
        super().setUp()
        self.checks = budget_expiry.BudgetChecks(CHECK_US)
        self.addCleanup(self.checks.close)
        self.backend = deadline.DeadlineBackend(checks=self.checks)
        hog = hogs.Hog()
        self.addCleanup(hog.close)
        self.target = enforcement.Target(0, hog.pid)

    def burst_ns(self):
        """The middle one of some watches."""
        return statistics.median(self.watch_ns() for _ in range(_WATCHES))

    def watch_ns(self, seconds=2.0):
        """CPU time from the end of one long break to the next: the mean.

        At ticks of 4 ms every other burst is 2 ms longer, so the median is
        the one or the other.
        """
        tid = self.target.tid
        self.assertEqual({tid: 0}, switches.open_switches([tid]))
        try:
            bursts, since_ns, left_ns, burst_ns = [], None, None, 0
            end = time.monotonic() + seconds
            give_up = time.monotonic() + PATIENCE_S
            while time.monotonic() < end or (
                len(bursts) <= 10 and time.monotonic() < give_up
            ):
                time.sleep(0.05)
                (found,) = switches.read_switches([tid])
                for at_ns, began in found:
                    if not began:
                        if since_ns is not None:
                            burst_ns += at_ns - since_ns
                        since_ns, left_ns = None, at_ns
                        continue
                    if left_ns is not None and at_ns - left_ns > _BREAK_NS:
                        if burst_ns <= _LONGEST_NS:
                            bursts.append(burst_ns)
                        burst_ns = 0
                    since_ns = at_ns
        finally:
            switches.close_switches([tid])
        self.assertGreater(len(bursts), 10)
        return sum(bursts) // len(bursts)

    def test_bursts_are_shorter(self):
        facts = kernel.KernelFacts.read()
        if facts.tick_us < 4_000 or facts.hrtick_dl:
            self.skipTest(
                'a tick is %d us, HRTICK_DL %s'
                % (facts.tick_us, facts.hrtick_dl)
            )
        # The hypervisor under this machine takes idle CPUs, and returns them
        # too late for the checks.
        for _ in range(2 * os.cpu_count()):
            self.addCleanup(hogs.Hog().close)
        deadline.DeadlineBackend().apply_each([(self.target, PROMISE)])
        without_ns = self.burst_ns()
        self.backend.resume([(self.target, PROMISE)])
        time.sleep(0.2)
        with_ns = self.burst_ns()
        self.assertLess(with_ns, without_ns * 3 // 5)

    def test_the_share_is_what_was_promised(self):
        self.backend.apply_each([(self.target, PROMISE)])
        time.sleep(0.2)
        got = agent_guests.measure([self.target.tid], 3.0)
        self.assertLess(abs(got.shares[0] - 0.1), 0.01 + got.stolen)

    def test_nothing_stays_behind(self):
        free = sched.probe_free_bandwidth(_ALL_UNITS)
        others = {one.tid for one in capacity.deadline_threads()}
        prior = self.backend.prior([self.target])
        self.backend.apply_each([(self.target, PROMISE)])
        part = (checking.reserve_mcpu() << reservation.KERNEL_BW_SHIFT) // (
            reservation.MCPU_PER_CPU
        )
        # The thread's and the checker's bandwidth.
        held = (1 << reservation.KERNEL_BW_SHIFT) // 10
        self.assertEqual(
            free - held - part, sched.probe_free_bandwidth(_ALL_UNITS)
        )
        self.assertEqual(
            2, len({one.tid for one in capacity.deadline_threads()} - others)
        )
        self.backend.restore([self.target], prior)
        self.assertEqual(prior, self.backend.prior([self.target]))
        self.checks.close()
        # A period after the end of the checker.
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up and (
            sched.probe_free_bandwidth(_ALL_UNITS) != free
            or {one.tid for one in capacity.deadline_threads()} != others
        ):
            time.sleep(0.05)
        self.assertEqual(free, sched.probe_free_bandwidth(_ALL_UNITS))
        self.assertEqual(
            others, {one.tid for one in capacity.deadline_threads()}
        )

    def test_an_idle_helper_holds_nothing(self):
        others = {one.tid for one in capacity.deadline_threads()}
        prior = self.backend.prior([self.target])
        self.backend.apply_each([(self.target, PROMISE)])
        self.backend.restore([self.target], prior)
        give_up = time.monotonic() + PATIENCE_S
        while {one.tid for one in capacity.deadline_threads()} != others:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.05)

    def seen(self, times=400):
        """What the thread is found to hold."""
        found = set()
        for _ in range(times):
            found.add(syscalls.get_attr(self.target.tid))
            time.sleep(0.0003)
        return found

    def both(self):
        """Wait until the thread was found to hold two values, in turn."""
        found, give_up = set(), time.monotonic() + PATIENCE_S
        while len(found) < 2:
            self.assertLess(time.monotonic(), give_up, found)
            found |= self.seen()
        self.assertEqual(2, len(found), found)
        return found

    def test_reading_ignores_the_checks(self):
        self.backend.apply_each([(self.target, PROMISE)])
        self.both()
        for _ in range(200):
            held = self.backend.read([self.target])[self.target.tid]
            self.assertEqual(
                (PROMISE.runtime_us, PROMISE.period_us),
                (held.runtime_us, held.period_us),
            )

    def test_sleeping_threads_are_not_checked(self):
        self.backend.apply_each([(self.target, PROMISE)])
        self.both()
        os.kill(self.target.tid, signal.SIGSTOP)
        # It stops when it runs next; it is a child of this process.
        os.waitpid(self.target.tid, os.WUNTRACED)
        # A check may be running, and stand still in its middle.
        give_up = time.monotonic() + PATIENCE_S
        while len(self.seen()) > 1:
            self.assertLess(time.monotonic(), give_up)
        os.kill(self.target.tid, signal.SIGCONT)
        self.both()

    def test_changes_of_others_are_left_alone(self):
        self.backend.apply_each([(self.target, PROMISE)])
        (wanted,) = (
            one
            for one in self.both()
            if one.runtime_ns == PROMISE.runtime_us * 1_000
        )
        other = wanted._replace(runtime_ns=2_000_000)
        # A check that has begun before ends after it.
        give_up = time.monotonic() + PATIENCE_S
        syscalls.set_attr(self.target.tid, other)
        while (found := self.seen(100)) != {other}:
            self.assertLess(time.monotonic(), give_up, found)
            syscalls.set_attr(self.target.tid, other)
        # Once the parameters are as reserved again, it is checked again.
        self.backend.apply_each([(self.target, PROMISE)])
        self.both()

    def test_changed_and_checked_again(self):
        self.backend.apply_each([(self.target, PROMISE)])
        for runtime_us in (2_000, 1_500, 1_000) * 5:
            promise = reservation.Reservation(runtime_us, 10_000)
            self.backend.apply_each([(self.target, promise)])
            self.assertEqual(
                {runtime_us},
                {round(one.runtime_ns / 1_000) for one in self.seen(20)},
            )
        self.both()
