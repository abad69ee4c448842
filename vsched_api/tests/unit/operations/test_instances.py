# SPDX-License-Identifier: Apache-2.0

"""What instances are known as, on SQLite."""

import sqlalchemy as sa

from vsched_api.operations import instances
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_api.tests.suites import instances as suite


class TestInstances(suite.Instances, base.TestCase):
    """The suite, on a file."""


class TestPlans(base.TestCase):
    """How SQLite finds what is filtered."""

    def plan(self, act):
        told = []

        def tell(connection, cursor, statement, parameters, *_):
            told.append((statement, parameters))

        engine = self.database._engines[0]
        sa.event.listen(engine, 'before_cursor_execute', tell)
        try:
            act()
        finally:
            sa.event.remove(engine, 'before_cursor_execute', tell)
        (asked,) = [one for one in told if one[0].startswith('SELECT')]
        return self.database.read(
            lambda session: ' '.join(
                row[3]
                for row in session.connection().exec_driver_sql(
                    'EXPLAIN QUERY PLAN ' + asked[0], asked[1]
                )
            )
        )

    def test_filters_have_indexes(self):
        self.database.read(lambda session: None)
        for kind in (instances, reservations):
            for name in ('project_id', 'server_name', 'flavor_name'):
                self.assertIn(
                    'instances_%s_idx' % name,
                    self.plan(
                        lambda kind=kind, name=name: kind.page(
                            self.database, 10, None, **{name: 'x'}
                        )
                    ),
                )
