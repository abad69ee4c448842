# SPDX-License-Identifier: Apache-2.0

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

from oslotest import base
from testtools import content

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import deadline
from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import doctor
from vsched_agent.enforcement import reclaim
from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged import reclaiming
from vsched_agent.privileged import syscalls
from vsched_agent.privileged import threads
from vsched_agent.profiling.error import hogs
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.enforcement import kernel_case
from vsched_agent.tests import in_process
from vsched_lib.model import reservation

PROMISE = reservation.Reservation(
    6_000, 20_000, reservation.Mode.WORK_CONSERVING
)
PATIENCE_S = 120.0
#: Whether a host is idle once is seen by then.
_CHANCE_S = 20.0
_PR_SET_CHILD_SUBREAPER = 36

#: Stands for the helper on a host where nothing else runs, whatever does.
_HELPER = r"""
import sys
from vsched_agent.privileged import helper, reclaiming
reclaiming._Runnable.read = lambda self, now_s: (2, 1)
sys.exit(helper.main())
"""
#: Stands for an agent: holds a thread of its own, and attests it all the time.
_AGENT = r"""
import shlex, subprocess, sys, time
from oslo_config import cfg
from vsched_agent.enforcement import base, deadline, reclaim
from vsched_agent.privileged import budgets, isolated
from vsched_lib.model import reservation
context = budgets.budgets_pctxt
assert not context.conf.helper_command
cfg.CONF.set_override(
    'helper_command', shlex.join(isolated.command('-c', sys.argv[1])),
    group=context.cfg_section)
backend = deadline.DeadlineBackend(idle=reclaim.IdleTime(True))
hog = subprocess.Popen([sys.executable, '-I', '-S', '-c', '''
import resource
resource.setrlimit(resource.RLIMIT_CPU, (300, 300))
while True:
    pass
'''])
backend.apply_each([(base.Target(0, hog.pid), reservation.Reservation(
    6_000, 20_000, reservation.Mode.WORK_CONSERVING))])
print(hog.pid, flush=True)
while True:
    backend.refresh()
    time.sleep(0.05)
"""


class IdleTimeCase(kernel_case.KernelCase):
    """``self.target`` burns, and may use idle CPU time."""

    def reclaims(self):
        return bool(
            syscalls.get_attr(self.target.tid).flags & syscalls.FLAG_RECLAIM
        )

    def await_flag(self, wanted):
        give_up = time.monotonic() + PATIENCE_S
        while self.reclaims() != wanted:
            if time.monotonic() > give_up:
                self.fail(
                    'the flag is %s, the load %.1f'
                    % (not wanted, os.getloadavg()[0])
                )
            time.sleep(0.001)

    def await_idle_host(self):
        """Return whether the flag was set while the host was idle.

        It has to be set within eight seconds in which others leave a CPU
        idle. A host that is busy all the time gives no such chance.
        """
        counter = reclaiming._Runnable()
        self.addCleanup(counter.close)
        idle_since, stolen_s = time.monotonic(), agent_guests.stolen_s()
        give_up = idle_since + _CHANCE_S
        while not self.reclaims():
            now = time.monotonic()
            cpus, runnable = counter.read(now)
            # The watched thread is one of them, or throttled.
            if runnable > cpus:
                idle_since, stolen_s = now, agent_guests.stolen_s()
            # What the machine under this one takes leaves no CPU idle.
            self.assertLess(
                now - idle_since,
                8 + agent_guests.stolen_s() - stolen_s,
                'idle, and no flag',
            )
            if now > give_up:
                return False
            time.sleep(0.005)
        return True

    def samplers(self):
        return [
            one
            for one in capacity.deadline_threads()
            if one.comm == reclaiming.COMM
        ]

    def await_no_sampler(self):
        """It stays for a moment, in case there are new threads."""
        give_up = time.monotonic() + PATIENCE_S
        while self.samplers():
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.01)


class TestIdleTime(IdleTimeCase):
    def setUp(self):
        super().setUp()
        hog = hogs.Hog()
        self.addCleanup(hog.close)
        self.target = enforcement.Target(0, hog.pid)
        self.idle = reclaim.IdleTime(True)
        self.backend = deadline.DeadlineBackend(idle=self.idle)
        self.addCleanup(self.await_no_sampler)
        self.addCleanup(self.backend.close)

    def test_it_goes_when_others_want_it(self):
        self.backend.apply_each([(self.target, PROMISE)])
        self.await_idle_host()
        for _ in range(2):
            with contextlib.ExitStack() as others:
                for _ in range(2 * os.cpu_count()):
                    others.enter_context(hogs.Hog())
                self.await_flag(False)
                got = agent_guests.measure([self.target.tid], 2.0)
                self.assertFalse(self.reclaims())
                # Plain RECLAIM gives it 0.95 here.
                self.assertLess(got.shares[0], 0.32 + got.stolen)
                self.assertGreater(got.shares[0], 0.28 - got.stolen)
            self.await_idle_host()

    def test_nothing_stays_behind(self):
        prior = self.backend.prior([self.target])
        self.backend.apply_each([(self.target, PROMISE)])
        self.await_idle_host()
        self.assertEqual(1, len(self.samplers()))
        self.backend.close()
        self.assertFalse(self.reclaims())
        self.await_no_sampler()
        self.assertEqual(
            6_000_000, syscalls.get_attr(self.target.tid).runtime_ns
        )
        self.backend.restore([self.target], prior)


