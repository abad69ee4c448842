# SPDX-License-Identifier: Apache-2.0

"""Options of [cors], which are oslo.middleware's."""

from collections.abc import Mapping
import copy
import types
import typing as ty

from oslo_config import cfg
from oslo_middleware import cors

GROUP = cfg.OptGroup(
    'cors', title='Pages of other origins that may use the REST service'
)

#: What pages need. Tokens are in a header of their own, not in a cookie.
DEFAULTS: Mapping[str, ty.Any] = types.MappingProxyType(
    {
        'allow_credentials': False,
        'allow_methods': ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'],
        'allow_headers': [
            'X-Auth-Token',
            'X-Openstack-Request-Id',
            'OpenStack-API-Version',
            'If-Match',
            'If-None-Match',
        ],
        'expose_headers': [
            'X-Openstack-Request-Id',
            'OpenStack-API-Version',
            'ETag',
            'Link',
            'Location',
            'Retry-After',
        ],
    }
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    # As oslo.middleware defines them: it registers them again.
    conf.register_opts(copy.deepcopy(cors.OPTS), group=GROUP)
    for name, value in DEFAULTS.items():
        conf.set_default(name, value, GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    options = copy.deepcopy(list(cors.OPTS))
    cfg.set_defaults(options, **DEFAULTS)
    return [(GROUP, options)]
