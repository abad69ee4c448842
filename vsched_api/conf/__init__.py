# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Options of the API and the collector.

Nothing here is global: :func:`register_opts` adds every group to the
ConfigOpts it is given, and everything below gets that passed in. A group
is copied for it in depth: oslo.config's own copy shares the values with the
original, and so with every other ConfigOpts.
"""

from oslo_config import cfg

from vsched_api.conf import api
from vsched_api.conf import collector
from vsched_api.conf import database
from vsched_api.conf import openstack
from vsched_api.conf import snapshot

_GROUPS = (api, collector, database, openstack, snapshot)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Add every option of ours to ``conf``; may be repeated."""
    for group in _GROUPS:
        group.register_opts(conf)


def list_opts() -> list[tuple[cfg.OptGroup, list[cfg.Opt]]]:
    """Every group with its options, for oslo-config-generator."""
    return [pair for group in _GROUPS for pair in group.list_opts()]
