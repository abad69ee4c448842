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

"""Creating, upgrading and removing the tables: on every database alike."""

from alembic import autogenerate
from alembic.runtime import migration as alembic_migration
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from vsched_api.db import migration
from vsched_api.db import models
from vsched_api.tests import databases


class Migrations:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.conf = databases.configuration(
            self.kind.make(self, migrated=False))

    def tables(self):
        return self.database.read(lambda session: set(
            sa.inspect(session.connection()).get_table_names()))

    def test_up_and_down_and_up_again(self):
        self.assertIsNone(migration.version(self.conf))
        for _ in range(2):
            migration.sync(self.conf)
            self.assertEqual(
                migration.newest(), migration.version(self.conf))
            self.assertEqual(
                {*models.Base.metadata.tables, 'alembic_version'},
                self.tables())
            # A second time does nothing.
            migration.sync(self.conf)
            migration.downgrade(self.conf, migration.BASE)
            self.assertIsNone(migration.version(self.conf))
            self.assertEqual({'alembic_version'}, self.tables())

    def test_tables_are_what_the_models_say(self):
        migration.sync(self.conf)

        def work(session):
            context = alembic_migration.MigrationContext.configure(
                session.connection(), opts={
                    'compare_type': _differs, 'compare_server_default': True})
            return autogenerate.compare_metadata(
                context, models.Base.metadata)

        self.assertEqual([], self.database.read(work))

    def test_hosts_of_an_older_release_have_ordered_no_job(self):
        migration.sync(self.conf, '0001')

        def count(session):
            return session.execute(
                sa.text('SELECT count(*) FROM instances')).scalar_one()

        self.database.write(lambda session: [
            session.execute(sa.text(one)) for one in (
                "INSERT INTO hosts (id, name, last_batch, "
                "overrides_generation) VALUES (1, 'node1', 7, 3)",
                "INSERT INTO instances (id, uuid, host_id, name, vcpus, "
                "present, arrived_at) VALUES (1, 'x', 1, 'vm', 1, true, 0)")])
        migration.sync(self.conf)
        row, = self.database.read(lambda session: session.execute(
            sa.select(models.Host)).scalars().all())
        self.assertEqual((7, 3, 0), (
            row.last_batch, row.overrides_generation, row.jobs_generation))
        migration.downgrade(self.conf, '0001')
        self.assertEqual(1, self.database.read(count))

    def test_the_counter_is_there(self):
        migration.sync(self.conf)
        self.assertEqual(
            [('override_generation', 0)],
            self.database.read(lambda session: [
                (row.name, row.value) for row in session.execute(
                    sa.select(models.Counter)).scalars()]))


def _differs(context, inspected, column, found, wanted):
    # MariaDB keeps JSON as text that it checks.
    if isinstance(wanted, sa.JSON) and isinstance(found, mysql.LONGTEXT):
        return False
    return None
