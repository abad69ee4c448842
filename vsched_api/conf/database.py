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

#: Arguments of the engine that options of the same name set.
ENGINE_OPTIONS = (
    'connection', 'slave_connection', 'synchronous_reader',
    'mysql_sql_mode', 'mysql_wsrep_sync_wait', 'connection_recycle_time',
    'connection_debug', 'connection_trace', 'max_pool_size', 'max_overflow',
    'pool_timeout', 'sqlite_synchronous', 'max_retries', 'retry_interval',
    'connection_parameters')


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
