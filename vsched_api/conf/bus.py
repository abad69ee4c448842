# SPDX-License-Identifier: Apache-2.0

"""Options of [bus] for collectors: their keys."""

import copy

from oslo_config import cfg

from vsched_lib.contract import bus
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys

# How long a master key file that was replaced is used still. A collector
# needs the keys for each of hundreds of requests a second.
_INTERVAL_S = 1.0

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        'master_key_file',
        help='File with the master keys from which the keys of all hosts are '
        'derived, one key in a line, the newest first. It is created by '
        '"vsched-manage master-key create". It must be accessible to '
        'its owner only, the user that runs the collector. It is read '
        'again when it changes.',
    ),
    cfg.IntOpt(
        'key_overlap_s',
        default=604_800,
        min=0,
        help='For how long the previous key of a host stays valid after a '
        'new one was issued, in seconds. It is refused as soon as the '
        'host has used the new one.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of this group."""
    conf.register_group(copy.deepcopy(bus.GROUP))
    conf.register_opts([bus.AUTHENTICATION, *OPTS], group=bus.GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the group with its options, for oslo-config-generator."""
    return [(bus.GROUP, [bus.AUTHENTICATION, *OPTS])]


def master_keys(conf: cfg.ConfigOpts) -> signing.KeyFile:
    """Return the file of master keys.

    :raises signing.KeyFileError: when it is not set.
    """
    path = conf.bus.master_key_file
    if not path:
        raise signing.KeyFileError(
            '[bus] master_key_file is not set: make one with "vsched-manage '
            'master-key create FILE"'
        )
    return signing.KeyFile(path, signing_keys.parse_masters, _INTERVAL_S)
