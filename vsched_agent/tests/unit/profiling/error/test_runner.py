# SPDX-License-Identifier: Apache-2.0

import contextlib
import itertools
import os
import threading

import fixtures
from oslotest import base

from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import clocks
from vsched_agent.profiling.error import plan
from vsched_agent.profiling.error import runner
from vsched_agent.profiling.error import sampler
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.contract import profiles as contract
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class FakeClocks:
    """Gives a thread what its number says, in ppm of a CPU."""

    name = 'fake'
    live = False

    def __init__(self):
        self.now_ns = 0
        self.watched = []

    def watch(self, tids):
        self.watched.append(('watch', tuple(tids)))

    def leave(self, tids):
        self.watched.append(('leave', tuple(tids)))

    def look(self, tids):
        # Every other look is late.
        self.now_ns += 1_000_000_000 + 7_000_000 * (len(self.watched) % 2)
        return [
            clocks.Look(self.now_ns, self.now_ns * tid // 1_000_000)
            for tid in tids
        ]


class Probe:
    def __init__(self, tid):
        self.tid = tid


class TestRunner(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'run.jsonl'
        )
        self.clocks = FakeClocks()
        self.patch(sampler.clocks, 'Ticking', lambda: self.clocks)
        self.patch(plan, 'WARM_UP_S', 0)
        self.patch(sampler.time, 'monotonic', lambda: self.clocks.now_ns)
        self.stopping = threading.Event()
        self.enforced = []
        self.alive = 0
        self.told = []
        self.refuse = ()
        self.stolen_ppm = itertools.repeat(None)
        self.hogs = 0
        self.patch(runner.hogs, 'Hog', self.hog)

    @contextlib.contextmanager
    def hog(self):
        self.hogs += 1
        yield

    @contextlib.contextmanager
    def probe(self, task):
        self.alive += 1
        try:
            # Errs by 2 % of its share.
            yield Probe(task.share_ppm * 102 // 100)
        finally:
            self.alive -= 1

    def enforce(self, task, tid):
        if task.share_ppm in self.refuse:
            raise errors.Refused('no room')
        self.enforced.append(task)

    def run_order(self, resume=False, free_ppm=1_800_000, **order):
        kept = checkpoint.RunFile(self.path, {}, resume)
        self.addCleanup(kept.close)
        try:
            return runner.Runner(
                plan.Order(
                    **{
                        'backends': (DEADLINE,),
                        'windows': 3,
                        'contend': 0,
                        'shares_ppm': (100_000, 500_000),
                        **order,
                    }
                ),
                runner.Host(
                    lambda: free_ppm,
                    profiles.FACTS,
                    self.clocks,
                    lambda: next(self.stolen_ppm),
                ),
                self.probe,
                self.enforce,
                kept,
                self.stopping,
                lambda part, text: self.told.append((part, text)),
            ).run(4)
        finally:
            kept.close()

    def test_a_profile(self):
        found = self.run_order()
        self.assertEqual(
            (4, 'benchmark', True, False, 'fake', '6.18.0'),
            (
                found.version,
                found.source,
                found.complete,
                found.quick,
                found.features['clock'],
                found.kernel,
            ),
        )
        self.assertEqual(
            [(100_000, 3, 20_000, 0), (500_000, 3, 20_000, 0)],
            [
                (one.share_ppm, one.n, one.mean_ppm, one.contenders)
                for one in found.points
            ],
        )
        self.assertEqual(0, self.alive)
        self.assertEqual(1_000_000, self.told[-1][0])
        self.assertEqual(self.clocks.watched[0][1], self.clocks.watched[-1][1])

    def test_among_hogs(self):
        found = self.run_order(contend=4)
        self.assertEqual(
            [0, 0, 4, 4], [one.contenders for one in found.points]
        )
        # Two slots of which the second is contended.
        self.assertEqual(4, self.hogs)

    def test_reserved_threads_beside_the_measured_ones(self):
        found = self.run_order(contend=4, threads=4)
        self.assertEqual(4, found.features['looked_at_threads'])
        self.assertEqual([2, 2], [one.n - 1 for one in found.points][:2])
        contended = [
            task.share_ppm for task in self.enforced if task.contenders
        ]
        self.assertEqual([10_000, 10_000, 100_000, 500_000], sorted(contended))
        self.assertTrue(found.complete)
        # None where nobody guarantees anything, or contends.
        self.enforced.clear()
        self.run_order(contend=0, threads=4)
        self.run_order(contend=4, threads=4, backends=(CFS,))
        self.assertNotIn(10_000, [task.share_ppm for task in self.enforced])

    def test_no_room_for_reserved_threads(self):
        self.refuse = (10_000,)
        found = self.run_order(contend=4, threads=4, alone=False)
        self.assertEqual((), found.points)
        self.assertIn(
            '10 % by deadline every 10000 us among 4 hogs is not '
            'measured: there is no room for 4 reserved threads: '
            'no room',
            found.notes,
        )

    def test_stolen_time_is_noted(self):
        for before, meanwhile, noted in (
            (None, 34_000, True),
            (500_000, 1_000, True),
            (500_000, 999, False),
            (None, None, False),
        ):
            self.stolen_ppm = iter([before, meanwhile])
            found = self.run_order()
            self.assertTrue(found.complete)
            self.assertEqual(
                noted, any('stolen' in note for note in found.notes)
            )
        self.stolen_ppm = iter([0, 34_400])
        self.assertEqual(
            (
                "3.4 % of the CPUs' time was stolen from this host meanwhile, "
                "which counts as the scheduler's error",
            ),
            self.run_order().notes,
        )

    def test_what_has_no_room_is_noted(self):
        found = self.run_order(free_ppm=400_000)
        self.assertFalse(found.complete)
        self.assertIn(
            '50 % by deadline every 10000 us is not measured: '
            '400 mcpu are free',
            found.notes,
        )

    def test_what_is_refused_is_noted(self):
        self.refuse = (100_000,)
        found = self.run_order()
        self.assertEqual([500_000], [one.share_ppm for one in found.points])
        self.assertIn('no room', found.notes[0])

    def test_nothing_but_notes(self):
        self.refuse = (100_000, 500_000)
        self.assertEqual((), self.run_order().points)

    def test_what_was_measured_before_is_not_measured_again(self):
        self.run_order(shares_ppm=(100_000,))
        self.enforced.clear()
        found = self.run_order(resume=True)
        self.assertEqual([500_000], [task.share_ppm for task in self.enforced])
        self.assertEqual(2, len(found.points))

    def test_stopped(self):
        self.patch(plan, 'WARM_UP_S', 30)
        self.stopping.set()
        self.assertRaises(runner.Cancelled, self.run_order)
        self.assertEqual(0, self.alive)

    def test_stopped_between_two_looks(self):
        looks = []
        look = self.clocks.look

        def stop(tids):
            looks.append(1)
            if len(looks) == 3:
                self.stopping.set()
            return look(tids)

        self.patch(self.clocks, 'look', stop)
        self.assertRaises(runner.Cancelled, self.run_order)
        self.assertEqual(0, self.alive)

    def test_in_a_guest_one_after_the_other(self):
        found = self.run_order(in_guest=True)
        self.assertEqual(
            {contract.Probe.VCPU}, {one.probe for one in found.points}
        )
        self.assertEqual(
            2, sum(1 for what, _ in self.clocks.watched if what == 'watch')
        )


class TestScale(base.BaseTestCase):
    def test_the_account_says_how_much_and_the_clock_when(self):
        found = [
            sampler.Window(10**9, 600_000_000),
            sampler.Window(10**9, 400_000_000),
        ]
        scaled = sampler._scaled(
            found, clocks.Look(0, 0), clocks.Look(4 * 10**9, 1_980_000_000)
        )
        self.assertEqual(
            [594_000_000, 396_000_000], [window.got_ns for window in scaled]
        )

    def test_of_little_the_account_says_too_little(self):
        found = [sampler.Window(10**9, 10_000_000)]
        self.assertEqual(
            found,
            sampler._scaled(
                found, clocks.Look(0, 0), clocks.Look(10**9, 14_000_000)
            ),
        )


class TestBetween(base.BaseTestCase):
    def between(self, counted_ns, charged_ns, late_ns=0):
        return sampler.between(
            clocks.Look(0, 0),
            clocks.Look(10**9, counted_ns),
            clocks.Look(5, 0),
            clocks.Look(10**9 + 5 + late_ns, charged_ns),
            4_000_000,
        )

    def test_within_a_tick_the_clock_is_right(self):
        self.assertEqual(
            (10**9, 98_000_000), self.between(98_000_000, 100_000_000)
        )
        self.assertEqual(
            (10**9, 103_999_999), self.between(103_999_999, 100_000_000)
        )

    def test_what_was_stolen_is_not_got(self):
        self.assertEqual(
            104_000_000, self.between(180_000_000, 100_000_000).got_ns
        )
        self.assertEqual(
            96_000_000, self.between(20_000_000, 100_000_000).got_ns
        )

    def test_an_account_that_is_looked_at_late(self):
        self.assertEqual(
            104_000_000, self.between(500_000_000, 110_000_000, 10**8).got_ns
        )
