# SPDX-License-Identifier: Apache-2.0

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
            self.assertEqual((0,), host.actions.vcpu_sets[uuid])
            self.assertEqual({0: cpu}, host.actions.pins[uuid])
            self.assertIn(uuid, host.store.rows)
        self.assertEqual(['taken', 'taken'], host.codes())
        self.assertIn('75 %', host.events[0][2])

    def test_preemption_is_forced_meanwhile(self):
        host = self.make_host()
        set_vcpus, hasty = host.guests.set_vcpus, []

        def spy(uuid, online, timeout_s):
            hasty.append(uuid in host.actions.hasty)
            set_vcpus(uuid, online, timeout_s)

        self.patch(host.guests, 'set_vcpus', spy)
        host.add(1), host.add(2)
        host.pass_time(4)
        self.assertTrue(host.actions.prepared)
        self.assertEqual([True, True], hasty)
        self.assertEqual(set(), host.actions.hasty)

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

    def test_not_from_those_whose_flavor_forbids_it(self):
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
        self.assertNotIn(uuid, host.actions.pins)

    def test_enough_are_left_for_the_reservation(self):
        host = self.make_host()
        uuid = host.add(1, reserved=reservation.Reservation(8000, 20000))
        host.add(2)
        host.pass_time(4)
        # 1.6 CPUs need two vCPUs.
        self.assertEqual({0, 1}, host.guests.online(uuid))

    def test_dry_run_only_talks(self):
        host, one, two = self.two(
            settings=base.Settings(dry_run=True, guest_timeout_s=0.3)
        )
        self.assertEqual(['proposed', 'proposed'], host.codes())
        self.assert_full(host, one, two)
        host.pass_time(20)
        self.assertEqual(2, len(host.events))

    def test_unbound_when_that_does_not_work(self):
        host = self.make_host()
        host.actions.bindable = False
        uuid = host.add(1)
        host.add(2)
        host.pass_time(4)
        self.assertEqual({0}, host.guests.online(uuid))
        host.pass_time(60)
        self.assertEqual({}, host.actions.pins)
        self.assertEqual(2, host.codes().count('taken'))

    def test_bound_when_there_is_a_cpu_for_it(self):
        host = self.make_host()
        late = host.add(1)
        host.add(2)
        host.guests.mute.add(late)
        host.pass_time(4)
        self.assertEqual({}, host.actions.pins)
        host.guests.mute.clear()
        host.pass_time(40)
        self.assertEqual(
            [{0: 0}, {0: 1}], sorted(host.actions.pins.values(), key=str)
        )


