# SPDX-License-Identifier: Apache-2.0

"""Options of the API and the collector.

Nothing here is global: :func:`register_opts` adds every group to the
ConfigOpts it is given, and everything below gets that passed in. A group
is copied for it in depth: oslo.config's own copy shares the values with the
original, and so with every other ConfigOpts.
"""

from oslo_config import cfg

from vsched_api.conf import api
from vsched_api.conf import bus
from vsched_api.conf import collector
from vsched_api.conf import database
from vsched_api.conf import openstack
from vsched_api.conf import snapshot

_GROUPS = (api, bus, collector, database, openstack, snapshot)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add every option of ours to ``conf``; may be repeated."""
    for group in _GROUPS:
        group.register_opts(conf)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Every group with its options, for oslo-config-generator."""
    return [pair for group in _GROUPS for pair in group.list_opts()]
