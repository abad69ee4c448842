# SPDX-License-Identifier: Apache-2.0

"""Options of the REST service."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup('api', title='The REST service')

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'Requests carry a token that keystone confirms.'),
            (
                'noauth',
                'Every request counts as one of an administrator. '
                'For a single host and for tests only.',
            ),
        ],
        help='How a request proves who it is from.',
    ),
    cfg.IntOpt(
        'max_limit',
        mutable=True,
        default=1000,
        min=1,
        help='The most items that one page of a list holds, and how many it '
        'holds when the request names no limit.',
    ),
    cfg.IntOpt(
        'max_request_body_size',
        default=65536,
        min=1024,
        help='The longest request body that is read, in bytes. Under uWSGI, '
        'http-manage-expect should say the same.',
    ),
    cfg.FloatOpt(
        'body_timeout_s',
        mutable=True,
        default=10.0,
        min=1.0,
        max=300.0,
        help='How long the body of a request may take to arrive, in seconds.',
    ),
    cfg.IntOpt(
        'max_waiting_bodies',
        default=4,
        min=1,
        help='How many requests of one process may wait for the rest of '
        'their body at the same time; others that carry a body are '
        'answered 503 meanwhile. Fewer than the threads of the process, '
        'so that requests without a body find one.',
    ),
    cfg.FloatOpt(
        'host_down_after_s',
        mutable=True,
        default=30.0,
        min=1.0,
        help='A host whose last report is older than this counts as down, '
        'in seconds.',
    ),
    cfg.IntOpt(
        'retry_after_s',
        mutable=True,
        default=5,
        min=1,
        help='What the Retry-After header says while the database or '
        'keystone is away, in seconds. For as long, keystone is not '
        'asked again after it did not answer.',
    ),
    cfg.URIOpt(
        'public_endpoint',
        mutable=True,
        schemes=['http', 'https'],
        help='Start of the links in answers. Without it they are paths, '
        'unless the request was for one of trusted_hosts or came '
        'through a proxy whose headers are read '
        '([oslo_middleware] enable_proxy_headers_parsing).',
    ),
    cfg.ListOpt(
        'trusted_hosts',
        mutable=True,
        default=['localhost', '127.0.0.1', '::1'],
        help='Names and addresses that may appear in links when a request '
        'names them in its Host header; .example.org means all names '
        'below it.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(GROUP, OPTS)]
