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

"""Every benchmark by name; a new one adds its line here."""

import importlib
import typing as ty

from benchmarks import frame

NAMES = (
    'agent_cost',
    'alert',
    'alert_looks',
    'alert_margins',
    'balloon',
    'balloon_hour',
    'balloon_offline',
    'boots',
    'charging',
    'cycles',
    'filters',
    'ingest',
    'interference',
    'outage_filters',
    'outages',
    'overhead',
    'quickstart',
    'snapshot',
)


def load(name: str) -> frame.Benchmark:
    """One benchmark.

    :param name: one of :data:`NAMES`.
    :raises KeyError: when there is none of that name.
    """
    if name not in NAMES:
        raise KeyError(name)
    return ty.cast(
        frame.Benchmark, importlib.import_module('benchmarks.' + name))
