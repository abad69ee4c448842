# SPDX-License-Identifier: Apache-2.0

"""Options of [api]."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('api', title='The REST service')

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'Requests carry a token that keystone validates.'),
            (
                'noauth',
                'Every request has the rights of an administrator. '
                'For a single host and for tests only.',
            ),
        ],
        help='Authentication of requests.',
    ),
    cfg.IntOpt(
        'max_limit',
        mutable=True,
        default=1000,
        min=1,
        help='Maximum number of items on one page of a list. Also the '
        'default for requests without a limit.',
    ),
    cfg.IntOpt(
        'max_request_body_size',
        default=65536,
        min=1024,
        help='Maximum size of a request body, in bytes. Under uWSGI, '
        'http-manage-expect should have the same value.',
    ),
    cfg.FloatOpt(
        'body_timeout_s',
        mutable=True,
        default=10.0,
        min=1.0,
        max=300.0,
        help='Maximum time for the body of a request to arrive, in seconds.',
    ),
    cfg.IntOpt(
        'max_waiting_bodies',
        default=4,
        min=1,
        help='Maximum number of requests of one process that wait for the '
        'rest of their body at the same time. Further requests with a '
        'body are answered with 503 meanwhile. Must be less than the '
        'number of threads of the process, so that threads remain for '
        'requests without a body.',
    ),
    cfg.FloatOpt(
        'host_down_after_s',
        mutable=True,
        default=30.0,
        min=1.0,
        help='A host counts as down when its last report is older than this, '
        'in seconds.',
    ),
    cfg.IntOpt(
        'retry_after_s',
        mutable=True,
        default=5,
        min=1,
        help='Value of the Retry-After header while the database or keystone '
        'is unavailable, in seconds. After a request to keystone has '
        'failed, no further one is sent for this time.',
    ),
    cfg.URIOpt(
        'public_endpoint',
        mutable=True,
        schemes=['http', 'https'],
        help='Base URL of the links in responses. Without it the links are '
        'paths, except for requests whose Host header is in '
        'trusted_hosts or that come through a proxy whose headers are '
        'parsed ([oslo_middleware] enable_proxy_headers_parsing).',
    ),
    cfg.ListOpt(
        'trusted_hosts',
        mutable=True,
        default=['localhost', '127.0.0.1', '::1'],
        help='Names and addresses that links may contain when a request has '
        'them in its Host header; .example.org means all names below it.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(GROUP, OPTS)]
