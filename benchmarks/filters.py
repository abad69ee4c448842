# SPDX-License-Identifier: Apache-2.0

"""What the filters and weighers cost nova-scheduler."""

from collections.abc import Callable
from collections.abc import Iterator
import functools
import gc
import itertools
import json
import statistics
import subprocess
import sys
import time
import typing as ty
from unittest import mock

from benchmarks import frame
from benchmarks import nova_hosts

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'What filters and weighers cost nova-scheduler',
    'Each filter and weigher is given hosts as nova-scheduler makes them '
    "(Nova's own ``HostState`` with NUMA cells, an aggregate and 20 "
    'instances), and a flavor with a reservation, a bound on errors, charged '
    'I/O and a workload class. One host in ten is full, one errs too much, '
    'one was never measured. The time of ``filter_all`` or '
    '``weigh_objects`` is divided by the hosts: the median of several '
    "requests. The log is written at level INFO. Nova's own stand beside "
    'ours, in the same process and with the same hosts.\n\n'
    "A filter's figure is the worse one: that of the first request for a "
    'flavor that a worker ever gets, with no other filter before it, when '
    'nothing is known yet of what the flavor takes of the hosts. *Again* is '
    'every later one, which finds that; so do weighers, and filters that '
    'come second.\n\n'
    '``select_destinations`` is the whole of it: a scheduler with real '
    'placement, API and conductor, on SQLite in one process, and fake '
    'computes. What our three filters and four weighers take of it is '
    'measured inside of it.',
    (),
    {
        'us_per_host_reservation': 'µs for each host, first',
        'us_per_host_error': 'µs for each host, first',
        'us_per_host_overhead': 'µs for each host, first',
        'us_per_host_reservation_again': 'µs for each host, again',
        'us_per_host_error_again': 'µs for each host, again',
        'us_per_host_overhead_again': 'µs for each host, again',
        'us_per_host_headroom_weigher': 'µs for each host',
        'us_per_host_error_weigher': 'µs for each host',
        'us_per_host_overhead_weigher': 'µs for each host',
        'us_per_host_interference_weigher': 'µs for each host',
        'select_added_pct': 'percent that ours add to select_destinations',
    },
    targets=(
        frame.at_most('us_per_host_reservation', 5, 'µs', 'issue 5'),
        frame.at_most('us_per_host_error', 5, 'µs', 'issue 5'),
        frame.at_most('us_per_host_overhead', 5, 'µs', 'issue 5'),
        frame.at_most('select_added_pct', 3, '%', 'issue 5'),
    ),
)

SIZES = (100, 1_000, 10_000)
_OURS = {
    'VschedReservationFilter': 'reservation',
    'VschedAllocationErrorFilter': 'error',
    'VschedIoOverheadFilter': 'overhead',
    'VschedHeadroomWeigher': 'headroom_weigher',
    'VschedAllocationErrorWeigher': 'error_weigher',
    'VschedIoOverheadWeigher': 'overhead_weigher',
    'VschedInterferenceWeigher': 'interference_weigher',
}


def run(quick: bool) -> frame.Run:
    """One number of hosts after the other, then a whole scheduler."""
    nova_hosts.prepare()
    worst: dict[str, float] = {}
    with frame.alone(), nova_hosts.logging_as_nova():
        for size in SIZES[:2] if quick else SIZES:
            found = _measure(size, 3 if quick else 9)
            yield frame.Variant('%d hosts' % size, found)
            for metric, us_per_host in _metrics(found).items():
                worst[metric] = max(worst.get(metric, 0.0), us_per_host)
        whole = _whole(8 if quick else 50, 5 if quick else 20)
        yield frame.Variant('select_destinations', whole)
    return {**worst, 'select_added_pct': whole['added_pct']}


def _metrics(found: dict[str, ty.Any]) -> dict[str, float]:
    """What is told of one number of hosts, ours only."""
    metrics = {}
    for name, metric in _OURS.items():
        again, first = (
            found['us_per_host'][name],
            found['us_per_host_first'].get(name),
        )
        if first is None:
            metrics['us_per_host_' + metric] = again
        else:
            metrics['us_per_host_' + metric] = max(first, again)
            metrics['us_per_host_%s_again' % metric] = again
    return metrics


