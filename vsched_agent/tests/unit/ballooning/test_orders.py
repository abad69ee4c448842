# SPDX-License-Identifier: Apache-2.0

import dataclasses

from vsched_agent.ballooning import base
from vsched_agent.tests import ballooning_host
from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.model import reservation

Code = errors.Code
Outcome = balloons.Outcome
State = balloons.BalloonState
APPLIED = balloons.OrderState.APPLIED
PENDING = balloons.OrderState.PENDING
REFUSED = balloons.OrderState.REFUSED


class OrderCase(ballooning_host.HostCase):
    """Orders and their reported states."""

    generation = 0

    def one(self, run=0.1, wait=0.0, **fields):
        """An instance that nothing has to be done about."""
        host = self.make_host(**fields)
        uuid = host.add(1, run=run, wait=wait)
        host.pass_time(4)
        return host, uuid

    def order(self, host, uuid=None, target_vcpus=None, frozen=False):
        self.generation += 1
        host.loop.order(
            []
            if uuid is None
            else [
                balloons.BalloonOrder(
                    uuid, self.generation, target_vcpus, frozen
                )
            ]
        )
        host.wait_for_actions()
        host.pass_time(1)

    def assert_answer(self, host, uuid, state, code=None):
        found = host.last_report(uuid)
        self.assertEqual(
            (self.generation, state, code),
            (found.generation, found.order_state, found.code),
        )
        return found.detail


class TargetTest(OrderCase):
    def test_it_is_left_with_what_was_ordered(self):
        host, uuid = self.one()
        self.order(host, uuid, 2)
        self.assertEqual({0, 1}, host.guests.online(uuid))
        self.assert_answer(host, uuid, APPLIED)
        found = host.last_report(uuid)
        self.assertEqual(
            (State.MANUAL, 4, 2, 'an operator ordered 2 vCPUs'),
            (found.state, found.vcpus, found.online_vcpus, found.cause),
        )
        (change,) = host.history(uuid)
        self.assertEqual(
            (True, 4, 2, None, None),
            (
                change.manual,
                change.before_vcpus,
                change.online_vcpus,
                change.ended_at,
                change.outcome,
            ),
        )
        self.assertIsNotNone(change.took_ms)

    def test_nothing_else_happens_to_it(self):
        host, uuid = self.one()
        self.order(host, uuid, 3)
        host.add(2)
        for busy in ((0.25, 0.75), (0.0, 0.0)):
            host.busy[uuid] = busy
            host.pass_time(100)
            self.assertEqual({0, 1, 2}, host.guests.online(uuid))

    def test_all_of_them_is_a_target_too(self):
        host, uuid = self.one()
        self.order(host, uuid, 4)
        self.assert_answer(host, uuid, APPLIED)
        host.busy[uuid] = (0.25, 0.75)
        other = host.add(2)
        host.pass_time(10)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assertLess(len(host.guests.online(other)), 4)

    def test_another_target(self):
        host, uuid = self.one()
        for target_vcpus in (1, 3, 2):
            self.order(host, uuid, target_vcpus)
            self.assertEqual(target_vcpus, len(host.guests.online(uuid)))
            self.assert_answer(host, uuid, APPLIED)
        self.order(host, uuid, 4)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assertEqual(
            [Outcome.CHANGED] * 2 + [Outcome.UNDONE],
            [change.outcome for change in host.history(uuid)],
        )
        self.assertEqual(
            [(4, 1), (1, 3), (3, 2)],
            [
                (change.before_vcpus, change.online_vcpus)
                for change in host.history(uuid)
            ],
        )

    def test_instead_of_what_the_agent_chose(self):
        host = self.make_host()
        uuid = host.add(1)
        host.add(2)
        host.pass_time(4)
        self.assertEqual({0}, host.guests.online(uuid))
        self.order(host, uuid, 1)
        self.assert_answer(host, uuid, APPLIED)
        self.assertEqual(State.MANUAL, host.last_report(uuid).state)

    def test_it_is_withdrawn(self):
        host, uuid = self.one()
        self.order(host, uuid, 2)
        self.order(host)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assertEqual({}, host.store.rows)
        found = host.last_report(uuid)
        self.assertEqual(
            (State.FULL, 0, None),
            (found.state, found.generation, found.order_state),
        )
        self.assertIn('withdrawn', host.history(uuid)[-1].detail)

    def test_bound_where_there_is_room(self):
        host = self.make_host(cpus=4)
        uuid = host.add(1, run=0.5, wait=0.0)
        host.pass_time(4)
        self.order(host, uuid, 2)
        self.assertEqual({0, 1}, set(host.actions.pins[uuid]))
        self.assertEqual(2, len(host.last_report(uuid).cpus))

    def test_bound_again_after_it_did_without_one(self):
        host = self.make_host(cpus=4)
        uuid = host.add(1, run=0.5, wait=0.0)
        host.pass_time(4)
        tids = [vcpu.tid for vcpu in host.domains[uuid].vcpus]
        for target_vcpus in (2, 1, 2):
            self.order(host, uuid, target_vcpus)
        # How the second was found is what it had before it was ever bound.
        self.assertEqual(
            [{'tid': tid} for tid in tids[:2]],
            [dict(one) for one in host.store.rows[uuid]['found']],
        )

    def test_after_a_reboot_once_more(self):
        host, uuid = self.one()
        self.order(host, uuid, 2)
        host.restart(uuid)
        host.guests.boot(uuid, 4)
        host.pass_time(2)
        self.assertEqual({0, 1}, host.guests.online(uuid))
        first, second = host.history(uuid)
        self.assertEqual(Outcome.UNDONE, first.outcome)
        self.assertIsNone(second.outcome)

    def test_by_the_next_agent(self):
        host, uuid = self.one()
        self.order(host, uuid, 2)
        heir = self.make_host(store=host.store, guests=host.guests)
        heir.domains, heir.flavors = host.domains, host.flavors
        heir.busy = host.busy
        heir.loop.recover()
        self.generation -= 1
        self.order(heir, uuid, 2)
        # First all of them are back, as always.
        self.assertEqual({0, 1, 2, 3}, heir.guests.online(uuid))
        self.assert_answer(heir, uuid, PENDING)
        # It ends what its predecessor began.
        (begun,) = host.history(uuid)
        (ended,) = heir.history(uuid)
        self.assertEqual(begun.uuid, ended.uuid)
        self.assertEqual(Outcome.UNDONE, ended.outcome)
        heir.pass_time(40)
        self.assertEqual({0, 1}, heir.guests.online(uuid))
        self.assert_answer(heir, uuid, APPLIED)


