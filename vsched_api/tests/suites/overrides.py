# SPDX-License-Identifier: Apache-2.0

"""How long what an operator set lasts: on every database alike."""

from vsched_api.db import models
from vsched_api.operations import authors
from vsched_api.operations import errors
from vsched_api.operations import events
from vsched_api.operations import overrides
from vsched_api.operations import reservations
from vsched_api.operations import retention
from vsched_api.tests import base
from vsched_api.tests.suites import reservations as suite
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code


class Overrides(suite.Changes):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def test_removing_an_override_gives_back_the_flavors(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        self.refused(
            errors.NotFound, Code.OVERRIDE_NOT_FOUND, self.withdraw, one
        )
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        left = self.withdraw(one)
        self.assertEqual('pending', left.state)
        reply = agent.send(listed=False)
        self.assertGreater(reply.overrides_generation, changed.generation)
        self.assertEqual(
            (), agent._collector.on_overrides(base.HOST).overrides
        )
        self.refused(
            errors.NotFound, Code.OVERRIDE_NOT_FOUND, self.withdraw, one
        )
        agent.send(listed=False, reservations=(base.reservation(one),))
        back = reservations.get(self.database, one)
        self.assertEqual(
            ('applied', 'metadata', 12_000),
            (back.state, back.source, back.runtime_us),
        )

    def test_what_is_wanted_is_unknown_until_the_agent_says(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        self.withdraw(one)
        self.refused(
            errors.Conflict,
            Code.RESERVATION_CHANGING,
            self.change,
            one,
            runtime_us=7_000,
        )
        self.refused(
            errors.Conflict,
            Code.RESERVATION_EXISTS,
            self.create,
            one,
            runtime_us=7_000,
        )
        again = self.change(
            one, runtime_us=7_000, period_us=10_000, mode='capped'
        )
        self.assertEqual(('pending', 7_000), (again.state, again.runtime_us))
        self.assertGreater(again.generation, changed.generation)

    def test_removing_one_that_no_agent_answered_leaves_nothing(self):
        (one,) = base.uuids(1)
        self.agent().first(one, reservations=())
        self.create(one, runtime_us=5_000)
        self.assertIsNone(self.withdraw(one))
        self.refused(
            errors.NotFound,
            Code.RESERVATION_NOT_FOUND,
            reservations.get,
            self.database,
            one,
        )

    def test_an_override_goes_with_its_instance(self):
        (one,) = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.first()
        changed = self.change(one, runtime_us=6_000)
        self.answer(here, one, changed.generation)
        there.at += 1
        reply = there.send(one)
        self.assertGreater(reply.overrides_generation, changed.generation)
        # While both list it, it holds on both.
        for agent in (here, there):
            (wanted,) = agent._collector.on_overrides(agent.host).overrides
            self.assertEqual(one, wanted.instance_uuid)
        # The host that has told of it speaks until the new one does.
        shown = reservations.get(self.database, one)
        self.assertEqual(('here', 'applied'), (shown.host, shown.state))
        self.answer(there, one, wanted.generation)
        self.assertEqual('there', reservations.get(self.database, one).host)
        here.at += 2
        left = here.send()
        self.assertGreater(left.overrides_generation, changed.generation)
        self.assertEqual((), here._collector.on_overrides('here').overrides)
        shown = reservations.get(self.database, one)
        self.assertEqual(
            ('there', 'applied', 6_000),
            (shown.host, shown.state, shown.runtime_us),
        )

    def test_a_change_while_it_migrates_reaches_both_hosts(self):
        (one,) = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.at += 1
        there.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.assertEqual(
            {('here', changed.generation), ('there', changed.generation)},
            set(self.announcer.told),
        )

    def test_a_stopped_instance_keeps_its_override(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        agent.send()
        self.assertEqual(
            'released', reservations.get(self.database, one).state
        )
        # Its host knows it for the moment that it starts again.
        (wanted,) = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual(changed.generation, wanted.generation)
        # Whether it is stopped or deleted, nobody here knows.
        self.refused(
            errors.Conflict,
            Code.INSTANCE_ABSENT,
            self.change,
            one,
            runtime_us=7_000,
        )
        reply = agent.send(one)
        self.assertGreater(reply.overrides_generation, changed.generation)
        (wanted,) = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual(6_000, wanted.runtime_us)

    def test_an_instance_that_left_is_not_pending_for_ever(self):
        one, two = base.uuids(2)
        agent = self.agent()
        agent.first(one, two, reservations=(base.reservation(one),))
        self.change(one, runtime_us=6_000)
        self.create(two, runtime_us=6_000)
        agent.send()
        for uuid in (one, two):
            self.assertEqual(
                'released', reservations.get(self.database, uuid).state
            )
        self.refused(
            errors.Conflict,
            Code.INSTANCE_ABSENT,
            self.change,
            two,
            runtime_us=7_000,
        )
        self.withdraw(one)
        # What is left goes with the instance's row.
        self.now += 400 * 86_400
        retention.purge(self.database, self.conf, self.now)
        self.assertEqual(
            [],
            self.database.read(
                lambda session: session.query(models.Override).all()
            ),
        )
        for uuid in (one, two):
            self.refused(
                errors.NotFound,
                Code.INSTANCE_NOT_FOUND,
                self.change,
                uuid,
                runtime_us=7_000,
            )

    def test_a_change_says_which_one_it_is_based_on(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        self.refused(
            errors.Outdated,
            Code.GENERATION_CONFLICT,
            self.based,
            one,
            1,
            runtime_us=6_000,
        )
        first = self.based(one, 0, runtime_us=6_000)
        self.refused(
            errors.Outdated,
            Code.GENERATION_CONFLICT,
            self.based,
            one,
            0,
            runtime_us=7_000,
        )
        second = self.based(one, first.generation, runtime_us=7_000)
        self.refused(
            errors.Outdated,
            Code.GENERATION_CONFLICT,
            self.withdraw,
            one,
            expected=first.generation,
        )
        self.assertEqual(
            7_000, reservations.get(self.database, one).runtime_us
        )
        self.withdraw(one, expected=second.generation)

    def based(self, uuid, expected, **fields):
        return reservations.change(
            self.database,
            self.announcer,
            overrides.Change(uuid, self.now, expected=expected),
            fields,
        )

    def test_who_set_it(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        self.assertIsNone(reservations.get(self.database, one).author)
        ann = authors.Author('ann', 'ops', 'req-1')
        reservations.change(
            self.database,
            self.announcer,
            overrides.Change(one, self.now, ann),
            {'runtime_us': 6_000},
        )
        found = reservations.get(self.database, one)
        self.assertEqual((ann, self.now), (found.author, found.updated_at))
        (wanted,) = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual('req-1', wanted.request_id)
        bob = authors.Author('bob', None, 'req-2')
        self.withdraw(one, author=bob)
        told = events.page(self.database, 10)
        self.assertEqual(
            [
                (Code.OVERRIDE_REMOVED, 'bob', 'req-2'),
                (Code.OVERRIDE_SET, 'ann', 'req-1'),
            ],
            [
                (
                    found.code,
                    found.figures['user_id'],
                    found.figures['request_id'],
                )
                for found in told
            ],
        )
        self.assertEqual({one}, {found.instance_uuid for found in told})

    def test_what_else_an_override_sets(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(
            one, io_charging='charge', max_alloc_error_pct=2.5, weight=300
        )
        self.assertEqual(
            {
                'io_charging': 'charge',
                'max_alloc_error_pct': '2.5',
                'weight': '300',
            },
            changed.specs,
        )
        self.assertEqual(12_000, changed.runtime_us)
        # What is not named stays, null is the flavor's again.
        changed = self.change(
            one, runtime_us=6_000, weight=None, balloon='auto'
        )
        self.assertEqual(
            {
                'io_charging': 'charge',
                'max_alloc_error_pct': '2.5',
                'balloon': 'auto',
            },
            changed.specs,
        )
        (wanted,) = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual(changed.specs, wanted.specs)
        self.assertIn(
            'min_vcpus',
            self.refused(
                errors.Invalid,
                Code.BAD_REQUEST,
                self.change,
                one,
                balloon='off',
                min_vcpus=1,
            ),
        )
        self.assertIn(
            '1 vCPUs',
            self.refused(
                errors.Invalid, Code.BAD_REQUEST, self.change, one, min_vcpus=2
            ),
        )
        self.withdraw(one)
        self.assertEqual({}, reservations.get(self.database, one).specs)

    def test_rows_hold_what_was_asked_for(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        self.change(one, runtime_us=6_000)
        self.now += 1
        self.change(one, runtime_us=7_000)
        row = self.database.read(
            lambda session: session.get(models.Override, one)
        )
        self.assertEqual(
            (self.now - 1, self.now), (row.created_at, row.updated_at)
        )
