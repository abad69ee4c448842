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
from vsched_api.operations import rollups
from vsched_api.operations import usage
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

    def test_samples_of_an_older_release_are_kept(self):
        migration.sync(self.conf, '0006')
        rows = [(batch, 'vm%d' % instance, batch + at, 1_000_000, 600_000 + at,
                 7, promised_us)
                for batch in (0, 1, 2) for at in (0.25, 0.5, 1)
                for instance, promised_us in ((1, 600_000), (2, None))]

        def fill(session):
            session.execute(sa.text(
                "INSERT INTO hosts (id, name, last_batch, "
                "overrides_generation) VALUES (1, 'node1', 2, 0)"))
            session.execute(sa.text(
                'INSERT INTO usage_folds (host_id, batch) VALUES (1, 1)'))
            session.execute(sa.text(
                'INSERT INTO usage_samples (host_id, batch, instance_uuid, '
                'at, interval_us, guest_us, wait_us, promised_us) VALUES '
                '(1, :a, :b, :c, :d, :e, :f, :g)'),
                [dict(zip('abcdefg', row, strict=True)) for row in rows])

        def left(session):
            return sorted(map(tuple, session.execute(sa.text(
                'SELECT batch, instance_uuid, at, interval_us, guest_us, '
                'wait_us, promised_us FROM usage_samples'))), key=str)

        rows = [(*row[:4], int(row[4]), *row[5:]) for row in rows]
        self.database.write(fill)
        migration.sync(self.conf)
        self.assertEqual(
            sorted(((one.at, one.instance_uuid, one.guest_us,
                     one.promised_us, one.shared_us)
                    for one in usage.page(self.database, 100)), key=str),
            sorted(((row[2], row[1], row[4], row[6], 0)
                    for row in rows), key=str))
        # Only those of the batch that was not in the sums.
        self.assertEqual(6, rollups.fold(self.database, 100))
        migration.downgrade(self.conf, '0006')
        self.assertEqual(sorted(rows, key=str), self.database.read(left))

    def test_the_counter_is_there(self):
        migration.sync(self.conf)
        self.assertEqual(
            [('override_generation', 0), ('slowdowns_at', 0),
             ('snapshot_version', 0)],
            self.database.read(lambda session: [
                (row.name, row.value) for row in session.execute(
                    sa.select(models.Counter).order_by(
                        models.Counter.name)).scalars()]))


def _differs(context, inspected, column, found, wanted):
    # MariaDB keeps JSON as text that it checks.
    if isinstance(wanted, sa.JSON) and isinstance(found, mysql.LONGTEXT):
        return False
    return None