class TroubleTest(ballooning_host.HostCase):
    def test_a_guest_without_an_agent_keeps_all_of_its_vcpus(self):
        host = self.make_host()
        mute, other = host.add(1), host.add(2)
        host.guests.mute.add(mute)
        host.pass_time(300)
        self.assertIs(False, host.last_report(mute).guest_answers)
        self.assertNotIn(mute, host.store.rows)
        self.assertIs(True, host.last_report(other).guest_answers)
        host.guests.mute.clear()
        self.assert_full(host, mute)

    def test_a_mute_guest(self):
        host = self.make_host()
        mute, other = host.add(1), host.add(2)
        host.pass_time(1)
        host.guests.mute.add(mute)
        host.pass_time(3)
        self.assertEqual({0}, host.guests.online(other))
        self.assertIn('failed', host.codes())
        self.assertEqual([other], list(host.store.rows))
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
        host.actions.refuse = errors.Refused('no room')
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
        self.assertNotIn(
            two,
            [
                uuid
                for code, uuid, *_ in host.events
                if code == errors.Code.BALLOON_RETURNED
            ],
        )

    def test_a_reboot(self):
        host, one, _ = self.two()
        host.guests.boot(one, 4)
        host.loop.changed(one)
        # Asks the guest, beside the thread that decides.
        item = host.loop.posted.get(timeout=60)
        item()
        host.loop.posted.get(timeout=60)()
        host.wait_for_actions()
        self.assert_full(host, one)

    def test_a_reboot_that_takes_a_while(self):
        host, one, _ = self.two()
        host.guests.mute.add(one)
        host.loop.changed(one)
        host.loop.posted.get(timeout=60)()
        host.loop.posted.get(timeout=60)()
        host.pass_time(2)
        host.guests.boot(one, 4)
        host.guests.mute.clear()
        host.pass_time(4)
        self.assert_full(host, one)
        (returned,) = [
            figures
            for code, uuid, _, figures in host.events
            if code == errors.Code.BALLOON_RETURNED
        ]
        self.assertEqual(balloon_trial.Outcome.UNDONE, returned['outcome'])

    def test_mute_when_vcpus_are_to_be_given_back(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.flavors[one] = base.FlavorSettings()
        host.pass_time(3)
        self.assertIn(one, host.store.rows)
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

    def test_an_ended_instance(self):
        host, one, _ = self.two()
        del host.domains[one]
        host.pass_time(1)
        self.assertNotIn(one, host.store.rows)

    def test_other_vcpus(self):
        host, one, _ = self.two()
        host.domains[one] = dataclasses.replace(
            host.domains[one], vcpus=host.domains[one].vcpus[:3]
        )
        host.pass_time(1)
        self.assertNotIn(one, host.store.rows)


class SuccessionTest(ballooning_host.HostCase):
    def test_the_next_agent_gives_back(self):
        host, one, two = self.two()
        heir = self.make_host(store=host.store, guests=host.guests)
        heir.domains, heir.flavors = host.domains, host.flavors
        heir.busy = dict.fromkeys(host.busy, (0.0, 0.0))
        self.assertEqual(
            {one, two},
            {record.instance_uuid for record in heir.loop.recover()},
        )
        heir.pass_time(2)
        self.assert_full(heir, one, two)

    def test_what_runs_no_more_is_forgotten(self):
        host, one, two = self.two()
        heir = self.make_host(store=host.store, guests=host.guests)
        heir.loop.recover()
        heir.pass_time(1)
        self.assertEqual({}, host.store.rows)

    def test_a_guest_that_came_from_elsewhere(self):
        host = self.make_host()
        uuid = host.add(1, run=0, wait=0)
        host.guests.set_vcpus(uuid, {3: False, 2: False}, 1)
        host.guests.mute.add(uuid)
        host.pass_time(2)
        host.guests.mute.clear()
        host.pass_time(5)
        self.assert_full(host, uuid)
        self.assertEqual(['returned'], host.codes())

    def test_a_stop_gives_everything_back(self):
        host, one, two = self.two()
        host.loop.start()
        host.loop.stop(10)
        self.assert_full(host, one, two)

    def test_a_stop_tries_again(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.pass_time(2)
        host.loop.start()
        threading.Timer(1.2, host.guests.mute.clear).start()
        host.loop.stop(10)
        self.assert_full(host, one, two)

    def test_and_gives_up_in_the_end(self):
        host, one, two = self.two()
        host.guests.mute.add(one)
        host.loop.start()
        host.loop.stop(1)
        self.assert_full(host, two)
        self.assertIn(one, host.store.rows)


class HostileTest(ballooning_host.HostCase):
    """Whatever goes wrong with one instance ends nothing for another."""

    def fresh(self):
        """A host on which nothing has been done yet."""
        host = self.make_host()
        return host, host.add(1), host.add(2)

    def fail(self, host, name, uuid, error):
        """Have one call about one instance fail."""
        function = getattr(host.guests, name)

        def call(whose, *arguments):
            if whose == uuid:
                raise error
            return function(whose, *arguments)

        setattr(host.guests, name, call)

    def test_while_it_is_asked(self):
        for error in (
            OverflowError('x'),
            RecursionError('x'),
            MemoryError(),
            KeyError('x'),
        ):
            host, one, two = self.fresh()
            self.fail(host, 'get_vcpus', one, error)
            host.pass_time(12)
            self.assertEqual({0}, host.guests.online(two))
            (found,) = [
                found for found in host.loop.instances() if found.uuid == one
            ]
            self.assertFalse(found.busy)

    def test_while_its_vcpus_are_set(self):
        host, one, two = self.fresh()
        self.fail(host, 'set_vcpus', one, OverflowError('x'))
        host.pass_time(12)
        self.assertEqual({0}, host.guests.online(two))
        for found in host.loop.instances():
            self.assertFalse(found.busy)

    def test_while_vcpus_are_given_back(self):
        host, one, two = self.fresh()
        host.pass_time(5)
        self.assertEqual({0}, host.guests.online(one))
        self.fail(host, 'get_vcpus', one, OverflowError('x'))
        host.loop.start()
        host.loop.stop(1.0)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(two))
        # What is left is in the journal, for the next agent.
        self.assertEqual([one], list(host.store.rows))

    def test_while_it_is_decided_about(self):
        host, one, two = self.fresh()
        host.pass_time(2)
        for found in host.loop.instances():
            if found.uuid == one:
                found.rate_expected = lambda now_s: 1 / 0
        host.pass_time(10)
        self.assertEqual({0}, host.guests.online(two))

    def test_while_what_came_of_it_is_noted(self):
        host, one, two = self.fresh()
        note = host.store.note_balloon
        failures = []

        def fail(uuid, body):
            if uuid == one and body['change'] is not None and (not failures):
                failures.append(1)
                raise OSError('test')
            note(uuid, body)

        host.store.note_balloon = fail
        host.pass_time(12)
        self.assertEqual([1], failures)
        # Undone, since nobody knows what is kept of it.
        self.assert_full(host, one)
        self.assertEqual({0}, host.guests.online(two))
