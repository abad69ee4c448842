# SPDX-License-Identifier: Apache-2.0

"""Every metric that this project exposes, by where it is exposed."""

from collections.abc import Mapping

from vsched_api.metric_families import api
from vsched_api.metric_families import collector
from vsched_api.metric_families import fleet
from vsched_lib.metrics import agent
from vsched_lib.metrics import family

#: By the name of a section of the documentation.
SECTIONS: Mapping[str, tuple[family.Family, ...]] = {
    'fleet': fleet.FLEET,
    'instances': fleet.INSTANCES,
    'api': api.ALL,
    'collector': collector.ALL,
    'agent': agent.ALL,
}

ALL = tuple(one for section in SECTIONS.values() for one in section)
