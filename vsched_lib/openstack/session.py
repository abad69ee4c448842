# SPDX-License-Identifier: Apache-2.0

"""Connections to services of OpenStack, with keystone or without.

The options of a group are those of the corresponding groups of Nova:
``auth_type`` selects the authentication plugin. ``password`` and similar ones
use keystone, ``admin_token`` with ``endpoint`` and ``token`` does not.
"""

from collections.abc import Sequence
import copy
import itertools

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from oslo_config import cfg

#: Default of the timeout of a request, in seconds.
TIMEOUT_S = 30


class Unavailable(Exception):
    """A service does not respond, or rejects the credentials."""


#: Interfaces of the service catalogue, in the order of preference.
INTERFACES = ('internal', 'public')


def _opts(
    service_type: str, interfaces: Sequence[str] | None = INTERFACES
) -> list[cfg.Opt]:
    # A group written for Nova may have the deprecated "interface", which
    # keystoneauth does not accept together with a default of its successor.
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
    """Register the options of a connection to one service.

    :param group: name of their group.
    :param service_type: as in keystone's catalogue.
    :param interfaces: the default of ``valid_interfaces``; keystoneauth's own
        when None.
    """
    conf.register_opts(_opts(service_type, interfaces), group=group)
    loading.register_auth_conf_options(conf, group)


def sample_opts(service_type: str) -> list[cfg.Opt]:
    """Return the options and those of common plugins, for samples."""
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
    """Return whether the connection is configured."""
    options = conf[group]
    return bool(options.auth_type or options.auth_section)


def connect(conf: cfg.ConfigOpts, group: str) -> adapter.Adapter:
    """Return an adapter for requests, without sending any.

    :param group: of :func:`register_opts`.
    :raises Unavailable: when the options are missing or invalid.
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
