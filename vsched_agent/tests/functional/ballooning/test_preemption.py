# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import re
import statistics
import time

from oslotest import base

from vsched_agent.ballooning import preemption
from vsched_agent.host import schedstat
from vsched_agent.profiling.error import hogs
from vsched_agent.tests.functional import agent_guests
from vsched_lib.tests import requirements

#: Only a hang takes longer, in seconds.
PATIENCE_S = 60.0
TURN_US = 500
SECONDS = 2.0
_HOGS = 4
_WATCHES = 5
_SWITCHES = re.compile(r'^nonvoluntary_ctxt_switches:\s*([0-9]+)', re.M)


def switches(pid):
    """How often it had to give its CPU away so far."""
    return int(
        _SWITCHES.search(
            pathlib.Path('/proc/%d/status' % pid).read_text()
        ).group(1)
    )


def realtime_threads():
    """All threads that ``turns`` could have left."""
    found = set()
    for path in pathlib.Path('/proc').glob('[0-9]*/task/*/comm'):
        try:
            tid = int(path.parent.name)
            if os.sched_getscheduler(tid) == os.SCHED_FIFO and (
                'python' in os.readlink(path.parent / 'exe')
            ):
                found.add(tid)
        except OSError:
            continue
    return found


def await_thread(others):
    """Return the one realtime thread that is not among others."""
    give_up_s = time.monotonic() + PATIENCE_S
    while not (found := realtime_threads() - others):
        if time.monotonic() > give_up_s:
            raise AssertionError('no thread under SCHED_FIFO')
        time.sleep(0.01)
    (tid,) = found
    return tid


class TurnsTest(base.BaseTestCase):
    """Four threads that burn on one CPU, on this kernel."""

    def setUp(self):
        super().setUp()
        if os.geteuid():
            requirements.require(
                self, 'libvirt', 'only root has a class above the fair one'
            )
        cpu = max(os.sched_getaffinity(0))
        self.hogs = []
        for _ in range(_HOGS):
            hog = hogs.Hog()
            self.addCleanup(hog.close)
            os.sched_setaffinity(hog.pid, {cpu})
            self.hogs.append(hog.pid)
        self.preemption = preemption.ForcedPreemption(TURN_US)
        self.preemption.prepare()

    def rate(self, seconds=SECONDS):
        """Switches between them in a second of CPU time, and their shares.

        The median of some watches: others may run in one of them.
        """
        rates, shares = [], []
        for _ in range(_WATCHES):
            before = [switches(pid) for pid in self.hogs]
            before_ns = self.run_ns()
            shares.append(agent_guests.measure(self.hogs, seconds).shares)
            made = sum(switches(pid) for pid in self.hogs) - sum(before)
            rates.append(made / ((self.run_ns() - before_ns) / 1e9))
        return statistics.median(rates), [
            statistics.median(one) for one in zip(*shares, strict=True)
        ]

    def run_ns(self):
        """CPU time of all of them so far."""
        return sum(schedstat.read(pid).run_ns for pid in self.hogs)

    def test_turns_are_shorter_and_shares_are_not(self):
        without, _ = self.rate()
        others = realtime_threads()
        with self.preemption.enabled(self.hogs, 600.0):
            own = await_thread(others)
            before_ns, began_ns = (
                schedstat.read(own).run_ns,
                time.monotonic_ns(),
            )
            within, shares = self.rate()
            own_ns = schedstat.read(own).run_ns - before_ns
            took_ns = time.monotonic_ns() - began_ns
        after, _ = self.rate()
        self.assertGreater(within, 3 * without)
        self.assertLess(after, 2 * without)
        mean = sum(shares) / _HOGS
        for share in shares:
            self.assertLess(abs(share - mean), 0.2 * mean)
        # What the four get depends on the machine's other load; this does not.
        # A turn costs some tens of microseconds of its 500, on a slow machine
        # three times as much; a thread that does not sleep takes all.
        self.assertLess(own_ns, 0.35 * took_ns)

    def test_nothing_stays_behind(self):
        others = realtime_threads()
        attrs = [os.sched_getscheduler(pid) for pid in self.hogs]
        with self.preemption.enabled(self.hogs, 600.0):
            await_thread(others)
        give_up_s = time.monotonic() + PATIENCE_S
        while realtime_threads() - others:
            self.assertLess(time.monotonic(), give_up_s)
            time.sleep(0.05)
        self.assertEqual(
            attrs, [os.sched_getscheduler(pid) for pid in self.hogs]
        )
