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

"""How long what an operator set lasts: on every database alike."""

from vsched_api.db import models
from vsched_api.operations import errors
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_api.tests.suites import reservations as suite
from vsched_lib.contract import errors as contract_errors

Code = contract_errors.Code


class Overrides(suite.Changes):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def test_removing_an_override_gives_back_the_flavors(self):
        one, = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        self.refused(errors.NotFound, Code.OVERRIDE_NOT_FOUND,
                     self.withdraw, one)
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        left = self.withdraw(one)
        self.assertEqual('pending', left.state)
        reply = agent.send(listed=False)
        self.assertGreater(reply.overrides_generation, changed.generation)
        self.assertEqual(
            (), agent._collector.on_overrides(base.HOST).overrides)
        self.refused(errors.NotFound, Code.OVERRIDE_NOT_FOUND,
                     self.withdraw, one)
        agent.send(listed=False, reservations=(base.reservation(one),))
        back = reservations.get(self.database, one)
        self.assertEqual(('applied', 'metadata', 12_000),
                         (back.state, back.source, back.runtime_us))

    def test_what_is_wanted_is_unknown_until_the_agent_says(self):
        one, = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        self.withdraw(one)
        self.refused(errors.Conflict, Code.RESERVATION_CHANGING,
                     self.change, one, runtime_us=7_000)
        self.refused(errors.Conflict, Code.RESERVATION_EXISTS,
                     self.create, one, runtime_us=7_000)
        again = self.change(one, runtime_us=7_000, period_us=10_000,
                            mode='capped')
        self.assertEqual(('pending', 7_000),
                         (again.state, again.runtime_us))
        self.assertGreater(again.generation, changed.generation)

    def test_removing_one_that_no_agent_answered_leaves_nothing(self):
        one, = base.uuids(1)
        self.agent().first(one, reservations=())
        self.create(one, runtime_us=5_000)
        self.assertIsNone(self.withdraw(one))
        self.refused(errors.NotFound, Code.RESERVATION_NOT_FOUND,
                     reservations.get, self.database, one)

    def test_an_override_goes_with_its_instance(self):
        one, = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.first()
        changed = self.change(one, runtime_us=6_000)
        self.answer(here, one, changed.generation)
        there.at += 1
        reply = there.send(one)
        self.assertGreater(
            reply.overrides_generation, changed.generation)
        # While both list it, it holds on both.
        for agent in (here, there):
            wanted, = agent._collector.on_overrides(agent.host).overrides
            self.assertEqual(one, wanted.instance_uuid)
        # The host that has told of it speaks until the new one does.
        shown = reservations.get(self.database, one)
        self.assertEqual(('here', 'applied'), (shown.host, shown.state))
        self.answer(there, one, wanted.generation)
        self.assertEqual(
            'there', reservations.get(self.database, one).host)
        here.at += 2
        left = here.send()
        self.assertGreater(left.overrides_generation, changed.generation)
        self.assertEqual(
            (), here._collector.on_overrides('here').overrides)
        shown = reservations.get(self.database, one)
        self.assertEqual(('there', 'applied', 6_000),
                         (shown.host, shown.state, shown.runtime_us))

    def test_a_change_while_it_migrates_reaches_both_hosts(self):
        one, = base.uuids(1)
        here, there = self.agent('here'), self.agent('there')
        here.first(one)
        there.at += 1
        there.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.assertEqual(
            {('here', changed.generation), ('there', changed.generation)},
            set(self.announcer.told))

    def test_a_stopped_instance_keeps_its_override(self):
        one, = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        changed = self.change(one, runtime_us=6_000)
        self.answer(agent, one, changed.generation)
        agent.send()
        self.assertEqual(
            'released', reservations.get(self.database, one).state)
        # Its host knows it for the moment that it starts again.
        wanted, = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual(changed.generation, wanted.generation)
        later = self.change(one, runtime_us=7_000)
        self.assertEqual('pending', later.state)
        reply = agent.send(one)
        self.assertGreaterEqual(
            reply.overrides_generation, later.generation)
        wanted, = agent._collector.on_overrides(base.HOST).overrides
        self.assertEqual(7_000, wanted.runtime_us)

    def test_rows_hold_what_was_asked_for(self):
        one, = base.uuids(1)
        self.agent().first(one)
        self.change(one, runtime_us=6_000)
        self.now += 1
        self.change(one, runtime_us=7_000)
        row = self.database.read(
            lambda session: session.get(models.Override, one))
        self.assertEqual((self.now - 1, self.now),
                         (row.created_at, row.updated_at))
