# SPDX-License-Identifier: Apache-2.0

"""Transactions, and what becomes of a database that is away.

Two rules keep writers safe on SQLite, PostgreSQL and MariaDB alike:

* The first statement of a writing transaction is a write, to the row that
  orders it against the others. SQLite then waits for its lock instead of
  failing half way, and MariaDB takes its snapshot after the wait.
* Rows are taken in one order: ``counters``, then ``hosts``, then the rest.

A transaction that the database gave up in favour of another one is done
again from its start, so a unit of work must have no effect elsewhere.
"""

from collections.abc import Callable
import time
import typing as ty

from oslo_config import cfg
from oslo_db import api as oslo_db_api
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
from oslo_log import log as logging
import sqlalchemy as sa
from sqlalchemy import exc as sa_exc
from sqlalchemy import orm

from vsched_api.conf import database as database_conf
from vsched_api.db import errors
from vsched_api.db import timeouts

LOG = logging.getLogger(__name__)

T = ty.TypeVar('T')

Purpose = timeouts.Purpose

#: How long opening a connection may take before the database counts as
#: away, in seconds.
CONNECT_TIMEOUT_S = 3

#: How long one answer of MariaDB may take, in seconds: without it a read
#: from a server that hangs never ends.
ANSWER_TIMEOUT_S = 30

_MAX_RETRIES = 10
_RETRY_INTERVAL_S = 0.02
_MAX_RETRY_INTERVAL_S = 0.5

# Per driver, what its URL says when the operator's does not.
_URL_DEFAULTS = {
    'mysql+pymysql': {
        # oslo.db's own default is MySQL's three-byte utf8.
        'charset': 'utf8mb4',
        'connect_timeout': str(CONNECT_TIMEOUT_S),
        'read_timeout': str(ANSWER_TIMEOUT_S),
        'write_timeout': str(ANSWER_TIMEOUT_S),
    },
    'postgresql+psycopg2': {
        'connect_timeout': str(CONNECT_TIMEOUT_S),
        'tcp_user_timeout': str(ANSWER_TIMEOUT_S * 1000),
    },
}

_AWAY = (
    db_exc.DBConnectionError,
    db_exc.DBDeadlock,
    db_exc.DBNonExistentDatabase,
    db_exc.DBNonExistentTable,
    sa_exc.InterfaceError,
    sa_exc.OperationalError,
    # No connection of the pool became free in time.
    sa_exc.TimeoutError,
)


@enginefacade.transaction_context_provider
class _Context:
    """Carries one transaction; oslo.db hangs it on here."""


def _sqlite_locked(error: BaseException) -> bool:
    return isinstance(
        error, sa_exc.OperationalError
    ) and 'database is locked' in str(error.orig)


def complete_url(text: str) -> sa.URL:
    """The URL with the defaults of its driver.

    :param text: what ``[database] connection`` says.
    :raises errors.UnusableConnection: when it is no URL of a database.
    """
    try:
        url = sa.make_url(text)
    except (sa_exc.ArgumentError, ValueError):
        raise errors.UnusableConnection(
            '[database] connection is no URL of a database, such as '
            'postgresql+psycopg2://USER:PASSWORD@HOST/NAME'
        ) from None
    missing = {
        key: value
        for key, value in _URL_DEFAULTS.get(url.drivername, {}).items()
        if key not in url.query
    }
    return url.update_query_dict(missing)


