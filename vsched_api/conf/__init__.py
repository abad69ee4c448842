# SPDX-License-Identifier: Apache-2.0

"""Options of the API and the collector.

There are no global options: :func:`register_opts` adds every group to the
ConfigOpts that it is given, and that is passed to all users. Groups are copied
in depth for it: the copy of oslo.config shares the values with the original,
and so with every other ConfigOpts.
"""

from oslo_config import cfg

from vsched_api.conf import api
from vsched_api.conf import bus
from vsched_api.conf import collector
from vsched_api.conf import cors
from vsched_api.conf import database
from vsched_api.conf import metrics
from vsched_api.conf import openstack
from vsched_api.conf import snapshot

_GROUPS = (api, bus, collector, cors, database, metrics, openstack, snapshot)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register all options with ``conf``; may be repeated."""
    for group in _GROUPS:
        group.register_opts(conf)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Return the groups with their options, for oslo-config-generator."""
    return [pair for group in _GROUPS for pair in group.list_opts()]
