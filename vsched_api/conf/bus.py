# SPDX-License-Identifier: Apache-2.0

"""Options of who may speak on the bus, as collectors check it."""

import copy

from oslo_config import cfg

from vsched_lib.contract import bus
from vsched_lib.contract import signing

OPTS: list[cfg.Opt] = [
    cfg.StrOpt(
        'master_key_file',
        help='File with the master keys that the keys of all hosts are made '
        'of, one a line, the newest first. "vsched-manage master-key '
        'create" makes it. Only its owner, who runs the collector, may '
        'have access to it. It is read again when it changes.',
    ),
    cfg.IntOpt(
        'key_overlap_s',
        default=604_800,
        min=0,
        help='How long the key that a host had before its newest one is '
        'accepted, in seconds. Once the host has used its newest one '
        'the one before is refused.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add the group and its options to ``conf``."""
    conf.register_group(copy.deepcopy(bus.GROUP))
    conf.register_opts([bus.AUTHENTICATION, *OPTS], group=bus.GROUP.name)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """The group with its options."""
    return [(bus.GROUP, [bus.AUTHENTICATION, *OPTS])]


def master_keys(conf: cfg.ConfigOpts) -> signing.KeyFile:
    """The file of master keys.

    :raises signing.KeyFileError: when it is not set.
    """
    path = conf.bus.master_key_file
    if not path:
        raise signing.KeyFileError(
            '[bus] master_key_file is not set: make one with "vsched-manage '
            'master-key create FILE"'
        )
    return signing.KeyFile(path, signing.parse_masters)