class RefusalTest(OrderCase):
    def test_floor_and_ceiling(self):
        host = self.make_host()
        uuid = host.add(1, run=0.1, wait=0.0, min_vcpus=2)
        host.pass_time(2)
        for target_vcpus in (1, 5):
            self.order(host, uuid, target_vcpus)
            self.assert_answer(host, uuid, REFUSED, Code.BALLOON_OUT_OF_BOUNDS)
        self.assertEqual(['refused'] * 2, host.codes())
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        # Reported once.
        host.pass_time(20)
        self.assertEqual(2, len(host.events))

    def test_what_is_reserved_does_not_fit(self):
        host = self.make_host()
        uuid = host.add(
            1, run=0.1, wait=0.0, reserved=reservation.Reservation(8000, 20000)
        )
        host.pass_time(2)
        self.order(host, uuid, 1)
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_DOES_NOT_FIT)
        self.assertEqual(2, host.last_report(uuid).floor_vcpus)
        # 1.6 CPUs need two vCPUs.
        self.order(host, uuid, 2)
        self.assert_answer(host, uuid, APPLIED)
        # The reservation grows without a new order.
        host.reserved[uuid] = reservation.Reservation(12000, 20000)
        host.pass_time(2)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_DOES_NOT_FIT)

    def test_the_kernel_has_no_room(self):
        host, uuid = self.one()
        host.actions.refuse = errors.Refused('no room', Code.KERNEL_REFUSED)
        self.order(host, uuid, 1)
        self.assertIn(
            'no room',
            self.assert_answer(host, uuid, REFUSED, Code.KERNEL_REFUSED),
        )
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        (change,) = host.history(uuid)
        self.assertEqual(
            (Outcome.FAILED, True), (change.outcome, change.manual)
        )
        host.actions.refuse = None
        host.pass_time(310)
        self.assert_answer(host, uuid, APPLIED)

    def test_a_mute_guest(self):
        host = self.make_host()
        uuid = host.add(1, run=0.1, wait=0.0)
        host.guests.mute.add(uuid)
        host.pass_time(2)
        self.assertIs(False, host.last_report(uuid).guest_answers)
        self.order(host, uuid, 2)
        self.assert_answer(
            host, uuid, REFUSED, Code.BALLOON_GUEST_AGENT_UNAVAILABLE
        )
        host.guests.mute.clear()
        host.pass_time(10)
        self.assertEqual({0, 1}, host.guests.online(uuid))
        self.assert_answer(host, uuid, APPLIED)

    def test_a_guest_that_becomes_mute(self):
        host, uuid = self.one()
        host.guests.mute.add(uuid)
        self.order(host, uuid, 2)
        self.assert_answer(
            host, uuid, REFUSED, Code.BALLOON_GUEST_AGENT_UNAVAILABLE
        )
        self.assertIs(False, host.last_report(uuid).guest_answers)
        self.assertEqual({}, host.store.rows)
        host.guests.mute.clear()
        host.pass_time(10)
        self.assert_answer(host, uuid, APPLIED)

    def test_a_guest_that_ignores_it(self):
        host, uuid = self.one()
        host.guests.ignoring.add(uuid)
        self.order(host, uuid, 2)
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_FAILED)
        # Not all the time.
        tried = len(host.guests.told)
        host.pass_time(60)
        self.assertEqual(tried, len(host.guests.told))

    def test_a_flavor_that_does_not_allow_it(self):
        host, uuid = self.one()
        self.order(host, uuid, 2)
        host.flavors[uuid] = base.FlavorSettings()
        host.pass_time(2)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_EXCLUDED)

    def test_pinned_vcpus(self):
        host = self.make_host()
        uuid = host.add(1, run=0.1, wait=0.0)
        host.domains[uuid] = dataclasses.replace(
            host.domains[uuid],
            vcpus=tuple(
                dataclasses.replace(
                    vcpu, pinned_cpus=frozenset((vcpu.index % 2,))
                )
                for vcpu in host.domains[uuid].vcpus
            ),
        )
        host.pass_time(2)
        self.order(host, uuid, 2)
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_EXCLUDED)

    def test_a_dry_run(self):
        host = self.make_host(
            settings=base.Settings(dry_run=True, guest_timeout_s=0.3)
        )
        uuid = host.add(1)
        host.add(2)
        host.pass_time(4)
        (change,) = host.history(uuid)
        self.assertEqual(
            (Outcome.PROPOSED, 1), (change.outcome, change.online_vcpus)
        )
        self.assertIsNotNone(change.ended_at)
        self.assertTrue(host.last_report(uuid).dry_run)
        self.order(host, uuid, 2)
        self.assert_answer(host, uuid, REFUSED, Code.BALLOON_DRY_RUN)
        self.assertEqual([], host.guests.told)