def _whole(computes: int, requests: int) -> dict[str, ty.Any]:
    done = subprocess.run(
        (
            sys.executable,
            '-m',
            'benchmarks.nova_scheduler',
            str(computes),
            str(requests),
        ),
        cwd=frame.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])
    return ty.cast(dict[str, ty.Any], json.loads(done.stdout.splitlines()[-1]))


def _measure(size: int, repeats: int) -> dict[str, ty.Any]:
    from nova.conf import CONF
    from nova.scheduler.filters import aggregate_instance_extra_specs
    from nova.scheduler.filters import compute_filter
    from nova.scheduler.filters import numa_topology_filter
    from nova.scheduler.weights import cpu
    from nova.scheduler.weights import ram
    from nova import weights

    from nova_filters import cache
    from nova_filters import filters
    from nova_filters import hosts
    from nova_filters import process
    from nova_filters import weighers

    CONF([], project='nova', default_config_files=[])
    states = nova_hosts.states(size)
    spec = nova_hosts.request()
    known = cache.Known(
        hosts.NOTHING.after(
            nova_hosts.through_json(nova_hosts.told(size)), 'tag'
        ),
        time.monotonic(),
    )
    shared = mock.Mock()
    shared.known.return_value = known
    nova = (
        aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter,
        compute_filter.ComputeFilter,
        numa_topology_filter.NUMATopologyFilter,
    )
    weighed = [weights.WeighedObject(state, 0.0) for state in states]
    found: dict[str, float] = {}
    first: dict[str, float] = {}
    with mock.patch.object(
        process, 'shared', autospec=True, return_value=shared
    ):
        reservation = filters.VschedReservationFilter()
        flavors = _flavors()
        for kind in filters.all_filters():
            one = kind()
            first[kind.__name__] = _time(
                functools.partial(
                    _pass_next,
                    one,
                    states,
                    # Made before their time begins.
                    iter(list(itertools.islice(flavors, repeats))),
                ),
                repeats,
            )
        for kind in (*filters.all_filters(), *nova):
            one = kind()
            list(one.filter_all(states, spec))
            found[kind.__name__] = _time(
                functools.partial(_pass, one, states, spec),
                1 if kind is nova[-1] and size > 1_000 else repeats,
            )
        for kind in (*weighers.all_weighers(), cpu.CPUWeigher, ram.RAMWeigher):
            one = kind()
            one.weigh_objects(weighed, spec)
            found[kind.__name__] = _time(
                functools.partial(one.weigh_objects, weighed, spec), repeats
            )
        passed = len(list(reservation.filter_all(states, spec)))
    return {
        'hosts': size,
        'passed_reservation': passed,
        'us_per_host': {
            name: round(took_s * 1e6 / size, 3)
            for name, took_s in found.items()
        },
        'us_per_host_first': {
            name: round(took_s * 1e6 / size, 3)
            for name, took_s in first.items()
        },
    }


def _flavors() -> Iterator[ty.Any]:
    """Requests for flavors, each of which nobody has asked for before."""
    for pps in itertools.count(500):
        spec = nova_hosts.request()
        spec.flavor.extra_specs['vsched:net_rx_pps'] = str(pps)
        yield spec


def _pass(one: ty.Any, states: list[ty.Any], spec: ty.Any) -> list[ty.Any]:
    return list(one.filter_all(states, spec))


def _pass_next(
    one: ty.Any, states: list[ty.Any], specs: Iterator[ty.Any]
) -> list[ty.Any]:
    return list(one.filter_all(states, next(specs)))


def _time(act: Callable[[], object], repeats: int) -> float:
    took_s = []
    gc.collect()
    for _ in range(repeats):
        began = time.perf_counter()
        act()
        took_s.append(time.perf_counter() - began)
    return statistics.median(took_s)


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Microseconds for each host, ours and Nova's."""
    axes = figure.add_subplot()
    largest = [
        found for found in record.variants.values() if 'us_per_host' in found
    ][-1]
    names = sorted(
        largest['us_per_host'], key=largest['us_per_host'].__getitem__
    )
    axes.barh(
        names,
        [largest['us_per_host'][name] for name in names],
        color=['tab:blue' if name in _OURS else 'grey' for name in names],
    )
    axes.axvline(5, color='grey', linestyle='--', label='target')
    axes.set_xscale('log')
    axes.set_xlabel(
        "µs for each of %d hosts; ours blue, Nova's grey" % (largest['hosts'])
    )
    axes.legend()
    figure.tight_layout()
