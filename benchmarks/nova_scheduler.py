# SPDX-License-Identifier: Apache-2.0

"""A real scheduler with placement and computes, in one process.

With what Nova's own functional tests start: API, conductor, scheduler and
placement on SQLite; the computes have a fake driver. A process of its own:
it must import Nova's tests before anything else of Nova::

    python -m benchmarks.nova_scheduler COMPUTES REQUESTS
"""

# First of all, see above; it chooses native threads, as Nova 34 does.
import os

os.environ['OS_NOVA_DISABLE_EVENTLET_PATCHING'] = '1'
from nova.tests import functional  # noqa: F401

from collections.abc import Callable
import json
import statistics
import sys
import time
import typing as ty
from unittest import mock
import uuid

from nova import context
from nova.tests.functional import integrated_helpers

from benchmarks import nova_hosts
from nova_filters import cache
from nova_filters import filters
from nova_filters import hosts
from nova_filters import process
from nova_filters import weighers

_NOVA = [
    'ComputeFilter',
    'ComputeCapabilitiesFilter',
    'ImagePropertiesFilter',
    'ServerGroupAntiAffinityFilter',
    'ServerGroupAffinityFilter',
    'NUMATopologyFilter',
]


class _Scene(integrated_helpers.ProviderUsageBaseTestCase):
    compute_driver = 'fake.MediumFakeDriver'

    def setUp(self) -> None:
        self.flags(
            api_paste_config=os.path.join(
                sys.prefix, 'etc', 'nova', 'api-paste.ini'
            ),
            group='wsgi',
        )
        self.flags(
            available_filters=[
                'nova.scheduler.filters.all_filters',
                'nova_filters.filters.all_filters',
            ],
            enabled_filters=[
                *_NOVA,
                *(kind.__name__ for kind in filters.all_filters()),
            ],
            weight_classes=[
                'nova.scheduler.weights.all_weighers',
                'nova_filters.weighers.all_weighers',
            ],
            group='filter_scheduler',
        )
        super().setUp()

    def runTest(self) -> None:
        """Nothing: it is a scene and no test."""


class _Clock:
    """Adds up the time spent in methods."""

    def __init__(self) -> None:
        self.spent_s = 0.0

    def around(self, act: Callable[..., ty.Any]) -> Callable[..., ty.Any]:
        """The same, timed."""

        def timed(*arguments: ty.Any) -> ty.Any:
            began = time.perf_counter()
            found = act(*arguments)
            self.spent_s += time.perf_counter() - began
            return found

        return timed


def measure(computes: int, requests: int) -> dict[str, ty.Any]:
    """What ours take of select_destinations.

    :param computes: how many there are.
    :param requests: how many are made, one instance each.
    """
    scene = _Scene()
    scene.setUp()
    try:
        for number in range(computes):
            scene.start_service('compute', host='node%05d' % number)
        known = cache.Known(
            hosts.NOTHING.after(nova_hosts.told(computes), 'tag'),
            time.monotonic(),
        )
        shared = mock.Mock()
        shared.known.return_value = known
        with mock.patch.object(
            process, 'shared', autospec=True, return_value=shared
        ):
            return _measure(
                scene.scheduler_service.manager, requests, computes
            )
    finally:
        scene.doCleanups()


def _measure(
    manager: ty.Any, requests: int, computes: int
) -> dict[str, ty.Any]:
    whole_ms, ours_ms = [], []
    clock = _Clock()
    with (
        mock.patch.multiple(
            filters._Filter,
            filter_all=_method(clock, filters._Filter.filter_all),
        ),
        mock.patch.multiple(
            weighers._Weigher,
            weigh_objects=_method(clock, weighers._Weigher.weigh_objects),
            weight_multiplier=_method(
                clock, weighers._Weigher.weight_multiplier
            ),
        ),
    ):
        for number in range(requests + 1):
            spec = nova_hosts.request()
            spec.numa_topology = None
            del spec.flavor.extra_specs['aggregate_instance_extra_specs:ssd']
            asked = context.get_admin_context()
            instance = str(uuid.uuid4())
            clock.spent_s = 0.0
            began = time.perf_counter()
            selected = manager.select_destinations(
                asked,
                spec_obj=spec,
                instance_uuids=[instance],
                return_objects=True,
                return_alternates=True,
            )
            took_s = time.perf_counter() - began
            assert len(selected) == 1
            manager.placement_client.delete_allocation_for_instance(
                asked, instance, force=True
            )
            # The first one fills what others find.
            if number:
                whole_ms.append(took_s * 1e3)
                ours_ms.append(clock.spent_s * 1e3)
    added = [
        100 * ours / (whole - ours)
        for whole, ours in zip(whole_ms, ours_ms, strict=True)
    ]
    return {
        'computes': computes,
        'requests': requests,
        'select_ms': round(statistics.median(whole_ms), 2),
        'ours_ms': round(statistics.median(ours_ms), 3),
        'added_pct': round(statistics.median(added), 3),
    }


def _method(
    clock: _Clock, act: Callable[..., ty.Any]
) -> Callable[..., ty.Any]:
    timed = clock.around(act)

    def method(self: ty.Any, *arguments: ty.Any) -> ty.Any:
        return timed(self, *arguments)

    return method


if __name__ == '__main__':
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
