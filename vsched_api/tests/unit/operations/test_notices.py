# SPDX-License-Identifier: Apache-2.0

"""Events that a host sends in place of the collector's."""

import uuid

from vsched_api.operations import events
from vsched_api.operations import notices
from vsched_api.tests import base
from vsched_lib.contract import errors

_HOUR_S = 3_600


class TestHostsEvents(base.TestCase):
    """What the collector finds out is stored, and by nobody else."""

    def stored(self):
        return {one.code: one for one in events.page(self.database, 100)}

    def test_the_next_event_cannot_be_taken_away(self):
        """Its UUID is known to whoever has the source."""
        code = errors.Code.HOST_IMPLAUSIBLE
        agent = self.agent()
        agent.first(
            events=tuple(
                base.event(
                    uuid=notices.event_uuid(
                        base.HOST, code.value, int(self.now // _HOUR_S) + more
                    ),
                    code='vsched.agent.started',
                )
                for more in range(-1, 3)
            )
        )
        self.assertEqual(4, len(events.page(self.database, 100)))
        agent.send(host_info=base.host_info(capacity_mcpu=10**6))
        found = self.stored()[code.value]
        self.assertEqual((base.HOST, 'warning'), (found.host, found.severity))

    def test_an_event_of_another_uuid_is_stored_once(self):
        one = base.event(uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, 'x')))
        agent = self.agent()
        agent.first(events=(one,))
        agent.send(listed=False, events=(one,))
        (found,) = events.page(self.database, 100)
        self.assertEqual(4, uuid.UUID(found.uuid).version)

    def test_a_code_of_the_collector_is_not_a_hosts(self):
        for code in notices.OWN:
            self.agent(code.value).first(
                events=(
                    base.event(
                        uuid=str(uuid.uuid4()),
                        code=code.value,
                        figures={'user_id': 'ann'},
                    ),
                )
            )
        found = events.page(self.database, 100)
        self.assertEqual(
            {errors.Code.UNDEFINED.value}, {one.code for one in found}
        )
        self.assertEqual(
            {(code.value, code.value) for code in notices.OWN},
            {(one.host, one.figures['code']) for one in found},
        )
        self.assertTrue(all(len(one.figures) == 1 for one in found))
