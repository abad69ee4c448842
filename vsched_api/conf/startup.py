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

"""Read the options of a command or a service, and start its log."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging

import vsched_api.conf

PROJECT = 'vsched'

#: Libraries whose word for word account of the bus and the database nobody
#: needs, and which might tell what is in a connection string.
_LOG_LEVELS = ['amqp=WARN', 'amqplib=WARN', 'sqlalchemy=WARN',
               'oslo.messaging=INFO', 'oslo_messaging=INFO',
               'urllib3.connectionpool=WARN', 'keystonemiddleware=WARN',
               'alembic=WARN', 'stevedore=WARN']


def read(prog: str, args: Sequence[str],
         more: Sequence[cfg.Opt] = (),
         files: Sequence[str] | None = None) -> cfg.ConfigOpts:
    """The options of a command.

    They are read from ``vsched.conf`` and ``<prog>.conf`` in the usual
    folders, unless ``--config-file`` or ``files`` names others.

    :param prog: the command's name.
    :param args: the command line without it.
    :param more: further options that the command line knows.
    :raises SystemExit: with what is wrong in a file, for standard error.
    """
    conf = cfg.ConfigOpts()
    logging.register_options(conf)
    logging.set_defaults(default_log_levels=_LOG_LEVELS)
    # oslo.log writes to standard output otherwise, between the lines that
    # a command prints there.
    conf.set_default('use_stderr', True)
    vsched_api.conf.register_opts(conf)
    conf.register_cli_opts(more)
    try:
        conf(args=list(args), project=PROJECT, prog=prog,
             default_config_files=None if files is None else list(files))
        logging.setup(conf, PROJECT)
    except cfg.Error as problem:
        raise SystemExit('%s: %s' % (prog, problem)) from None
    return conf
