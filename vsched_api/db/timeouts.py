# SPDX-License-Identifier: Apache-2.0

"""How long statements may take and wait for locks, on each database.

A statement that takes longer is ended by the database (SQLite: by the
connection), and the transaction fails with
:class:`vsched_api.db.errors.DatabaseUnavailable`.
"""

import dataclasses
import enum
import time
import typing as ty

from oslo_config import cfg
import sqlalchemy as sa

#: SQLite calls back after so many of its virtual machine's instructions: every
#: few milliseconds.
_SQLITE_STEPS = 100_000

# PostgreSQL's SQLSTATEs: lock_not_available, query_canceled,
# idle_in_transaction_session_timeout.
_POSTGRESQL = frozenset(('55P03', '57014', '25P03'))
# MariaDB's errors: a lock was not got in time, a statement took too long,
# MySQL's likewise.
_MARIADB = frozenset((1205, 1969, 3024))


class Purpose(enum.Enum):
    """What connections are for."""

    #: Requests and reports: somebody waits for the answer.
    SERVICE = 'service'
    #: Sums and deletions: long statements, but no long wait for a lock, for
    #: they may hold others.
    MAINTENANCE = 'maintenance'
    #: Migrations: both may take long.
    MIGRATION = 'migration'


@dataclasses.dataclass(frozen=True, slots=True)
class Timeouts:
    """The bounds of one engine's connections, in seconds."""

    lock_s: float
    statement_s: float
    idle_s: float

    @classmethod
    def of(cls, conf: cfg.ConfigOpts, purpose: Purpose) -> ty.Self:
        """As the options say.

        :param conf: has the options of :mod:`vsched_api.conf.database`.
        """
        options = conf.database
        lock_s, statement_s, idle_s = (
            options.lock_timeout_s,
            options.statement_timeout_s,
            options.idle_transaction_timeout_s,
        )
        if purpose is not Purpose.SERVICE:
            statement_s = idle_s = options.maintenance_timeout_s
        if purpose is Purpose.MIGRATION:
            lock_s = options.maintenance_timeout_s
        return cls(lock_s, statement_s, idle_s)

    def apply(self, engine: sa.Engine) -> None:
        """Have all connections of an engine keep the bounds."""
        name = engine.dialect.name
        if name == 'sqlite':
            self._apply_sqlite(engine)
            return
        statements = {
            'postgresql': self._postgresql,
            'mysql': self._mariadb,
            'mariadb': self._mariadb,
        }[name]()

        @sa.event.listens_for(engine, 'connect')
        def prepare(connection: ty.Any, record: ty.Any) -> None:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            cursor.close()
            # Else a rollback takes the settings back on PostgreSQL.
            connection.commit()

    def _postgresql(self) -> list[str]:
        return [
            'SET SESSION %s = %d' % (name, seconds * 1000)
            for name, seconds in (
                ('lock_timeout', self.lock_s),
                ('statement_timeout', self.statement_s),
                ('idle_in_transaction_session_timeout', self.idle_s),
            )
        ]

    def _mariadb(self) -> list[str]:
        # What stands in /*M! */ only MariaDB reads; MySQL has a bound of
        # SELECT alone, in milliseconds.
        return [
            'SET SESSION innodb_lock_wait_timeout = %d'
            % max(1, round(self.lock_s)),
            'SET SESSION lock_wait_timeout = %d' % max(1, round(self.lock_s)),
            'SET /*M! SESSION max_statement_time = %f, SESSION '
            'idle_transaction_timeout = %d, */ @vsched_timeouts = 1'
            % (self.statement_s, max(1, round(self.idle_s))),
        ]

    def _apply_sqlite(self, engine: sa.Engine) -> None:
        statement_s = self.statement_s
        busy_ms = int(self.lock_s * 1000)

        @sa.event.listens_for(engine, 'connect')
        def prepare(connection: ty.Any, record: ty.Any) -> None:
            # First the time-out: changing the journal's mode takes a lock.
            for pragma in (
                'busy_timeout = %d' % busy_ms,
                'journal_mode = WAL',
                'synchronous = NORMAL',
            ):
                connection.execute('PRAGMA ' + pragma).fetchall()
            connection.set_progress_handler(
                lambda: (
                    time.monotonic() > record.info.get(_ENDS_AT, float('inf'))
                ),
                _SQLITE_STEPS,
            )

        @sa.event.listens_for(engine, 'before_cursor_execute')
        def begin(connection: sa.Connection, *_: ty.Any) -> None:
            connection.info[_ENDS_AT] = time.monotonic() + statement_s


_ENDS_AT = 'vsched_statement_ends_at'


def exceeded(error: BaseException | None) -> bool:
    """Whether a statement failed for taking, or waiting, too long."""
    for _ in range(8):
        if error is None:
            return False
        if getattr(error, 'pgcode', None) in _POSTGRESQL:
            return True
        arguments = error.args
        if (
            arguments
            and arguments[0] in _MARIADB
            and ('pymysql' in type(error).__module__)
        ):
            return True
        if type(error).__module__ == 'sqlite3' and (
            str(error) in ('interrupted', 'database is locked')
        ):
            return True
        error = (
            getattr(error, 'orig', None)
            or getattr(error, 'inner_exception', None)
            or error.__cause__
        )
    return False
