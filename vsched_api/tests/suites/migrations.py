# SPDX-License-Identifier: Apache-2.0

"""Creating, upgrading and removing the tables: on every database alike."""

from alembic import autogenerate
from alembic.runtime import migration as alembic_migration
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from vsched_api.db import errors
from vsched_api.db import migration
from vsched_api.db import models
from vsched_api.tests import database_options


#: The first revision that was released.
INITIAL = '0001_initial'

#: How many revisions there are.
REVISIONS = len(migration._revisions())

_VALUES = {int: 1, float: 2.5, bool: True, str: 'x', dict: {'a': 1}}


class InterruptionError(Exception):
    """Ends a migration."""


class Migrations:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.conf = database_options.configuration(
            self.kind.make(self, migrated=False)
        )

    def tables(self):
        return self.database.read(
            lambda session: set(
                sa.inspect(session.connection()).get_table_names()
            )
        )

    def test_up_and_down_and_up_again(self):
        self.assertIsNone(migration.version(self.conf))
        for _ in range(2):
            migration.sync(self.conf)
            self.assertEqual(migration.newest(), migration.version(self.conf))
            self.assertEqual(
                {*models.Base.metadata.tables, 'alembic_version'},
                self.tables(),
            )
            # A second time does nothing.
            migration.sync(self.conf)
            migration.downgrade(self.conf, migration.BASE)
            self.assertIsNone(migration.version(self.conf))
            self.assertEqual({'alembic_version'}, self.tables())

    def test_tables_are_what_the_models_say(self):
        migration.sync(self.conf)

        def work(session):
            context = alembic_migration.MigrationContext.configure(
                session.connection(),
                opts={
                    'compare_type': _differs,
                    'compare_server_default': True,
                },
            )
            return autogenerate.compare_metadata(context, models.Base.metadata)

        self.assertEqual([], self.database.read(work))

    def test_upgrades_and_downgrades_lose_no_rows(self):
        migration.sync(self.conf, INITIAL)
        initial = self.database.read(_columns)
        # Tables and columns of later releases did not exist.
        tables = [
            one
            for one in models.Base.metadata.sorted_tables
            if one.name in initial
        ]
        self.database.write(
            lambda session: [
                session.execute(
                    one.insert(),
                    {
                        name: value
                        for name, value in _row(one).items()
                        if name in initial[one.name]
                    },
                )
                for one in tables
                if one.name != 'counters'
            ]
        )

        def rows(session):
            return {
                one.name: [
                    tuple(map(str, row))
                    for row in session.execute(
                        sa.select(*(one.c[name] for name in columns))
                    )
                ]
                for one, columns in known.items()
            }

        known = {one: sorted(initial[one.name]) for one in tables}
        before = self.database.read(rows)
        self.assertEqual(
            {1},
            {
                len(found)
                for name, found in before.items()
                if name != 'counters'
            },
        )
        migration.sync(self.conf)
        self.assertEqual(migration.newest(), migration.version(self.conf))
        self.assertEqual(before, self.database.read(rows))
        self.database.write(_fill_verifications)
        migration.downgrade(self.conf, INITIAL)
        self.assertEqual(INITIAL, migration.version(self.conf))
        self.assertEqual(initial, self.database.read(_columns))
        self.assertEqual(before, self.database.read(rows))

    def test_a_release_that_does_not_know_verifications_deletes_hosts(self):
        migration.sync(self.conf)
        hosts = models.Host.__table__
        self.database.write(
            lambda session: session.execute(hosts.insert(), _row(hosts))
        )
        self.database.write(_fill_verifications)
        self.database.write(lambda session: session.execute(hosts.delete()))
        self.assertEqual(
            [],
            self.database.read(
                lambda session: session.execute(
                    sa.select(models.HostVerification)
                ).all()
            ),
        )

    def test_tables_of_a_build_before_are_left_alone(self):
        # Its last revision; there was no release.
        for change in (
            'CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)',
            "INSERT INTO alembic_version VALUES ('0012')",
        ):
            self.database.write(
                lambda session, change=change: session.execute(sa.text(change))
            )
        error = self.assertRaises(
            errors.UnknownTables, migration.sync, self.conf
        )
        self.assertIn('0012', error.detail)
        self.assertEqual('0012', migration.version(self.conf))
        self.assertEqual({'alembic_version'}, self.tables())

    def test_one_that_is_interrupted_is_continued(self):
        """However often, and whatever change of a table was the last one."""
        count = 1
        while self._interrupted(_is_change, count, migration.sync):
            count += 5
        self.test_tables_are_what_the_models_say()
        self.test_the_counter_is_there()
        count = 1
        while self._interrupted(
            _is_change, count, migration.downgrade, migration.BASE
        ):
            count += 5
        self.assertIsNone(migration.version(self.conf))
        self.assertEqual({'alembic_version'}, self.tables())

    def test_one_that_is_interrupted_before_it_stores_a_revision(self):
        self.assertTrue(self._interrupted(_stores, 0, migration.sync))
        for _ in range(REVISIONS):
            self._interrupted(_stores, 1, migration.sync)
        self.test_tables_are_what_the_models_say()
        self.test_the_counter_is_there()

    def test_a_table_of_another_program_is_left_alone(self):
        self.database.write(
            lambda session: session.execute(
                sa.text('CREATE TABLE hosts (name VARCHAR(32) NOT NULL)')
            )
        )
        error = self.assertRaises(
            errors.UnknownTables, migration.sync, self.conf
        )
        self.assertIn('must belong to vsched alone', error.detail)
        self.assertIsNone(migration.version(self.conf))
        self.assertEqual({'name'}, self.database.read(_columns)['hosts'])

    def _interrupted(self, chosen, count, act, *args):
        """Whether ``act`` was stopped before its ``count + 1``-th statement.

        What the server has not stored by then is undone, as if the process
        had been killed.
        """
        done = []

        def look(_connection, _cursor, statement, *_rest):
            if chosen(statement.strip()):
                done.append(statement)
                if len(done) > count:
                    raise InterruptionError

        sa.event.listen(sa.Engine, 'before_cursor_execute', look)
        try:
            act(self.conf, *args)
        except InterruptionError:
            return True
        finally:
            sa.event.remove(sa.Engine, 'before_cursor_execute', look)
        return False

    def test_the_counter_is_there(self):
        migration.sync(self.conf)
        self.assertEqual(
            [
                ('override_generation', 0),
                ('slowdowns_at', 0),
                ('snapshot_version', 0),
            ],
            self.database.read(
                lambda session: [
                    (row.name, row.value)
                    for row in session.execute(
                        sa.select(models.Counter).order_by(models.Counter.name)
                    ).scalars()
                ]
            ),
        )


def _fill_verifications(session):
    table = models.HostVerification.__table__
    session.execute(table.insert(), _row(table))


def _is_change(statement):
    return statement.startswith(('CREATE ', 'ALTER ', 'DROP '))


def _stores(statement):
    return statement.startswith(
        ('INSERT INTO alembic_version', 'UPDATE alembic_version')
    )


def _columns(session):
    """The names of the columns of each table that there is."""
    inspector = sa.inspect(session.connection())
    return {
        name: {column['name'] for column in inspector.get_columns(name)}
        for name in inspector.get_table_names()
    }


def _row(table):
    """Something for each column; the id of what is referred to is 1."""
    return {
        column.name: _VALUES[column.type.python_type] for column in table.c
    }


def _differs(context, inspected, column, found, wanted):
    # MariaDB keeps JSON as text that it checks.
    if isinstance(wanted, sa.JSON) and isinstance(found, mysql.LONGTEXT):
        return False
    return None
