# SPDX-License-Identifier: Apache-2.0

"""Options of [metrics]: what Prometheus reads of the REST service."""

import copy

from oslo_config import cfg

from vsched_lib.contract import signing

GROUP = cfg.OptGroup('metrics', title='Metrics of the REST service')

OPTS: list[cfg.Opt] = [
    cfg.BoolOpt(
        'per_instance',
        mutable=True,
        default=True,
        help='Whether GET /metrics has the figures of each instance: five '
        'series for one with a reservation, three for one without.',
    ),
    cfg.IntOpt(
        'max_instances',
        mutable=True,
        default=10_000,
        min=1,
        max=1_000_000,
        help='Maximum number of instances in GET /metrics. '
        'vsched_metrics_instances_omitted is the number of those that were '
        'left out.',
    ),
    cfg.StrOpt(
        'token_file',
        help='File with a token with which GET /metrics can be read instead '
        'of with a token of keystone: at least 32 printable ASCII characters '
        'without blanks, in one line. Requests carry it as "Authorization: '
        'Bearer TOKEN", as Prometheus does with '
        'authorization.credentials_file. The file must be accessible to its '
        'owner only, the user that runs the service. It is read again when '
        'it changes. A second line is accepted as well, so that the token '
        'can be replaced without a gap.',
    ),
]

#: How short a token may be, and how long, in characters.
_MIN_CHARS = 32
_MAX_CHARS = 512


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(GROUP, OPTS)]


def token_file(conf: cfg.ConfigOpts) -> signing.KeyFile | None:
    """Return the file of tokens, which is not read yet; None without one."""
    path = conf.metrics.token_file
    return signing.KeyFile(path, parse_tokens) if path else None


def parse_tokens(text: str) -> tuple[str, ...]:
    """Return the tokens of a file.

    :raises ValueError: when there is none, more than two, or one that is
        invalid. The text has no part of a token.
    """
    tokens = tuple(text.split('\n'))
    if tokens[-1] == '':
        tokens = tokens[:-1]
    if not 1 <= len(tokens) <= 2:
        raise ValueError('it has %d lines, not one or two' % len(tokens))
    for token in tokens:
        if not _MIN_CHARS <= len(token) <= _MAX_CHARS or not all(
            '!' <= character <= '~' for character in token
        ):
            raise ValueError(
                'a token has %d to %d printable ASCII characters and no '
                'blank' % (_MIN_CHARS, _MAX_CHARS)
            )
    return tokens
