# SPDX-License-Identifier: Apache-2.0

"""Read the options of a command or a service, and set up its log."""

from collections.abc import Sequence

from oslo_config import cfg
from oslo_log import log as logging
import pbr.version

import vsched_api.conf
from vsched_lib import command_line

LOG = logging.getLogger(__name__)

PROJECT = 'vsched'

#: Libraries whose debug output is not useful, or may contain the password of a
#: connection string.
_LOG_LEVELS = [
    'amqp=WARN',
    'amqplib=WARN',
    'sqlalchemy=WARN',
    'oslo.messaging=INFO',
    'oslo_messaging=INFO',
    'urllib3.connectionpool=WARN',
    'keystonemiddleware=WARN',
    'alembic=WARN',
    'stevedore=WARN',
]


def reload(conf: cfg.ConfigOpts) -> bool:
    """Read the configuration files again; apply changes of mutable options.

    The log lists the changes of other options. A file with an error changes
    nothing.

    :returns: whether the files were read without an error.
    """
    try:
        _check(conf.config_file)
        conf.mutate_config_files()
    except (cfg.Error, OSError) as problem:
        LOG.error('The configuration stays as it was: %s', problem)
        return False
    LOG.info('The configuration was read again')
    return True


def _check(files: Sequence[str]) -> None:
    # Otherwise a value out of range is found at its next use only.
    fresh = cfg.ConfigOpts()
    vsched_api.conf.register_opts(fresh)
    fresh(args=[], project=PROJECT, default_config_files=list(files))
    for group, options in vsched_api.conf.list_opts():
        for option in options:
            if option.mutable:
                getattr(fresh[group.name], option.dest)


def read(
    prog: str,
    args: Sequence[str],
    more: Sequence[cfg.Opt] = (),
    files: Sequence[str] | None = None,
) -> cfg.ConfigOpts:
    """Read the options of a command.

    They are read from ``vsched.conf`` and ``<prog>.conf`` in the usual
    folders, unless ``--config-file`` or ``files`` names others.

    :param prog: the command's name.
    :param args: the command line without it.
    :param more: further options of the command line.
    :raises SystemExit: with an error message about a file.
    """
    conf = command_line.Options()
    logging.register_options(conf)
    logging.set_defaults(default_log_levels=_LOG_LEVELS)
    # By default oslo.log writes to standard output, where it mixes with the
    # output of a command.
    conf.set_default('use_stderr', True)
    vsched_api.conf.register_opts(conf)
    conf.register_cli_opts(more)
    try:
        conf(
            args=list(args),
            project=PROJECT,
            prog=prog,
            version=pbr.version.VersionInfo(PROJECT).version_string(),
            default_config_files=None if files is None else list(files),
        )
        logging.setup(conf, PROJECT)
    except cfg.Error as problem:
        raise SystemExit('%s: %s' % (prog, problem)) from None
    return conf