class Database:
    """The one database of a service. Safe from any thread.

    Opens nothing by itself: the first transaction does, so that a service
    starts while the database is away.

    :param conf: has the options of :mod:`vsched_api.conf.database`.
    :param purpose: decides which time-outs hold.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, purpose: Purpose = Purpose.SERVICE
    ) -> None:
        self._timeouts = timeouts.Timeouts.of(conf, purpose)
        settings = {
            name: conf.database[name] for name in database_conf.ENGINE_OPTIONS
        }
        for name in ('connection', 'slave_connection'):
            if settings[name]:
                settings[name] = complete_url(settings[name]).render_as_string(
                    hide_password=False
                )
        self._configured = bool(settings['connection'])
        if str(settings['connection']).startswith('sqlite'):
            # Its connections are not pooled, and oslo.db would pass it on.
            settings['pool_timeout'] = None
        self._engines: list[sa.Engine] = []
        self._facade = enginefacade.transaction_context()
        self._facade.configure(
            sqlite_fk=True,
            on_engine_create=[self._engines.append, self._timeouts.apply],
            **settings,
        )

    def read(self, work: Callable[[orm.Session], T]) -> T:
        """Do ``work`` in a transaction that changes nothing.

        :raises errors.DatabaseUnavailable: when it can not be done now.
        """
        return self._translated(self._facade.reader, work)

    def write(self, work: Callable[[orm.Session], T]) -> T:
        """Do ``work`` in a transaction; all of it is stored, or nothing.

        :param work: may be done more than once.
        :raises errors.DatabaseUnavailable: when it can not be done now.
        :raises errors.UnstorableValue: when a value fits no column.
        """
        return self._translated(self._facade.writer, work)

    def dispose(self) -> None:
        """Close all connections that are not in use."""
        for engine in self._engines:
            engine.dispose()

    def _translated(self, mode: ty.Any, work: Callable[[orm.Session], T]) -> T:
        # All tries together wait no longer than one lock may take.
        ends_at = time.monotonic() + self._timeouts.lock_s

        def worth_another_try(error: BaseException) -> bool:
            # A duplicate: another transaction added the row between our
            # look and our insert. The next look will see it.
            return time.monotonic() < ends_at and (
                _sqlite_locked(error)
                or (
                    isinstance(error, db_exc.DBDeadlock)
                    and not timeouts.exceeded(error)
                )
                or isinstance(error, db_exc.DBDuplicateEntry)
            )

        @oslo_db_api.wrap_db_retry(
            max_retries=_MAX_RETRIES,
            retry_interval=_RETRY_INTERVAL_S,
            max_retry_interval=_MAX_RETRY_INTERVAL_S,
            jitter=True,
            exception_checker=worth_another_try,
        )
        def attempt() -> T:
            with mode.using(_Context()) as session:
                return work(session)

        # oslo.db declares no types: what it decorates has lost its own.
        retried: Callable[[], T] = attempt
        return self._guarded(retried)

    def _guarded(self, act: Callable[[], T]) -> T:
        if not self._configured:
            raise errors.DatabaseUnavailable(
                '[database] connection is not set'
            )
        try:
            return act()
        except _AWAY as error:
            LOG.warning('The database can not serve: %s', _brief(error))
            if timeouts.exceeded(error):
                raise errors.DatabaseBusy(_explain(error)) from error
            if _foreign_schema(error):
                raise errors.UnknownTables(_FOREIGN) from error
            raise errors.DatabaseUnavailable(_explain(error)) from error
        except (
            db_exc.DBDataError,
            db_exc.DBInvalidUnicodeParameter,
            sa_exc.DataError,
        ) as error:
            raise errors.UnstorableValue(_brief(error)) from error
        except db_exc.DBError as error:
            if timeouts.exceeded(error):
                LOG.warning('The database can not serve: %s', _brief(error))
                raise errors.DatabaseBusy(_BUSY) from error
            if isinstance(
                error.inner_exception,
                (ValueError, OverflowError, sa_exc.DataError),
            ):
                raise errors.UnstorableValue(_brief(error)) from error
            if _missing_schema(error):
                raise errors.DatabaseUnavailable(_SCHEMA) from error
            if _foreign_schema(error):
                raise errors.UnknownTables(_FOREIGN) from error
            raise
        except sa_exc.ProgrammingError as error:
            if _missing_schema(error):
                raise errors.DatabaseUnavailable(_SCHEMA) from error
            raise


_BUSY = 'the database is too busy; try again'
_SCHEMA = (
    'the database does not have the tables of this release: run '
    'vsched-manage db sync'
)
_FOREIGN = (
    'the database has tables of another program with the names of those of '
    'vsched: it must belong to vsched alone; nothing was changed'
)


def _foreign_schema(error: Exception) -> bool:
    # SQLite and PostgreSQL; db.resuming examines those of MariaDB. PostgreSQL
    # says the same of the key of a row.
    return 'already exists' in _brief(error) and not isinstance(
        error, db_exc.DBDuplicateEntry
    )


def _missing_schema(error: Exception) -> bool:
    # MySQL's 1146, PostgreSQL's UndefinedTable and UndefinedColumn.
    text = str(error)
    return '1146' in text or 'does not exist' in text


def _explain(error: Exception) -> str:
    if isinstance(error, db_exc.DBNonExistentTable) or (
        'no such column' in str(error) or 'Unknown column' in str(error)
    ):
        return _SCHEMA
    if isinstance(error, db_exc.DBDeadlock) or timeouts.exceeded(error):
        return _BUSY
    return 'the database does not answer; try again later'


def _brief(error: Exception) -> str:
    # The first line only: the rest quotes the statement and its values.
    original = (
        getattr(error, 'orig', None)
        or getattr(error, 'inner_exception', None)
        or error
    )
    text = str(original).strip()
    return '%s: %s' % (
        type(original).__name__,
        text.splitlines()[0] if text else '',
    )
