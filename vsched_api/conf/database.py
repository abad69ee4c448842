# SPDX-License-Identifier: Apache-2.0

"""Options of [database]: those of oslo.db with other defaults, and timeouts.

oslo.db retries the first connection for a hundred seconds. API requests must
not wait that long: they are answered with 503, and agents keep their batches.
"""

import copy

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('database', title='The database')

# Copies: changing the defaults in place would change them for every other user
# of oslo.db in the process.
OPTS = copy.deepcopy(options.database_opts)
cfg.set_defaults(OPTS, max_retries=0, pool_timeout=5, max_overflow=20)

TIMEOUT_OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'lock_timeout_s',
        default=5.0,
        min=0.1,
        max=3600.0,
        help='Maximum time for a transaction to wait for a lock, in seconds. '
        'After that the service answers that the database is too busy: '
        'an agent sends its batch again later, a REST client gets 503 '
        'with Retry-After. Should be well below the 10 seconds for '
        'which an agent waits.',
    ),
    cfg.FloatOpt(
        'statement_timeout_s',
        default=8.0,
        min=0.1,
        max=86400.0,
        help='Maximum time of one statement including its waits for locks, '
        'in seconds. Should be below the 10 seconds for which an agent '
        'waits.',
    ),
    cfg.FloatOpt(
        'idle_transaction_timeout_s',
        default=60.0,
        min=1.0,
        max=86400.0,
        help='Time after which PostgreSQL and MariaDB abort an idle '
        'transaction, in seconds, so that a process that hangs does not '
        'keep its locks.',
    ),
    cfg.FloatOpt(
        'maintenance_timeout_s',
        default=3600.0,
        min=1.0,
        max=604800.0,
        help='Maximum time of one statement of a migration, of the summation '
        'of usage or of the deletion of old rows, in seconds. Also the '
        'maximum time for which a migration waits for locks.',
    ),
]

#: Options that are passed to the engine as arguments of the same name.
ENGINE_OPTIONS = (
    'connection',
    'slave_connection',
    'synchronous_reader',
    'mysql_sql_mode',
    'mysql_wsrep_sync_wait',
    'connection_recycle_time',
    'connection_debug',
    'connection_trace',
    'max_pool_size',
    'max_overflow',
    'pool_timeout',
    'sqlite_synchronous',
    'max_retries',
    'retry_interval',
    'connection_parameters',
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS + TIMEOUT_OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(GROUP, OPTS + TIMEOUT_OPTS)]
