# SPDX-License-Identifier: Apache-2.0

"""Options of the database: those of oslo.db, with defaults of our own.

oslo.db waits a hundred seconds for a database that is away when it starts.
A request must not: it answers 503 and the next one tries again, and an agent
keeps its batch.
"""

import copy

from oslo_config import cfg
from oslo_db import options

GROUP = cfg.OptGroup('database', title='The database')

# Copies: changing the defaults in place would change them for every other
# user of oslo.db in the process.
OPTS = copy.deepcopy(options.database_opts)
cfg.set_defaults(OPTS, max_retries=0, pool_timeout=5, max_overflow=20)

TIMEOUT_OPTS: list[cfg.Opt] = [
    cfg.FloatOpt(
        'lock_timeout_s',
        default=5.0,
        min=0.1,
        max=3600.0,
        help='How long a transaction waits for a lock that another one '
        'holds, in seconds. After that the service answers that the '
        'database is too busy: an agent keeps its batch and sends it '
        'again, a REST client gets 503 with Retry-After. It should be '
        'well below the 10 seconds for which an agent waits.',
    ),
    cfg.FloatOpt(
        'statement_timeout_s',
        default=8.0,
        min=0.1,
        max=86400.0,
        help='How long one statement may take, the wait for locks included, '
        'in seconds. It should be below the 10 seconds for which an '
        'agent waits.',
    ),
    cfg.FloatOpt(
        'idle_transaction_timeout_s',
        default=60.0,
        min=1.0,
        max=86400.0,
        help='After which time PostgreSQL and MariaDB end a transaction that '
        'does nothing, in seconds: one of a process that hangs must not '
        'keep its locks.',
    ),
    cfg.FloatOpt(
        'maintenance_timeout_s',
        default=3600.0,
        min=1.0,
        max=604800.0,
        help='How long one statement of a migration, of the sums of usage or '
        'of the deletion of old rows may take, in seconds. A migration '
        'waits as long for locks.',
    ),
]

#: Arguments of the engine that options of the same name set.
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
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS + TIMEOUT_OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS + TIMEOUT_OPTS)]
