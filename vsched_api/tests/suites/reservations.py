# SPDX-License-Identifier: Apache-2.0

"""Changing what instances are promised: on every database alike."""

from vsched_api.operations import announcements
from vsched_api.operations import errors
from vsched_api.operations import overrides
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import messages

Code = contract_errors.Code


class Announcer(announcements.Announcer):
    """Keeps what agents would have been told."""

    def __init__(self):
        super().__init__()
        self.told = []

    def overrides_changed(self, hosts, generation):
        self.told.extend((host, generation) for host in hosts)


class Changes:
    """Makes changes; mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.announcer = Announcer()

    def change(self, uuid, **fields):
        return reservations.change(
            self.database,
            self.announcer,
            overrides.Change(uuid, self.now),
            fields,
        )

    def create(self, uuid, **fields):
        return reservations.create(
            self.database,
            self.announcer,
            overrides.Change(uuid, self.now),
            fields,
        )

    def withdraw(self, uuid, **more):
        return reservations.withdraw(
            self.database,
            self.announcer,
            overrides.Change(uuid, self.now, **more),
        )

    def refused(self, kind, code, act, *args, **fields):
        error = self.assertRaises(kind, act, *args, **fields)
        self.assertEqual(code, error.code)
        return error.detail

    def answer(self, agent, uuid, generation, runtime_us=6_000, **changes):
        """Let the agent say that it applied an override."""
        return agent.send(
            listed=False,
            reservations=(
                base.reservation(
                    uuid,
                    source=messages.Source.OVERRIDE,
                    generation=generation,
                    runtime_us=runtime_us,
                    enforced_runtime_us=runtime_us,
                    **changes,
                ),
            ),
        )


class Reservations(Changes):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def test_a_list_has_all_that_single_reservations_have(self):
        reported, changed, both = base.uuids(3)
        self.agent().first(
            reported,
            changed,
            both,
            reservations=(
                base.reservation(
                    reported,
                    io=messages.IoReport('charge', threads=2),
                    figures={'free_mcpu': 1},
                ),
                base.reservation(both),
            ),
        )
        self.create(changed, runtime_us=6_000, io_charging='charge')
        self.change(both, runtime_us=7_000)
        found = reservations.page(self.database, 10)
        self.assertEqual(
            [reported, changed, both], [one.instance_uuid for one in found]
        )
        for one in found:
            self.assertEqual(
                reservations.get(self.database, one.instance_uuid), one
            )

    def test_a_change_is_pending_until_its_agent_answers(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.assertEqual(
            ('pending', 'override', 6_000, 20_000, 'capped', None, 300),
            (
                changed.state,
                changed.source,
                changed.runtime_us,
                changed.period_us,
                changed.mode,
                changed.backend,
                changed.bandwidth_mcpu,
            ),
        )
        # The kernel still holds what it held.
        self.assertEqual(12_000, changed.enforced_runtime_us)
        self.assertEqual(self.now, changed.since)
        self.assertEqual(
            [(base.HOST, changed.generation)], self.announcer.told
        )

        reply = agent.send(listed=False)
        self.assertEqual(changed.generation, reply.overrides_generation)
        wanted = agent._collector.on_overrides(base.HOST)
        self.assertEqual(
            collector_replies.Overrides(
                changed.generation,
                (
                    collector_replies.Override(
                        one, changed.generation, 6_000, 20_000, 'capped', None
                    ),
                ),
            ),
            wanted,
        )
        self.answer(agent, one, changed.generation)
        held = reservations.get(self.database, one)
        self.assertEqual(
            ('applied', 'override', 300),
            (held.state, held.source, held.enforced_bandwidth_mcpu),
        )

    def test_what_i_o_threads_hold(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        self.assertIsNone(reservations.get(self.database, one).io)
        io = messages.IoReport('charge', 2, 3_400, 20_000, 9_000, 100, 7)
        for told in (io, None, io):
            agent.send(
                listed=False, reservations=(base.reservation(one, io=told),)
            )
            found = reservations.get(self.database, one).io
            self.assertEqual(told and told.to_dict(), found)
        # An instance that has left holds nothing.
        agent.send()
        self.assertIsNone(reservations.get(self.database, one).io)

    def test_how_finely_periods_are_divided(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        self.assertIsNone(reservations.get(self.database, one).communication)
        divided = messages.CommunicationReport(4, 1_500_000, 5_000_000)
        for told in (divided, None, divided):
            agent.send(
                listed=False,
                reservations=(base.reservation(one, communication=told),),
            )
            found = reservations.get(self.database, one).communication
            self.assertEqual(told and told.to_dict(), found)
        # An instance that has left holds nothing.
        agent.send()
        self.assertIsNone(reservations.get(self.database, one).communication)

    def test_figures_of_i_o_threads_that_no_database_takes(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        reply = agent.send(
            listed=False,
            reservations=(
                base.reservation(
                    one, io=messages.IoReport('charge', 1, 2**70)
                ),
            ),
        )
        self.assertTrue(reply.resync)
        self.assertIsNone(reservations.get(self.database, one).io)

    def test_an_older_answer_leaves_it_pending(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        first = self.change(one, runtime_us=6_000)
        self.change(one, runtime_us=8_000)
        self.answer(agent, one, first.generation)
        self.assertEqual('pending', reservations.get(self.database, one).state)

    def test_a_refusal_is_shown(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=20_000)
        self.answer(
            agent,
            one,
            changed.generation,
            20_000,
            state=messages.State.REFUSED,
            code=str(Code.DOES_NOT_FIT),
            detail='too much',
            figures={'needed_mcpu': 2_000},
        )
        shown = reservations.get(self.database, one)
        self.assertEqual(
            ('refused', Code.DOES_NOT_FIT, 'too much', {'needed_mcpu': 2_000}),
            (shown.state, shown.code, shown.detail, shown.figures),
        )
        again = self.change(one, runtime_us=10_000)
        self.assertEqual(
            ('pending', None, None), (again.state, again.code, again.detail)
        )

    def test_changes_add_up(self):
        (one,) = base.uuids(1)
        self.agent().first(one)
        self.change(one, runtime_us=6_000)
        self.change(one, mode='work_conserving')
        self.change(one, backend='deadline')
        changed = self.change(one, period_us=10_000)
        self.assertEqual(
            (6_000, 10_000, 'work_conserving', 'deadline'),
            (
                changed.runtime_us,
                changed.period_us,
                changed.mode,
                changed.backend,
            ),
        )
        self.assertIsNone(self.change(one, backend=None).backend)

    def test_what_can_not_be_is_refused_and_nothing_changes(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        for field, fields in (
            ('runtime_us', {'runtime_us': 20_001}),
            ('runtime_us', {'runtime_us': 0}),
            ('runtime_us', {'period_us': 11_999}),
            ('mode', {'mode': 'x'}),
            ('backend', {'backend': 'x'}),
            ('backend', {'backend': 'cfs', 'mode': 'work_conserving'}),
            ('period_us', {'backend': 'cfs', 'period_us': 1_000_001}),
            # Neither backend can express these.
            ('runtime_us', {'runtime_us': 1, 'period_us': 20_000}),
            ('period_us', {'period_us': 5_000_000}),
            # One overrun of a tick of 4 ms would take 40 s to repay.
            ('runtime_us', {'runtime_us': 100, 'period_us': 1_000_000}),
        ):
            detail = self.refused(
                errors.Invalid,
                Code.RESERVATION_INVALID,
                self.change,
                one,
                **fields,
            )
            self.assertTrue(
                detail.startswith((field + ': ', field + ' ')), (field, detail)
            )
        self.assertEqual([], self.announcer.told)
        self.assertEqual(0, agent.send(listed=False).overrides_generation)
        self.assertEqual('applied', reservations.get(self.database, one).state)

    def test_a_backend_the_host_can_not_use_is_a_conflict(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        agent.send(
            one,
            host_info=base.host_info(
                backends=(
                    messages.BackendInfo(
                        'deadline', False, ('no RT bandwidth',)
                    ),
                    messages.BackendInfo('cfs', True),
                )
            ),
        )
        detail = self.refused(
            errors.Conflict,
            Code.BACKEND_UNAVAILABLE,
            self.change,
            one,
            backend='deadline',
        )
        self.assertIn('no RT bandwidth', detail)
        self.refused(
            errors.Conflict,
            Code.BACKEND_UNAVAILABLE,
            self.change,
            one,
            backend='rtds',
        )
        self.change(one, backend='cfs')
        # Without a wish only what the host can use counts.
        self.refused(
            errors.Invalid,
            Code.RESERVATION_INVALID,
            self.change,
            one,
            backend=None,
            mode='work_conserving',
        )

    def test_a_host_that_told_nothing_lets_its_agent_decide(self):
        (one,) = base.uuids(1)
        self.agent().send(one, reservations=(base.reservation(one),))
        self.assertEqual(
            'deadline', self.change(one, backend='deadline').backend
        )

    def test_an_instance_without_one_can_be_given_one(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one, reservations=())
        self.refused(
            errors.NotFound,
            Code.RESERVATION_NOT_FOUND,
            reservations.get,
            self.database,
            one,
        )
        self.refused(
            errors.NotFound,
            Code.RESERVATION_NOT_FOUND,
            self.change,
            one,
            runtime_us=5_000,
        )
        made = self.create(one, runtime_us=5_000)
        self.assertEqual(
            ('pending', 'override', 5_000, 20_000, 'capped'),
            (
                made.state,
                made.source,
                made.runtime_us,
                made.period_us,
                made.mode,
            ),
        )
        self.assertIsNone(made.enforced_backend)
        self.refused(
            errors.Conflict,
            Code.RESERVATION_EXISTS,
            self.create,
            one,
            runtime_us=5_000,
        )
        self.assertEqual(
            [one],
            [
                found.instance_uuid
                for found in reservations.page(self.database, 10)
            ],
        )

    def test_one_whose_flavor_is_invalid_can_be_given_one(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            reservations=(
                base.reservation(
                    one,
                    state=messages.State.REFUSED,
                    runtime_us=None,
                    period_us=None,
                    mode=None,
                    enforced_backend=None,
                    code=str(Code.EXTRA_SPECS_INVALID),
                ),
            ),
        )
        self.refused(
            errors.NotFound,
            Code.RESERVATION_NOT_FOUND,
            self.change,
            one,
            period_us=5_000,
        )
        self.assertEqual('pending', self.create(one, runtime_us=5_000).state)

    def test_unknown_instances_are_not_found(self):
        (one,) = base.uuids(1)
        for act in (self.change, self.create):
            self.refused(
                errors.NotFound,
                Code.INSTANCE_NOT_FOUND,
                act,
                one,
                runtime_us=5_000,
            )
        self.refused(
            errors.NotFound, Code.INSTANCE_NOT_FOUND, self.withdraw, one
        )
        self.refused(
            errors.NotFound,
            Code.INSTANCE_NOT_FOUND,
            reservations.get,
            self.database,
            one,
        )

    def test_lists_are_filtered_and_paged(self):
        agents = [self.agent('a'), self.agent('b')]
        mine, yours = sorted(base.uuids(4)), sorted(base.uuids(3))
        agents[0].first(*mine)
        agents[1].first(
            *yours,
            reservations=[
                base.reservation(
                    one, state=messages.State.DEGRADED, enforced_backend='cfs'
                )
                for one in yours
            ],
        )
        self.change(mine[0], runtime_us=6_000)

        def page(limit=100, marker=None, **filters):
            return [
                found.instance_uuid
                for found in reservations.page(
                    self.database, limit, marker, **filters
                )
            ]

        both = sorted(mine + yours)
        self.assertEqual(both, page())
        self.assertEqual(both[:2], page(2))
        self.assertEqual(both[2:4], page(2, both[1]))
        self.assertEqual([], page(2, both[-1]))
        self.assertEqual(mine, page(host='a'))
        self.assertEqual([], page(host='c'))
        self.assertEqual([mine[1]], page(instance_uuids=[mine[1]]))
        self.assertEqual(yours, page(states=['degraded']))
        self.assertEqual(
            sorted([*yours, mine[0]]), page(states=['degraded', 'pending'])
        )
        self.assertEqual([mine[0]], page(sources=['override']))
        self.assertEqual(yours, page(backend='cfs'))
        self.assertEqual([], page(host='a', states=['degraded']))
