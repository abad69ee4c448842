# SPDX-License-Identifier: Apache-2.0

"""What is told of how instances stand with ballooning."""

from vsched_agent.tests import ballooning_host
from vsched_lib.contract import balloons

Outcome = balloons.Outcome
State = balloons.BalloonState


class StandingTest(ballooning_host.HostCase):
    def test_from_trial_to_kept_to_calm(self):
        host = self.make_host(cpus=4)
        one, two = host.add(1), host.add(2)
        host.pass_time(4)
        found = host.last_report(one)
        self.assertEqual((State.TRIAL, 2), (found.state, found.online_vcpus))
        self.assertIsNotNone(found.not_before)
        self.assertIn('75 %', found.cause)
        host.pass_time(12)
        self.assertEqual(State.KEPT, host.last_report(one).state)
        self.assertEqual(Outcome.KEPT, host.history(one)[-1].outcome)
        host.busy[two] = (0.0, 0.0)
        host.pass_time(20)
        self.assertEqual(State.FULL, host.last_report(one).state)
        (change,) = host.history(one)
        self.assertEqual(Outcome.CALM, change.outcome)
        self.assertIn('not short', change.detail)

    def test_nothing_is_told_twice(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(14)
        told = len(host.told)
        host.pass_time(100)
        self.assertEqual(told, len(host.told))
        self.assertEqual(one, host.last_report(one).instance_uuid)

    def test_of_others_nothing_is_told(self):
        host = self.make_host()
        host.add(1, auto=False)
        host.pass_time(3)
        self.assertEqual([], host.told)

    def test_what_was_going_on_when_it_ended(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(4)
        del host.domains[one]
        host.pass_time(1)
        (change,) = host.history(one)
        self.assertEqual(Outcome.UNDONE, change.outcome)
        self.assertIsNotNone(change.ended_at)

    def test_the_heir_of_a_killed_agent_ends_what_nobody_was_told_of(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(4)
        for body in list(host.memory.rows.values()):
            # As it was noted before the first step, by another release.
            old = {
                name: value
                for name, value in body.items()
                if name not in ('change', 'manual')
            } | {'other': 1}
            host.memory.note_balloon(old['instance_uuid'], old)
        heir = self.make_host(memory=host.memory, guests=host.guests)
        heir.domains, heir.wishes = host.domains, host.wishes
        heir.busy = dict.fromkeys(host.busy, (0.0, 0.0))
        heir.controller.recover()
        heir.pass_time(2)
        (change,) = heir.history(one)
        self.assertEqual(
            (4, 1, Outcome.UNDONE),
            (change.before_vcpus, change.online_vcpus, change.outcome),
        )
