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

import dataclasses
import threading

from vsched_agent.ballooning import base
from vsched_agent.tests import ballooning_host
from vsched_lib.contract import errors
from vsched_lib.model import balloon_trial
from vsched_lib.model import reservation


class TakingTest(ballooning_host.HostCase):

    def test_contended_instances_share_the_cpus(self):
        host, one, two = self.two()
        for uuid, cpu in ((one, 0), (two, 1)):
            self.assertEqual({0}, host.guests.online(uuid))
            self.assertEqual((0,), host.hands.shapes[uuid])
            self.assertEqual({0: cpu}, host.hands.pins[uuid])
            self.assertIn(uuid, host.memory.rows)
        self.assertEqual(['taken', 'taken'], host.codes())
        self.assertIn('75 %', host.events[0][2])

    def test_turns_are_shorter_meanwhile(self):
        host = self.make_host()
        tell, hasty = host.guests.tell, []

        def spy(uuid, online, timeout_s):
            hasty.append(uuid in host.hands.hasty)
            tell(uuid, online, timeout_s)

        self.patch(host.guests, 'tell', spy)
        host.add(1), host.add(2)
        host.pass_time(4)
        self.assertTrue(host.hands.prepared)
        self.assertEqual([True, True], hasty)
        self.assertEqual(set(), host.hands.hasty)

    def test_by_weight(self):
        host = self.make_host(cpus=6)
        heavy = host.add(1, 6, weight=200)
        light = host.add(2, 6, weight=100)
        host.pass_time(4)
        self.assertEqual(4, len(host.guests.online(heavy)))
        self.assertEqual(2, len(host.guests.online(light)))

    def test_not_before_the_window_is_full(self):
        host = self.make_host()
        host.add(1), host.add(2)
        host.pass_time(2)
        self.assertEqual([], host.codes())

    def test_not_without_a_shortage(self):
        host = self.make_host(cpus=16)
        host.add(1), host.add(2)
        host.pass_time(10)
        self.assertEqual([], host.codes())

    def test_not_from_those_that_do_not_want_it(self):
        host = self.make_host()
        uuid = host.add(1, auto=False)
        other = host.add(2)
        host.pass_time(4)
        self.assert_full(host, uuid)
        self.assertEqual({0}, host.guests.online(other))

    def test_min_vcpus(self):
        host = self.make_host()
        uuid = host.add(1, min_vcpus=3)
        host.add(2)
        host.pass_time(4)
        self.assertEqual({0, 1, 2}, host.guests.online(uuid))
        self.assertNotIn(uuid, host.hands.pins)

    def test_enough_are_left_for_what_was_promised(self):
        host = self.make_host()
        uuid = host.add(1, promise=reservation.Reservation(8000, 20000))
        host.add(2)
        host.pass_time(4)
        # 1.6 CPUs need two vCPUs.
        self.assertEqual({0, 1}, host.guests.online(uuid))

    def test_dry_run_only_talks(self):
        host, one, two = self.two(settings=base.Settings(
            dry_run=True, guest_timeout_s=0.3))
        self.assertEqual(['proposed', 'proposed'], host.codes())
        self.assert_full(host, one, two)
        host.pass_time(20)
        self.assertEqual(2, len(host.events))

    def test_unbound_when_that_does_not_work(self):
        host = self.make_host()
        host.hands.bindable = False
        uuid = host.add(1)
        host.add(2)
        host.pass_time(4)
        self.assertEqual({0}, host.guests.online(uuid))
        host.pass_time(60)
        self.assertEqual({}, host.hands.pins)
        self.assertEqual(2, host.codes().count('taken'))

    def test_bound_when_there_is_a_cpu_for_it(self):
        host = self.make_host()
        late = host.add(1)
        host.add(2)
        host.guests.mute.add(late)
        host.pass_time(4)
        self.assertEqual({}, host.hands.pins)
        host.guests.mute.clear()
        host.pass_time(40)
        self.assertEqual([{0: 0}, {0: 1}], sorted(
            host.hands.pins.values(), key=str))


