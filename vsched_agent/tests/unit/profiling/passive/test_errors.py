# SPDX-License-Identifier: Apache-2.0

import pathlib

import fixtures
from oslotest import base

from vsched_agent.profiling.passive import errors as live
from vsched_agent.tests import profiles
from vsched_lib.model import reservation

ASKED = reservation.Reservation(12_000, 20_000)
MS = 1_000_000


class FakeSwitches:
    """Threads that burn: they run, and then are kept waiting."""

    def __init__(self):
        self.problem = None
        self.errnos = {}
        self.lost = set()
        self.open = set()
        self.ends = {}

    def open_switches(self, tids):
        if self.problem:
            raise self.problem
        self.open |= set(tids) - self.errnos.keys()
        return {tid: self.errnos.get(tid, 0) for tid in tids}

    def read_switches(self, tids):
        found = []
        for tid in tids:
            assert tid in self.open
            found.append(None if tid in self.lost else self.ends.pop(tid, []))
        return found

    def close_switches(self, tids):
        self.open -= set(tids)


class TestLive(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.proc = self.useFixture(fixtures.TempDir()).path
        self.now_ns = 10**12
        self.patch(live.time, 'monotonic_ns', lambda: self.now_ns)
        self.patch(live, 'PASSES', 5)
        self.switches = FakeSwitches()
        self.ran_ns = {}
        self.slices = {}

    def thread(self, tid, asked=ASKED):
        self.write(tid)
        return live.Held(tid, 'deadline', asked)

    def write(self, tid):
        folder = pathlib.Path(self.proc, str(tid))
        folder.mkdir(exist_ok=True)
        ran_ns = self.ran_ns.setdefault(tid, 0)
        (folder / 'schedstat').write_text(
            '%d %d %d'
            % (ran_ns, self.now_ns - ran_ns, self.slices.setdefault(tid, 0))
        )

    def make(self, threads=8):
        return live.LiveErrors(threads, self.switches, self.proc)

    def second(self, share=0.6, tids=(1,), length_ns=1000 * MS):
        """Everybody runs in the first part of it and then waits."""
        for tid in tids:
            ran_ns = round(share * length_ns)
            self.ran_ns[tid] = self.ran_ns.get(tid, 0) + ran_ns
            self.slices[tid] = self.slices.get(tid, 0) + 1
            # A moment before the end it runs again.
            self.switches.ends[tid] = [
                (self.now_ns + ran_ns - 1, False),
                (self.now_ns + length_ns - 1, True),
            ]
        self.now_ns += length_ns
        for tid in tids:
            self.write(tid)

    def burn(self, errors, held, seconds, **how):
        for _ in range(seconds):
            errors.look(held)
            self.second(tids=[one.tid for one in held], **how)

    def test_who_burns_gives_samples(self):
        errors = self.make()
        held = [self.thread(1)]
        self.burn(errors, held, 2)
        self.burn(errors, held, 2, share=0.603)
        errors.look(held)
        self.assertEqual(0, errors.count)
        errors.close()
        found = errors.profile(1, profiles.FACTS)
        (point,) = found.points
        self.assertEqual(
            (600_000, 20_000, 'live'),
            (point.share_ppm, point.period_us, found.source),
        )
        self.assertEqual(3, point.n)
        self.assertLess(0, point.max_ppm)
        self.assertLess(point.max_ppm, 6_000)
        self.assertEqual(set(), self.switches.open)

    def test_nobody_no_profile(self):
        self.assertIsNone(self.make().profile(1, profiles.FACTS))

    def test_who_is_promised_something_else_is_left(self):
        errors = self.make()
        self.burn(errors, [self.thread(1)], 3)
        other = self.thread(1, reservation.Reservation(6_000, 20_000))
        errors.look([other])
        # Its samples so far were of what it was promised then.
        (point,) = errors.profile(1, profiles.FACTS).points
        self.assertEqual(600_000, point.share_ppm)
        self.assertEqual({1}, self.switches.open)

    def test_who_may_get_more_by_right_is_none(self):
        errors = self.make()
        held = [
            self.thread(
                1,
                reservation.Reservation(
                    12_000, 20_000, reservation.Mode.WORK_CONSERVING
                ),
            )
        ]
        self.burn(errors, held, 7)
        self.assertEqual((0, set()), (errors.count, self.switches.open))

    def test_a_late_pass_is_no_error_and_a_missed_one_no_sample(self):
        errors = self.make()
        held = [self.thread(1)]
        for length_ns in (1000, 1000, 1500, 7000, 1000, 1000):
            self.burn(errors, held, 1, length_ns=length_ns * MS)
        errors.close()
        (point,) = errors.profile(1, profiles.FACTS).points
        self.assertEqual(0, point.max_ppm)
        self.assertEqual(3, point.n)

    def test_the_gone_are_passed_over(self):
        errors = self.make()
        self.switches.errnos = {1: 3}
        self.burn(errors, [self.thread(1), self.thread(2)], 7)
        self.assertEqual({2}, self.switches.open)

    def test_what_is_lost_is_begun_anew(self):
        errors = self.make()
        held = [self.thread(1)]
        self.burn(errors, held, 3)
        self.switches.lost = {1}
        self.burn(errors, held, 1)
        self.switches.lost = set()
        errors.close()
        self.assertEqual(0, errors.count)

    def test_who_begins_to_run_meanwhile_is_looked_at_again(self):
        errors = self.make()
        held = [self.thread(1)]
        read = self.switches.read_switches
        moved = []

        def meanwhile(tids):
            found = read(tids)
            if not moved:
                moved.append(tids)
                self.slices[1] += 1
                self.write(1)
            return found

        self.switches.read_switches = meanwhile
        errors.look(held)
        self.assertEqual(1, len(errors._watched[1][1]))

    def test_others_have_their_turn(self):
        errors = self.make(threads=2)
        held = [self.thread(tid) for tid in range(1, 6)]
        seen = []
        for _ in range(18):
            errors.look(held)
            seen.append(frozenset(self.switches.open))
            self.second(tids=range(1, 6))
        self.assertEqual({1, 2, 3, 4, 5}, set().union(*seen))
        self.assertEqual({2}, {len(one) for one in seen})

    def test_none_at_all(self):
        errors = self.make(threads=0)
        self.burn(errors, [self.thread(1)], 3)
        self.assertEqual(set(), self.switches.open)

    def test_a_host_that_forbids_it(self):
        self.switches.problem = PermissionError('no')
        errors = self.make()
        self.burn(errors, [self.thread(1)], 3)
        self.assertEqual(0, errors.count)

    def test_the_newest_samples_are_kept(self):
        self.patch(live, 'MOST', 3)
        errors = self.make()
        held = [self.thread(1)]
        self.burn(errors, held, 20)
        errors.close()
        self.assertEqual(3, errors.count)
