# SPDX-License-Identifier: Apache-2.0

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
    'cli',
    'collector_workers',
    'cycles',
    'drill',
    'filters',
    'fleet',
    'house',
    'ingest',
    'interference',
    'io_default',
    'irmos',
    'metrics',
    'node',
    'openapi',
    'outage_filters',
    'outages',
    'overhead',
    'page',
    'quickstart',
    'shaping',
    'snapshot',
    'streaming',
    'two_tier',
    'usage_top',
    'work_conserving',
    'xen',
)


def load(name: str) -> frame.Benchmark:
    """One benchmark.

    :param name: one of :data:`NAMES`.
    :raises KeyError: when there is none of that name.
    """
    if name not in NAMES:
        raise KeyError(name)
    return ty.cast(
        frame.Benchmark, importlib.import_module('benchmarks.' + name)
    )