class TestOwnThreads(IdleTimeCase):
    """The governor on this kernel, whatever else runs on it.

    It runs in this process and counts threads of this test only.
    """

    def setUp(self):
        super().setUp()
        hog = hogs.Hog()
        self.addCleanup(hog.close)
        self.target = enforcement.Target(0, hog.pid)
        self.others = []
        self.patch(reclaiming._Runnable, 'read', self.read)
        inside = in_process.entrypoints(budgets.budgets_pctxt)
        inside.__enter__()
        self.addCleanup(inside.__exit__, None, None, None)
        self.backend = deadline.DeadlineBackend(idle=reclaim.IdleTime(True))
        self.addCleanup(self.await_no_sampler)
        self.addCleanup(self.backend.close)

    def read(self, now_s):
        """Two CPUs; ordinary threads, and the one that is watched."""
        with threads.View(self.target.tid) as view:
            running = view.state() == threads.RUNNABLE and (
                self.reclaims() or view.left_ns() > 0
            )
        return 2, len(self.others) + running

    def test_a_share_of_an_idle_host(self):
        self.backend.apply_each([(self.target, PROMISE)])
        self.await_flag(True)
        got = agent_guests.measure([self.target.tid], 2.0)
        self.assertGreater(got.shares[0], 0.9 - got.stolen)

    def test_it_follows_ordinary_threads(self):
        self.backend.apply_each([(self.target, PROMISE)])
        for _ in range(3):
            began = time.monotonic()
            self.await_flag(True)
            on_s = time.monotonic() - began
            self.others = [hogs.Hog() for _ in range(4)]
            try:
                began = time.monotonic()
                self.await_flag(False)
                off_s = time.monotonic() - began
                got = agent_guests.measure([self.target.tid], 2.0)
                self.assertLess(got.shares[0], 0.32 + got.stolen)
            finally:
                others, self.others = self.others, []
                for one in others:
                    one.close()
            self.addDetail(
                'switches',
                content.text_content('on %.3f s, off %.3f s' % (on_s, off_s)),
            )


class TestRunnable(base.BaseTestCase):
    def test_hogs_are_counted(self):
        counter = reclaiming._Runnable()
        self.addCleanup(counter.close)
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(hogs.Hog())
            found = [counter.read(number) for number in range(50)]
        self.assertEqual({os.cpu_count()}, {cpus for cpus, _ in found})
        self.assertLessEqual(3, min(runnable for _, runnable in found))


class TestDeaths(IdleTimeCase):
    """The flag is cleared, whichever process dies or hangs."""

    def setUp(self):
        super().setUp()
        # Its thread outlives it and is ours by then: helpers touch no others.
        self.set_subreaper(1)
        self.addCleanup(self.set_subreaper, 0)
        self.agent = subprocess.Popen(
            [sys.executable, '-c', _AGENT, _HELPER], stdout=subprocess.PIPE
        )
        self.addCleanup(self.agent.stdout.close)
        self.addCleanup(self.agent.wait)
        self.addCleanup(self.agent.kill)
        self.target = enforcement.Target(0, int(self.agent.stdout.readline()))
        self.addCleanup(self.end_thread)
        self.await_flag(True)
        (self.helper,) = (one.pid for one in self.samplers())

    def set_subreaper(self, wanted):
        self.assertEqual(
            0,
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, wanted, 0, 0, 0),
        )

    def end_thread(self):
        """End the thread, whose parent is the agent or, by then, this."""
        os.kill(self.target.tid, signal.SIGKILL)
        self.agent.kill()
        self.agent.wait()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.target.tid, 0)

    def test_the_agent_is_killed(self):
        self.agent.kill()
        self.await_flag(False)
        self.await_no_sampler()

    def test_the_helper_is_killed(self):
        os.kill(self.helper, signal.SIGKILL)
        self.await_flag(False)
        self.assertIsNone(self.agent.poll())

    def test_the_agent_hangs(self):
        os.kill(self.agent.pid, signal.SIGSTOP)
        self.addCleanup(os.kill, self.agent.pid, signal.SIGCONT)
        self.await_flag(False)

    def test_both_are_killed(self):
        # Each of them would clear the flag once the other one is away.
        os.kill(self.helper, signal.SIGSTOP)
        os.kill(self.agent.pid, signal.SIGSTOP)
        os.kill(self.helper, signal.SIGKILL)
        self.agent.kill()
        self.agent.wait()
        self.await_no_sampler()
        # Nobody is left to clear it. An operator is told ...
        self.assertTrue(self.reclaims())
        (problem,) = doctor._reclaiming(capacity.deadline_threads())
        self.assertEqual(diagnosis.Level.PROBLEM, problem.level)
        self.assertIn(str(self.target.tid), problem.text)
        # ... and the next agent does it.
        backend = deadline.DeadlineBackend(idle=reclaim.IdleTime())
        backend.apply_each([(self.target, PROMISE)])
        self.assertFalse(self.reclaims())
        self.assertEqual(
            [], list(doctor._reclaiming(capacity.deadline_threads()))
        )
