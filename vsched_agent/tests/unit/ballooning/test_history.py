# SPDX-License-Identifier: Apache-2.0

"""Reports of instances' ballooning states and changes."""

from vsched_agent.tests import ballooning_host
from vsched_lib.contract import balloons

Outcome = balloons.Outcome
State = balloons.BalloonState


class HistoryTest(ballooning_host.HostCase):
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

    def test_nothing_is_reported_twice(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(14)
        reports = len(host.reports)
        host.pass_time(100)
        self.assertEqual(reports, len(host.reports))
        self.assertEqual(one, host.last_report(one).instance_uuid)

    def test_others_are_not_reported(self):
        host = self.make_host()
        host.add(1, auto=False)
        host.pass_time(3)
        self.assertEqual([], host.reports)

    def test_what_was_going_on_when_it_ended(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(4)
        del host.domains[one]
        host.pass_time(1)
        (change,) = host.history(one)
        self.assertEqual(Outcome.UNDONE, change.outcome)
        self.assertIsNotNone(change.ended_at)

    def test_the_agent_after_a_killed_one_ends_unreported_balloons(self):
        host = self.make_host()
        one, _ = host.add(1), host.add(2)
        host.pass_time(4)
        for body in list(host.store.rows.values()):
            # As it was noted before the first step, by another release.
            old = {
                name: value
                for name, value in body.items()
                if name not in ('change', 'manual')
            } | {'other': 1}
            host.store.note_balloon(old['instance_uuid'], old)
        heir = self.make_host(store=host.store, guests=host.guests)
        heir.domains, heir.flavors = host.domains, host.flavors
        heir.busy = dict.fromkeys(host.busy, (0.0, 0.0))
        heir.loop.recover()
        heir.pass_time(2)
        (change,) = heir.history(one)
        self.assertEqual(
            (4, 1, Outcome.UNDONE),
            (change.before_vcpus, change.online_vcpus, change.outcome),
        )
