# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.profiling import live
from vsched_agent.tests import profiles
from vsched_lib.model import reservation

ASKED = reservation.Reservation(12_000, 20_000)


class TestLive(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.proc = self.useFixture(fixtures.TempDir()).path
        self.now_ns = 10 ** 9
        self.patch(live.time, 'monotonic_ns', lambda: self.now_ns)

    def thread(self, tid, ran_ms, switches=7):
        folder = pathlib.Path(self.proc, str(tid))
        folder.mkdir(exist_ok=True)
        (folder / 'schedstat').write_text('%d 5 9' % (ran_ms * 1_000_000))
        (folder / 'status').write_text(
            'Name:\tCPU 0/KVM\nvoluntary_ctxt_switches:\t%d\n'
            'nonvoluntary_ctxt_switches:\t99\n' % switches)
        return live.Held(tid, 'deadline', ASKED)

    def make(self, threads=8):
        return live.LiveErrors(threads, self.proc)

    def second(self, seconds=1.0):
        self.now_ns += round(seconds * 1e9)

    def test_who_never_slept_is_a_sample(self):
        errors = self.make()
        errors.look([self.thread(1, 0)])
        self.second()
        errors.look([self.thread(1, 603)])
        found = errors.profile(1, profiles.FACTS)
        point, = found.points
        self.assertEqual((1, 5_000, 600_000, 20_000, 'live'), (
            point.n, point.mean_ppm, point.share_ppm, point.period_us,
            found.source))

    def test_who_slept_is_none(self):
        errors = self.make()
        errors.look([self.thread(1, 0)])
        self.second()
        errors.look([self.thread(1, 100, switches=8)])
        self.assertEqual(0, errors.count)
        self.assertIsNone(errors.profile(1, profiles.FACTS))

    def test_nor_who_was_promised_something_else_meanwhile(self):
        errors = self.make()
        errors.look([self.thread(1, 0)])
        self.second()
        errors.look([self.thread(1, 600)._replace(
            asked=reservation.Reservation(6_000, 20_000))])
        self.assertEqual(0, errors.count)

    def test_nor_who_may_get_more_by_right(self):
        asked = reservation.Reservation(
            12_000, 20_000, reservation.Mode.WORK_CONSERVING)
        errors = self.make()
        for ran_ms in (0, 900, 1800):
            errors.look([self.thread(1, ran_ms)._replace(asked=asked)])
            self.second()
        self.assertEqual(0, errors.count)

    def test_a_late_pass_is_no_error_and_a_missed_one_no_sample(self):
        errors = self.make()
        errors.look([self.thread(1, 0)])
        self.second(1.5)
        errors.look([self.thread(1, 900)])
        self.second(7)
        errors.look([self.thread(1, 1000)])
        point, = errors.profile(1, profiles.FACTS).points
        self.assertEqual((1, 0), (point.n, point.mean_ppm))

    def test_the_gone_are_passed_over(self):
        errors = self.make()
        held = self.thread(1, 0)
        errors.look([held])
        os.remove(os.path.join(self.proc, '1', 'status'))
        self.second()
        errors.look([held])
        self.assertEqual(0, errors.count)

    def test_a_pass_looks_at_so_many_and_the_next_at_others(self):
        errors = self.make(threads=2)
        for turn in range(4):
            errors.look([self.thread(tid, turn * 600) for tid in range(5)])
            self.second()
        self.assertEqual(6, errors.count)
        self.assertEqual(2, len(errors._marks))

    def test_none_at_all(self):
        errors = self.make(threads=0)
        for ran_ms in (0, 600):
            errors.look([self.thread(1, ran_ms)])
            self.second()
        self.assertEqual(0, errors.count)

    def test_the_newest_samples_are_kept(self):
        self.patch(live, 'MOST', 3)
        errors = self.make()
        for turn in range(6):
            errors.look([self.thread(1, turn * 600)])
            self.second()
        self.assertEqual(3, errors.count)