class FreezeTest(OrderCase):
    def test_none_are_taken(self):
        host, uuid = self.one()
        self.order(host, uuid, frozen=True)
        self.assert_answer(host, uuid, APPLIED)
        host.busy[uuid] = (0.25, 0.75)
        host.add(2)
        host.pass_time(60)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.order(host)
        host.pass_time(4)
        self.assertEqual({0}, host.guests.online(uuid))

    def test_none_are_given_back(self):
        host = self.make_host()
        one, two = host.add(1), host.add(2)
        host.pass_time(12)
        self.order(host, one, frozen=True)
        for uuid in (one, two):
            host.busy[uuid] = (0.0, 0.0)
        host.pass_time(60)
        self.assertEqual({0}, host.guests.online(one))
        self.assertEqual({0, 1, 2, 3}, host.guests.online(two))
        self.order(host)
        host.pass_time(60)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(one))

    def test_a_target_that_is_withdrawn_stays_frozen(self):
        host, uuid = self.one()
        self.order(host, uuid, 2, frozen=True)
        self.assertEqual({0, 1}, host.guests.online(uuid))
        self.order(host, uuid, frozen=True)
        host.pass_time(20)
        self.assertEqual({0, 1}, host.guests.online(uuid))
        self.order(host)
        host.pass_time(1)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))

    def test_a_reboot_is_stronger(self):
        host, uuid = self.one()
        self.order(host, uuid, 2, frozen=True)
        self.order(host, uuid, frozen=True)
        host.guests.boot(uuid, 4)
        host.busy[uuid] = (0.5, 0.0)
        host.strays.add(uuid)
        host.pass_time(4)
        self.assertEqual({0, 1, 2, 3}, host.guests.online(uuid))
        self.assertEqual({}, host.store.rows)
