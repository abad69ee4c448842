# SPDX-License-Identifier: Apache-2.0

"""How a service of OpenStack is reached, with keystone or without.

A group of options is what Nova's own groups of that kind are: ``auth_type``
says how to authenticate, ``password`` and its like ask keystone,
``admin_token`` with ``endpoint`` and ``token`` needs none.
"""

from collections.abc import Sequence
import copy
import itertools

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg

#: A service that does not answer for this long is away, in seconds.
TIMEOUT_S = 30


class Unavailable(Exception):
    """A service can't be reached, or doesn't let us in."""


#: Which endpoints of a service are taken, the first that there is.
INTERFACES = ('internal', 'public')


def _opts(
    service_type: str, interfaces: Sequence[str] | None = INTERFACES
) -> list[cfg.Opt]:
    # A group written for Nova may hold the deprecated "interface", which
    # keystoneauth does not take together with a default of its successor.
    opts = copy.deepcopy(
        loading.get_session_conf_options()
        + loading.get_adapter_conf_options(include_deprecated=False)
    )
    cfg.set_defaults(opts, timeout=TIMEOUT_S, service_type=service_type)
    if interfaces is not None:
        cfg.set_defaults(opts, valid_interfaces=list(interfaces))
    return opts


def register_opts(
    conf: cfg.ConfigOpts,
    group: str,
    service_type: str,
    interfaces: Sequence[str] | None = INTERFACES,
) -> None:
    """Make the options of one service known.

    :param group: which holds them.
    :param service_type: as in keystone's catalogue.
    :param interfaces: the default of ``valid_interfaces``; keystoneauth's
        own when None.
    """
    conf.register_opts(_opts(service_type, interfaces), group=group)
    loading.register_auth_conf_options(conf, group)


def sample_opts(service_type: str) -> list[cfg.Opt]:
    """The options for a generated sample, the usual plugins' included."""
    found: dict[str, cfg.Opt] = {}
    for opt in itertools.chain(
        loading.get_auth_common_conf_options(),
        loading.get_auth_plugin_conf_options('password'),
        loading.get_auth_plugin_conf_options('admin_token'),
        _opts(service_type),
    ):
        found.setdefault(opt.name, opt)
    return list(found.values())


def configured(conf: cfg.ConfigOpts, group: str) -> bool:
    """Whether an operator said how to reach the service."""
    options = conf[group]
    return bool(options.auth_type or options.auth_section)


def connect(conf: cfg.ConfigOpts, group: str) -> adapter.Adapter:
    """What requests go through; nothing is sent yet.

    :param group: of :func:`register_opts`.
    :raises Unavailable: when the options don't say how.
    """
    try:
        auth = loading.load_auth_from_conf_options(conf, group)
        if auth is None:
            raise Unavailable('[%s] auth_type is not set' % group)
        session = loading.load_session_from_conf_options(
            conf, group, auth=auth
        )
        return loading.load_adapter_from_conf_options(
            conf, group, session=session, auth=auth
        )
    except (exceptions.ClientException, cfg.Error, OSError) as problem:
        raise Unavailable('[%s]: %s' % (group, problem)) from None
