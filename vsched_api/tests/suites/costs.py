# SPDX-License-Identifier: Apache-2.0

"""What requests cost a database, by the number of hosts."""

import re

import sqlalchemy as sa

from vsched_api.operations import hosts
from vsched_api.operations import reservations
from vsched_api.operations import usage
from vsched_api.tests import base

_DOWN_AFTER_S = 30.0


class Costs:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def fill(self, first, last):
        """Let hosts tell of five seconds of two instances each."""
        for number in range(first, last):
            uuids = base.uuids(2)
            self.agent('host%03d' % number).first(
                *uuids,
                usage=tuple(
                    base.sample(uuid, base.NOW + second)
                    for uuid in uuids
                    for second in range(5)
                ),
            )

    def statements(self, act):
        """How many an operation takes."""
        told = []

        def tell(connection, cursor, statement, *_):
            told.append(statement)

        act()
        engine = self.database._engines[0]
        sa.event.listen(engine, 'before_cursor_execute', tell)
        try:
            act()
        finally:
            sa.event.remove(engine, 'before_cursor_execute', tell)
        return [one for one in told if one.startswith('SELECT')]

    def test_queries_are_as_many_whatever_the_hosts(self):
        acts = {
            'a host': lambda: hosts.get(
                self.database, 'host000', self.now, _DOWN_AFTER_S
            ),
            'a page of hosts': lambda: hosts.page(
                self.database, 1, None, self.now, _DOWN_AFTER_S
            ),
            'the oldest sample': lambda: usage.page(self.database, 1),
            'the newest sample': lambda: usage.page(
                self.database, 1, newest_first=True
            ),
        }
        self.fill(0, 2)
        few = {name: len(self.statements(act)) for name, act in acts.items()}
        self.fill(2, 80)
        many = {name: len(self.statements(act)) for name, act in acts.items()}
        self.assertEqual(few, many)
        self.assertLessEqual(max(many.values()), 6)

    def test_instances_of_other_hosts_are_not_counted(self):
        self.fill(0, 3)
        self.assertEqual(
            2,
            hosts.get(
                self.database, 'host001', self.now, _DOWN_AFTER_S
            ).instances,
        )
        (counted,) = [
            one
            for one in self.statements(
                lambda: hosts.get(
                    self.database, 'host001', self.now, _DOWN_AFTER_S
                )
            )
            if 'count(' in one
        ]
        self.assertIn('host_id IN', counted)

    def test_a_page_of_reservations_reads_no_more_of_hosts_than_names(self):
        uuid = base.uuids(1)[0]
        self.agent('host000').first(
            uuid, reservations=(base.reservation(uuid),)
        )
        (statement,) = self.statements(
            lambda: reservations.page(self.database, 1)
        )
        read = set(re.findall(r'\bhosts\.(\w+)', statement.split('FROM')[0]))
        self.assertEqual({'name'}, read)

    def test_pages_of_many_hosts_have_each_sample_once(self):
        self.fill(0, 20)
        for newest_first in (False, True):
            found, marker = [], None
            while page := usage.page(
                self.database, 37, marker, newest_first=newest_first
            ):
                found += page
                marker = page[-1].number
            self.assertEqual(200, len({one.number for one in found}))
            self.assertEqual(200, len(found))
            times = [one.at for one in found]
            self.assertEqual(sorted(times, reverse=newest_first), times)
