# SPDX-License-Identifier: Apache-2.0

"""What is told and ordered of balloons: on every database alike."""

import dataclasses

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.operations import balloons
from vsched_api.operations import errors
from vsched_api.operations import overrides
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_api.tests.suites import reservations
from vsched_lib.contract import balloons as contract
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages
from vsched_lib.tests import balloon_reports

Code = contract_errors.Code
Outcome = contract.Outcome
DAY_S = 86_400


class Balloons:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.announcer = reservations.Announcer()
        self.one, self.two = base.uuids(2)
        self.node = self.agent()
        self.node.first(self.one, self.two)

    def tell(self, *reports, agent=None, **parts):
        return (agent or self.node).send(
            listed=False, balloons=reports, **parts
        )

    def report(self, uuid=None, **fields):
        return balloon_reports.report(uuid or self.one, **fields)

    def order(self, uuid=None, **fields):
        return balloons.order(
            self.database,
            self.announcer,
            overrides.Change(uuid or self.one, self.now),
            fields,
        )

    def withdraw(self, uuid=None):
        return balloons.withdraw(
            self.database,
            self.announcer,
            overrides.Change(uuid or self.one, self.now),
        )

    def stored(self, uuid=None):
        return balloons.get(self.database, uuid or self.one)

    def listed(self, **filters):
        return [
            one.instance_uuid
            for one in balloons.page(self.database, 10, **filters)
        ]

    def history(self, **filters):
        return balloons.history(self.database, 10, **filters)

    def orders(self, host=base.HOST):
        return self.collector().on_overrides(host)

    def refused(self, kind, code, act, *args, **fields):
        problem = self.assertRaises(kind, act, *args, **fields)
        self.assertEqual(code, problem.code)
        return problem.detail

    # What agents tell

    def test_the_newest_report_counts(self):
        told = self.report(
            state=contract.BalloonState.TRIAL,
            online_vcpus=1,
            cpus=(3,),
            cause='it waited',
            not_before=self.now + 30,
            failures=2,
            guest_answers=None,
        )
        self.tell(self.report(), self.report(self.two))
        self.tell(told)
        self.assertEqual(told, self.stored().report)
        self.assertEqual(self.report(self.two), self.stored(self.two).report)
        self.assertEqual(
            (base.HOST, True, None),
            (
                self.stored().host,
                self.stored().present,
                self.stored().order_state,
            ),
        )

    def test_of_whom_nothing_is_told(self):
        self.refused(errors.NotFound, Code.BALLOON_NOT_FOUND, self.stored)
        (unknown,) = base.uuids(1)
        self.refused(
            errors.NotFound, Code.INSTANCE_NOT_FOUND, self.stored, unknown
        )
        self.assertEqual([], self.listed())
        self.tell(self.report(unknown))
        self.assertEqual([], self.listed())

    def test_pages_and_filters(self):
        self.tell(
            self.report(),
            self.report(
                self.two, state=contract.BalloonState.KEPT, online_vcpus=2
            ),
        )
        self.assertEqual([self.one, self.two], self.listed())
        self.assertEqual([self.two], self.listed(marker=self.one))
        self.assertEqual([self.two], self.listed(states=['kept', 'trial']))
        self.assertEqual([self.one], self.listed(instance_uuids=[self.one]))
        self.assertEqual([], self.listed(host='elsewhere'))

    def test_flavors_are_filtered(self):
        self.tell(
            self.report(),
            self.report(self.two),
            instances=tuple(
                messages.InstanceInfo(uuid, 'vm', 4, None, 'web', None, flavor)
                for uuid, flavor in ((self.one, 'm1'), (self.two, 'M1'))
            ),
        )
        self.assertEqual([self.one], self.listed(flavor_name='m1'))
        self.assertEqual([self.two], self.listed(flavor_name='M1'))
        self.assertEqual([], self.listed(flavor_name='m1', marker=self.one))
        self.assertEqual([], self.listed(flavor_name='m%'))

    def test_all_that_there_are(self):
        self.tell(self.report(), self.report(self.two))
        self.tell(self.report(self.two), all_balloons=True)
        self.assertEqual([self.two], self.listed())
        self.tell(all_balloons=True)
        self.assertEqual([], self.listed())

    def test_an_instance_that_leaves(self):
        self.tell(self.report(), self.report(self.two))
        self.node.send(self.two)
        self.assertEqual([self.two], self.listed())
        # It was under way when the instance left.
        self.tell(self.report())
        self.assertEqual([self.two], self.listed())

    def test_the_host_that_has_it_speaks_for_it(self):
        self.tell(self.report(online_vcpus=1))
        other = self.agent('node2')
        other.at += 1
        other.first(self.one)
        self.tell(self.report(), agent=other)
        found = self.stored()
        self.assertEqual(('node2', 4), (found.host, found.report.online_vcpus))

    # What operators want

    def test_an_order_is_pending_until_it_is_answered(self):
        self.tell(self.report())
        ordered = self.order(target_vcpus=2)
        self.assertEqual(
            (2, False, 'pending', None),
            (
                ordered.target_vcpus,
                ordered.frozen,
                ordered.order_state,
                ordered.code,
            ),
        )
        generation = ordered.generation
        self.assertEqual([(base.HOST, generation)], self.announcer.told)
        self.assertEqual(
            collector_replies.Overrides(
                generation,
                (),
                (contract.BalloonOrder(self.one, generation, 2),),
            ),
            self.orders(),
        )
        self.assertEqual(generation, self.tell().overrides_generation)
        self.tell(
            self.report(
                state=contract.BalloonState.MANUAL,
                online_vcpus=2,
                generation=generation,
                order_state=contract.OrderState.APPLIED,
            )
        )
        self.assertEqual('applied', self.stored().order_state)

    def test_a_refusal_is_shown(self):
        self.tell(self.report())
        ordered = self.order(target_vcpus=2)
        self.tell(
            self.report(
                generation=ordered.generation,
                code=str(Code.DOES_NOT_FIT),
                order_state=contract.OrderState.REFUSED,
                detail='no room',
            )
        )
        found = self.stored()
        self.assertEqual(
            ('refused', Code.DOES_NOT_FIT, 'no room'),
            (found.order_state, found.code, found.detail),
        )
        # Said of an order that is not the newest.
        self.order(target_vcpus=3)
        found = self.stored()
        self.assertEqual(
            ('pending', None, None),
            (found.order_state, found.code, found.detail),
        )

    def test_freezing_and_a_target_are_apart(self):
        self.tell(self.report())
        self.order(frozen=True)
        both = self.order(target_vcpus=2)
        self.assertEqual((2, True), (both.target_vcpus, both.frozen))
        frozen = self.order(target_vcpus=None)
        self.assertEqual((None, True), (frozen.target_vcpus, frozen.frozen))
        self.assertEqual(1, len(self.orders().balloons))
        self.order(frozen=False)
        self.assertEqual((), self.orders().balloons)

    def test_an_order_is_withdrawn(self):
        self.tell(self.report())
        self.refused(
            errors.NotFound, Code.BALLOON_ORDER_NOT_FOUND, self.withdraw
        )
        generation = self.order(target_vcpus=2, frozen=True).generation
        self.tell(
            self.report(
                online_vcpus=2,
                generation=generation,
                order_state=contract.OrderState.APPLIED,
            )
        )
        left = self.withdraw()
        # Until the agent has said that it forgot it.
        self.assertEqual(
            (None, False, 'pending'),
            (left.target_vcpus, left.frozen, left.order_state),
        )
        self.assertEqual((), self.orders().balloons)
        self.assertGreater(self.orders().generation, generation)
        self.tell(self.report())
        self.assertIsNone(self.stored().order_state)

    def test_what_can_not_be(self):
        self.refused(
            errors.Conflict, Code.BALLOON_NOT_FOUND, self.order, target_vcpus=2
        )
        (unknown,) = base.uuids(1)
        self.refused(
            errors.NotFound,
            Code.INSTANCE_NOT_FOUND,
            self.order,
            unknown,
            target_vcpus=2,
        )
        for fields, target_vcpus, code in (
            ({}, 5, Code.BALLOON_OUT_OF_BOUNDS),
            (
                {'min_vcpus': 2, 'floor_vcpus': 2},
                1,
                Code.BALLOON_OUT_OF_BOUNDS,
            ),
            ({'floor_vcpus': 3}, 2, Code.BALLOON_DOES_NOT_FIT),
            (
                {'guest_answers': False},
                2,
                Code.BALLOON_GUEST_AGENT_UNAVAILABLE,
            ),
            ({'auto': False}, 2, Code.BALLOON_EXCLUDED),
            ({'pinned': True}, 2, Code.BALLOON_EXCLUDED),
            ({'dry_run': True}, 2, Code.BALLOON_DRY_RUN),
        ):
            self.tell(self.report(**fields))
            detail = self.refused(
                errors.Conflict, code, self.order, target_vcpus=target_vcpus
            )
            self.assertIn(self.one, detail)
        self.assertEqual([], self.announcer.told)
        self.assertIsNone(self.stored().order_state)

    def test_an_order_goes_with_its_instance(self):
        self.tell(self.report())
        generation = self.order(target_vcpus=2).generation
        other = self.agent('node2')
        other.at += 1
        self.assertGreater(
            other.first(self.one).overrides_generation, generation
        )
        self.assertEqual(
            (contract.BalloonOrder(self.one, generation, 2),),
            self.orders('node2').balloons,
        )
        self.node.send(self.two)
        self.assertEqual((), self.orders().balloons)
        self.assertEqual('pending', self.stored().order_state)

    # What was

    def test_history(self):
        begun = balloon_reports.change(self.one)
        self.tell(balloon_changes=(begun,))
        (found,) = self.history()
        self.assertEqual(
            (begun.uuid, base.HOST, None, None),
            (found.uuid, found.host, found.ended_at, found.outcome),
        )
        ended = dataclasses.replace(
            begun,
            ended_at=begun.started_at + 60,
            outcome=Outcome.CALM,
            detail='calm',
            took_ms=412,
        )
        later = balloon_reports.change(
            self.two, started_at=begun.started_at + 1, manual=True
        )
        # In one batch, the last word counts.
        self.tell(balloon_changes=(begun, later, ended))
        newest, oldest = self.history()
        self.assertEqual(later.uuid, newest.uuid)
        self.assertEqual(
            ended.to_dict(),
            {
                field.name: getattr(oldest, field.name)
                for field in dataclasses.fields(contract.BalloonChange)
            },
        )
        self.assertEqual([oldest], self.history(marker=newest.uuid))
        self.assertEqual([oldest], self.history(outcomes=['calm']))
        self.assertEqual([newest], self.history(instance_uuids=[self.two]))
        self.assertEqual([newest], self.history(start=later.started_at))
        self.assertEqual([oldest], self.history(end=later.started_at))
        self.assertEqual([], self.history(host='elsewhere'))
        self.assertRaises(errors.Invalid, self.history, marker=self.one)

    def test_one_that_nobody_ended(self):
        mine, other = (
            balloon_reports.change(uuid) for uuid in (self.one, self.two)
        )
        self.tell(self.report(), balloon_changes=(mine, other))
        self.assertEqual(
            [None, None], [one.ended_at for one in self.history()]
        )
        self.node.at += 60
        self.tell(
            self.report(),
            self.report(
                self.two, state=contract.BalloonState.KEPT, online_vcpus=1
            ),
        )
        (found,) = self.history(instance_uuids=[self.one])
        self.assertEqual(
            (self.node.at, Outcome.UNDONE), (found.ended_at, found.outcome)
        )
        (found,) = self.history(instance_uuids=[self.two])
        self.assertIsNone(found.ended_at)
        # What its agent says of it counts for more.
        self.tell(
            self.report(),
            balloon_changes=(
                dataclasses.replace(
                    mine, ended_at=self.node.at + 1, outcome=Outcome.CALM
                ),
            ),
        )
        (found,) = self.history(instance_uuids=[self.one])
        self.assertEqual(Outcome.CALM, found.outcome)

    def test_nobody_changes_the_history_of_another(self):
        begun = balloon_reports.change(self.one)
        self.tell(balloon_changes=(begun,))
        other = self.agent('node2')
        other.first()
        self.tell(
            agent=other,
            balloon_changes=(
                dataclasses.replace(begun, outcome=Outcome.FAILED),
            ),
        )
        (found,) = self.history()
        self.assertEqual((base.HOST, None), (found.host, found.outcome))

    # What is too old

    def test_history_is_kept_as_long_as_events(self):
        self.conf.set_override('event_retention_days', 3, 'collector')
        self.tell(
            balloon_changes=[
                balloon_reports.change(self.one) for _ in range(3)
            ]
        )
        self.now += 3 * DAY_S
        kept = balloon_reports.change(self.two)
        self.tell(balloon_changes=(kept,))
        self.now += 1
        self.assertEqual(3, self.purge()['balloon_changes'])
        self.assertEqual([kept.uuid], [one.uuid for one in self.history()])

    def test_an_order_goes_when_its_instance_does(self):
        self.conf.set_override('instance_retention_days', 4, 'collector')
        for uuid in (self.one, self.two):
            self.tell(self.report(uuid))
            self.order(uuid, target_vcpus=2)
        self.node.at = self.now
        self.node.send(self.two)
        self.now += 4 * DAY_S + 1
        counts = self.purge()
        self.assertEqual(
            (1, 1), (counts['instances'], counts['balloon_orders'])
        )
        self.assertEqual([self.two], self.listed())
        self.assertEqual(
            1,
            self.database.read(
                lambda session: session.execute(
                    sa.select(sa.func.count()).select_from(models.BalloonOrder)
                ).scalar_one()
            ),
        )

    def purge(self):
        return retention.purge(self.database, self.conf, self.now)
