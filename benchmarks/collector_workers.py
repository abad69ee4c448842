# SPDX-License-Identifier: Apache-2.0

"""One and two processes that receive reports, compared in one run."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import random
import statistics
import time
import typing as ty

from benchmarks import fleet_simulation
from benchmarks import frame
from benchmarks import process_family
from vsched_standalone.tests import deployment
from vsched_standalone.tests import private_services

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

#: ``[collector] workers``.
WORKERS = (1, 2)
AGENTS = 1000
PROCESSES = 2
INSTANCES = 10
INTERVAL_S = 5.0
#: For how long agents report, and how much of it does not count: first reports
#: are full ones, and caches fill.
LENGTH_S, QUICK_LENGTH_S = 90.0, 50.0
START_S = 30.0
REPEATS, QUICK_REPEATS = 4, 1
#: Each number of workers comes first in two rounds.
SEED = 3

ABOUT = frame.About(
    'Reports by the number of processes that receive them',
    'A thousand simulated agents report to a collector whose ``[collector] '
    'workers`` are 1 and 2, as in ``fleet``: every 5 s, with ten instances, '
    'over a RabbitMQ node, into a PostgreSQL server. A run has four rounds of '
    'both numbers, in an order that is shuffled, each with a new broker and a '
    'new database. Agents, broker, database and collector share the CPUs of '
    'one machine, so that the result holds for that number of CPUs; the page '
    'has the CPU time of each.\n\n'
    'The first 30 s, with the full reports of all agents, do not count. The '
    'collector is all of its processes, also the one of the periodic tasks. '
    'Its memory is the proportional set size at the end, in which each page '
    'that processes share counts once. Figures are medians of the rounds.',
    (),
    {
        'agents': 'simulated agents',
        **{
            name % workers: text % workers
            for workers in WORKERS
            for name, text in (
                (
                    'p50_ms_%d',
                    'median latency of a report with workers = %d, in ms',
                ),
                (
                    'p99_ms_%d',
                    'p99 of the latency of a report with workers = %d, in ms',
                ),
                (
                    'collector_cpus_%d',
                    'CPU time of the collector with workers = %d, in CPUs',
                ),
                (
                    'collector_mib_%d',
                    'memory of the collector with workers = %d, in MiB',
                ),
            )
        },
        'failed': 'reports without a good answer',
        'timeouts': 'calls that were not answered in 10 s, and repeated',
    },
    targets=(
        frame.at_least('agents', 1000, '', 'issue 16'),
        frame.at_most(
            'p99_ms_2', 1000, 'ms', 'a tenth of the time-out of a report'
        ),
        frame.at_most('failed', 0, '', 'nothing is lost'),
    ),
)

#: What the metrics have of each number of workers.
_COMPARED = ('p50_ms', 'p99_ms', 'collector_cpus', 'collector_mib')


@dataclasses.dataclass(frozen=True, slots=True)
class Round:
    """What one number of workers gave, once.

    :param figures: by name.
    """

    workers: int
    number: int
    figures: Mapping[str, ty.Any]


def plan(repeats: int) -> Iterator[tuple[int, int]]:
    """Return the number of each round with each number of workers."""
    order = random.Random(SEED)
    for number in range(repeats):
        for workers in order.sample(WORKERS, len(WORKERS)):
            yield number, workers


def run(quick: bool) -> frame.Run:
    """All numbers of workers in each round."""
    size = fleet_simulation.Size(
        AGENTS,
        PROCESSES,
        INSTANCES,
        INTERVAL_S,
        QUICK_LENGTH_S if quick else LENGTH_S,
    )
    rounds = []
    for number, workers in plan(QUICK_REPEATS if quick else REPEATS):
        found = Round(workers, number, measure(workers, size))
        rounds.append(found)
        yield frame.Variant(name(found), found.figures)
    return metrics(rounds)


def name(found: Round) -> str:
    """Return the name of a round's variant."""
    return 'workers = %d, round %d' % (found.workers, found.number + 1)


def measure(
    workers: int, size: fleet_simulation.Size, start_s: float = START_S
) -> dict[str, ty.Any]:
    """Let agents report to a new collector.

    :param workers: its number of processes that receive reports.
    :param start_s: what does not count, in seconds.
    :returns: the figures.
    """
    with (
        private_services.Rabbit() as broker,
        private_services.Postgres() as database,
        deployment.Deployment(
            broker.transport_url,
            database.connection,
            options={'collector': {'workers': str(workers)}},
            parts=('collector',),
        ) as services,
    ):
        master = fleet_simulation.issue_keys(services, size.agents)
        with fleet_simulation.Agents(
            broker.transport_url, master, size
        ) as agents:
            parts = {
                'collector': (services.pid('collector'),),
                'agents': agents.pids,
                'broker': (broker.pid,),
                'database': (database.pid,),
            }
            time.sleep(start_s)
            before, began_s = _use(parts), time.monotonic()
            time.sleep(size.seconds - start_s)
            after, took_s = _use(parts), time.monotonic() - began_s
            found = agents.wait()
    latencies_ms = found.latencies_ms(start_s)
    return {
        'reports': len(latencies_ms),
        'failed': found.failed,
        'timeouts': found.timeouts,
        'problems': found.problems,
        **{
            quantile + '_ms': value
            for quantile, value in fleet_simulation.quantiles(
                latencies_ms
            ).items()
        },
        **{
            part + '_cpus': round(
                (after[part].cpu_s - before[part].cpu_s) / took_s, 3
            )
            for part in parts
        },
        'collector_mib': round(after['collector'].pss_mib, 1),
        'processes': len(after['collector'].pids),
    }


def _use(
    parts: Mapping[str, tuple[int, ...]],
) -> dict[str, process_family.Use]:
    return {
        part: process_family.use(
            tuple(
                one
                for pid in pids
                for one in (pid, *process_family.descendants(pid))
            )
        )
        for part, pids in parts.items()
    }


def metrics(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the headline figures: medians, and sums of what failed."""
    return {
        'agents': AGENTS,
        **{
            '%s_%d' % (figure, workers): round(
                statistics.median(
                    one.figures[figure]
                    for one in rounds
                    if one.workers == workers
                ),
                3,
            )
            for workers in WORKERS
            for figure in _COMPARED
        },
        **{
            figure: sum(one.figures[figure] for one in rounds)
            for figure in ('failed', 'timeouts')
        },
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Latencies of each round."""
    axes = figure.add_subplot()
    for quantile, marker in (('p50_ms', 'o'), ('p99_ms', '^')):
        points = [
            (workers, figures[quantile])
            for workers in WORKERS
            for variant, figures in record.variants.items()
            if variant.startswith('workers = %d,' % workers)
        ]
        axes.plot(
            *zip(*points, strict=True),
            linestyle='',
            marker=marker,
            label=quantile.removesuffix('_ms'),
        )
    axes.set_yscale('log')
    axes.set_xticks(WORKERS)
    axes.set_xlim(WORKERS[0] - 0.5, WORKERS[-1] + 0.5)
    axes.set_xlabel('workers')
    axes.set_ylabel('latency of a report, ms')
    axes.legend()