class TroubleTest(ballooning_host.HostCase):

    def test_a_mute_guest(self):
        host = self.make_host()
        mute, other = host.add(1), host.add(2)
        host.pass_time(1)
        host.guests.mute.add(mute)
        host.pass_time(3)
        self.assertEqual({0}, host.guests.online(other))
        self.assertIn('failed', host.codes())
        self.assertEqual([other], list(host.memory.rows))
        host.guests.mute.clear()
        host.pass_time(40)
        # It backs off for longer than the cool-down.
        self.assert_full(host, mute)

    def test_a_guest_that_ignores_it(self):
        host = self.make_host()
        uuid = host.add(1)
        host.add(2)
        host.guests.ignoring.add(uuid)
        host.pass_time(4)
        self.assert_full(host, uuid)
        self.assertIn('failed', host.codes())

    def test_a_reservation_that_does_not_fit(self):
        host = self.make_host()
        one = host.add(1)
        host.add(2)
        host.hands.refuse = errors.Refused('no room')
        host.pass_time(4)
        self.assert_full(host, one)
        self.assertIn('no room', host.events[0][2])

    def test_a_guest_that_strays(self):
        host, one, two = self.two()
        host.pass_time(3)
        host.strays.add(one)
        host.guests.boot(one, 4)
        host.pass_time(2)
        self.assert_full(host, one)
        self.assertNotIn(two, [uuid for code, uuid, *_ in host.events
                               if code == errors.Code.BALLOON_RETURNED])

    def test_a_reboot(self):
        host, one, _ = self.two()
        host.guests.boot(one, 4)
        host.controller.changed(one)
        # Asks the guest, beside the thread that decides.
        item = host.controller.posted.get(timeout=5)
        item()
        host.controller.posted.get(timeout=5)()
        host.settle()
        self.assert_full(host, one)

    def test_a_reboot_that_takes_a_while(self):
        host, one, _ = self.two()
        host.guests.mute.add(one)
        host.controller.changed(one)
        host.controller.posted.get(timeout=5)()
        host.controller.posted.get(timeout=5)()
        host.pass_time(2)
        host.guests.boot(one, 4)
        host.guests.mute.clear()
        host.pass_time(4)
        self.assert_full(host, one)
        returned, = [figures for code, uuid, _, figures in host.events
                     if code == errors.Code.BALLOON_RETURNED]
        self.assertEqual(balloon_trial.Outcome.UNDONE, returned['outcome'])

    def test_mute_when_vcpus_are_to_be_given_back(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.wishes[one] = base.Wishes()
        host.pass_time(3)
        self.assertIn(one, host.memory.rows)
        self.assertEqual(1, host.codes().count('failed'))
        host.guests.mute.clear()
        host.pass_time(4)
        self.assert_full(host, one)

    def test_started_anew(self):
        host, one, _ = self.two()
        host.restart(one)
        host.guests.boot(one, 4)
        host.pass_time(1)
        self.assert_full(host, one)

    def test_gone(self):
        host, one, _ = self.two()
        del host.domains[one]
        host.pass_time(1)
        self.assertNotIn(one, host.memory.rows)

    def test_other_vcpus(self):
        host, one, _ = self.two()
        host.domains[one] = dataclasses.replace(
            host.domains[one], vcpus=host.domains[one].vcpus[:3])
        host.pass_time(1)
        self.assertNotIn(one, host.memory.rows)


class SuccessionTest(ballooning_host.HostCase):

    def test_the_next_agent_gives_back(self):
        host, one, two = self.two()
        heir = self.make_host(memory=host.memory, guests=host.guests)
        heir.domains, heir.wishes = host.domains, host.wishes
        heir.busy = dict.fromkeys(host.busy, (0.0, 0.0))
        self.assertEqual({one, two}, {
            record.instance_uuid for record in heir.controller.recover()})
        heir.pass_time(2)
        self.assert_full(heir, one, two)

    def test_what_runs_no_more_is_forgotten(self):
        host, one, two = self.two()
        heir = self.make_host(memory=host.memory, guests=host.guests)
        heir.controller.recover()
        heir.pass_time(1)
        self.assertEqual({}, host.memory.rows)

    def test_a_guest_that_came_from_elsewhere(self):
        host = self.make_host()
        uuid = host.add(1, run=0, wait=0)
        host.guests.tell(uuid, {3: False, 2: False}, 1)
        host.guests.mute.add(uuid)
        host.pass_time(2)
        host.guests.mute.clear()
        host.pass_time(5)
        self.assert_full(host, uuid)
        self.assertEqual(['returned'], host.codes())

    def test_a_stop_gives_everything_back(self):
        host, one, two = self.two()
        host.controller.start()
        host.controller.stop(10)
        self.assert_full(host, one, two)

    def test_a_stop_tries_again(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.pass_time(2)
        host.controller.start()
        threading.Timer(1.2, host.guests.mute.clear).start()
        host.controller.stop(10)
        self.assert_full(host, one, two)

    def test_and_gives_up_in_the_end(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.controller.start()
        host.controller.stop(1)
        self.assert_full(host, two)
        self.assertIn(one, host.memory.rows)
