# SPDX-License-Identifier: Apache-2.0

"""What becomes of balloons that are on trial."""

import math
import random

from vsched_agent.ballooning import base
from vsched_agent.tests import ballooning_host
from vsched_lib.contract import errors
from vsched_lib.model import balloon_trial

PATH = '/run/vsched.progress'


class TrialTest(ballooning_host.HostCase):
    def test_kept_when_waiting_shrinks(self):
        host, one, two = self.two()
        host.pass_time(12)
        self.assertEqual(['taken'] * 2 + ['kept'] * 2, host.codes())
        host.pass_time(300)
        self.assertEqual(4, len(host.events))

    def test_given_back_when_nobody_knows(self):
        host, one, two = self.two(settings=base.Settings(guest_timeout_s=0.3))
        host.pass_time(12)
        self.assert_full(host, one, two)
        self.assertEqual(['taken'] * 2 + ['returned'] * 2, host.codes())
        (change,) = host.history(one)
        self.assertEqual(balloon_trial.Outcome.UNKNOWN, change.outcome)
        self.assertIn('no progress counter', change.detail)
        # As after one that did not pay.
        host.pass_time(280)
        self.assert_full(host, one, two)
        host.pass_time(30)
        self.assertEqual(4, host.codes().count('taken'))

    def test_reverted_when_progress_does_not_grow(self):
        host = self.make_host(
            settings=base.Settings(
                progress_path=PATH, guest_timeout_s=0.3, keep_unknown=True
            )
        )
        one = host.add(1)
        host.add(2)
        for second in range(30):
            host.guests.set_progress(one, PATH, 1000 * second)
            host.pass_time(1)
            self.finish_readings(host)
        self.assert_full(host, one)
        self.assertIn('kept', host.codes())
        (reverted,) = [
            figures
            for code, uuid, _, figures in host.events
            if code == errors.Code.BALLOON_RETURNED
        ]
        self.assertEqual(balloon_trial.Outcome.REVERTED, reverted['outcome'])
        host.pass_time(100)
        self.assert_full(host, one)

    def test_decided_when_the_counter_yields_a_rate(self):
        host = self.make_host(
            settings=base.Settings(progress_path=PATH, guest_timeout_s=0.3)
        )
        one = host.add(1)
        host.add(2)
        host.guests.set_progress(one, PATH, 1000)
        seen = 0
        # All is known but the rate; the second reading is not left to the
        # next sample.
        while not host.guests.told and seen < 6:
            seen += 1
            host.pass_time(1)
            self.read(host, one)
        self.assertLess(seen, 6)
        (found,) = [
            found for found in host.loop.instances() if found.uuid == one
        ]
        self.assertEqual(2, len(found.counter))
        self.assertIsNotNone(found.status.before.progress)
        self.assertFalse(found.decide_early)

    def finish_readings(self, host):
        """Have all readings come that are under way in the background."""
        while any(math.isinf(one.counter_s) for one in host.loop.instances()):
            item = host.loop.posted.get(timeout=60)
            if item is not None:
                item()
        host.wait_for_actions()

    def read(self, host, uuid):
        """Have a reading come that is under way or about to be."""
        (found,) = [
            found for found in host.loop.instances() if found.uuid == uuid
        ]
        before = len(found.counter)
        while (found.decide_early or math.isinf(found.counter_s)) and (
            len(found.counter) == before
        ):
            item = host.loop.posted.get(timeout=60)
            host.now_s += 0.5
            item()
        host.wait_for_actions()

    def test_given_back_when_the_others_are_idle(self):
        host, one, two = self.two(cpus=4)
        host.pass_time(12)
        self.assertEqual({0, 1}, host.guests.online(one))
        host.busy[two] = (0.0, 0.0)
        host.pass_time(20)
        self.assert_full(host, one, two)
        self.assertEqual(2, host.codes().count('returned'))

    def test_left_with_more_when_there_is_more(self):
        host, one, two = self.two()
        host.pass_time(12)
        host.busy[two] = (0.0, 0.0)
        host.pass_time(20)
        # No more than there are CPUs.
        self.assertEqual({0, 1}, host.guests.online(one))
        self.assertEqual((0, 1), host.actions.vcpu_sets[one])
        self.assert_full(host, two)

    def test_flapping_is_bounded(self):
        host, one, two = self.two()
        for second in range(300):
            host.busy[two] = (0.25, 0.75) if second % 24 < 12 else (0, 0)
            host.pass_time(1)
        taken = [
            uuid
            for code, uuid, *_ in host.events
            if code == errors.Code.BALLOON_TAKEN
        ]
        for uuid in (one, two):
            self.assertLessEqual(taken.count(uuid), 300 / 30 + 1)

    def test_an_hour_of_random_load(self):
        host = self.make_host(cpus=4)
        uuids = [
            host.add(number, 4, weight=100 * number) for number in (1, 2, 3)
        ]
        chance = random.Random(6)
        for _ in range(3600):
            for uuid in uuids:
                if chance.random() < 0.05:
                    host.busy[uuid] = chance.choice(
                        [(0.25, 0.75), (0.9, 0.05), (0.0, 0.0)]
                    )
            host.pass_time(1)
            for one in host.loop.instances():
                self.assertEqual(one.online, len(host.guests.online(one.uuid)))
        for uuid in uuids:
            taken = [
                code
                for code, whose, *_ in host.events
                if (code, whose) == (errors.Code.BALLOON_TAKEN, uuid)
            ]
            self.assertGreater(len(taken), 1)
            self.assertLessEqual(len(taken), 3600 / 30 + 1)
            host.busy[uuid] = (0.0, 0.0)
        host.pass_time(30)
        self.assert_full(host, *uuids)
