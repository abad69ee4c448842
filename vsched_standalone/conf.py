# SPDX-License-Identifier: Apache-2.0

"""Options of [standalone]."""

import copy

from oslo_config import cfg
from oslo_log import log as logging

from vsched_agent import conf as agent_conf
from vsched_api import conf as api_conf

standalone_group = cfg.OptGroup(
    'standalone',
    title='Standalone',
    help='API, collector and agent in one process.',
)

standalone_opts = [
    cfg.HostAddressOpt(
        'bind_host',
        default='127.0.0.1',
        help='Address that the API listens on. Without keystone every client '
        'has the rights of an administrator.',
    ),
    cfg.PortOpt(
        'bind_port',
        default=8790,
        help='Port that the API listens on; 0 for any free port.',
    ),
    cfg.IntOpt(
        'threads',
        default=8,
        min=1,
        max=256,
        help='Number of requests that are served at the same time.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of agent, API, collector and standalone."""
    logging.register_options(conf)
    agent_conf.register_opts(conf)
    api_conf.register_opts(conf)
    conf.register_group(copy.deepcopy(standalone_group))
    conf.register_opts(standalone_opts, group=standalone_group.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return all groups with their options, for oslo-config-generator.

    A group that several parts have, such as ``placement``, is listed once with
    the options of all.
    """
    groups: dict[str, cfg.OptGroup] = {}
    found: dict[str, dict[str, cfg.Opt]] = {}
    for group, options in (
        *agent_conf.list_opts(),
        *api_conf.list_opts(),
        (standalone_group, standalone_opts),
    ):
        groups.setdefault(group.name, group)
        listed = found.setdefault(group.name, {})
        for option in options:
            listed.setdefault(option.name, option)
    return [
        (groups[name], list(listed.values())) for name, listed in found.items()
    ]


def set_defaults(conf: cfg.ConfigOpts, state_path: str) -> None:
    """Set the defaults that differ from those of separate services.

    :param state_path: directory of the database and the agent's journal.
    """
    conf.set_default('state_path', state_path, group='agent')
    conf.set_default('report_interval', 1.0, group='agent')
    conf.set_default('auth_strategy', 'noauth', group='api')
    conf.set_default(
        'connection',
        'sqlite:///%s/vsched.sqlite' % state_path,
        group='database',
    )
