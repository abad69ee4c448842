# SPDX-License-Identifier: Apache-2.0

"""A thousand agents, one collector, one worker of the API."""

import contextlib
import statistics
import threading
import time
import typing as ty

import requests

from benchmarks import fleet_meter
from benchmarks import fleet_simulation
from benchmarks import frame
from vsched_standalone.tests import deployment
from vsched_standalone.tests import private_services

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'A thousand agents report to one collector',
    'A thousand simulated agents, in two processes, report over a RabbitMQ '
    'node to one collector, a service of several processes, which stores in '
    'a PostgreSQL server; both '
    "servers are the benchmark's own, with their defaults, on the same "
    "machine. The agents' messages are those of oslo.messaging, sent without "
    'its client, which has the CPUs of a thousand hosts elsewhere. Requests '
    'and replies are signed. Each agent reports every 5 s, '
    'the default, what ten instances and the host used in each of the '
    'seconds: 200 reports and 10 000 samples a second. A report is sent when '
    'it is due, whether or not earlier ones were answered; its latency '
    'counts from that moment until the answer, which comes when it is on the '
    'disk. All agents start within one interval, as after a power cut: their '
    'first reports are full ones, with the host and its instances. A report '
    'that is not answered in 10 s is sent again. Meanwhile one worker of the '
    'API, served by uWSGI, answers a '
    'scheduler that asks for the snapshot every 2 s, and each second a list '
    'of hosts and one of reservations.\n\n'
    'Memory is the resident set of the processes of collector and API. It '
    'grows while caches fill; growth is the median of the last fifth of the '
    'run less that of the second fifth.\n\n'
    '``by minute`` shows the CPU time of each part in CPUs, and the part of '
    'the time in which some task of the machine waited for a CPU or for its '
    'disk (pressure stall information), in percent. The log of the database '
    'grows faster while one of its checkpoints goes on, the first of which '
    'begins five minutes after its start.',
    (),
    {
        'agents': 'simulated agents',
        'report_p50_ms': 'median latency of a report, in ms',
        'report_p99_ms': 'p99 of the latency of a report, in ms',
        'steady_p99_ms': 'the same without the first minute, in ms',
        'api_p99_ms': 'p99 of the latency of a request to the API, in ms',
        'failed': 'reports and requests without a good answer',
        'timeouts': 'calls that were not answered in 10 s, and repeated',
        'rss_growth_mib': 'growth of the resident set, of collector or API, '
        'whichever grew more, in MiB',
    },
    targets=(
        frame.at_least('agents', 1000, '', 'issue 16'),
        frame.at_most(
            'report_p99_ms', 1000, 'ms', 'a tenth of the time-out of a report'
        ),
        frame.at_most('failed', 0, '', 'nothing is lost'),
        frame.at_most('rss_growth_mib', 10, 'MiB', 'issue 16: flat'),
    ),
)

AGENTS = 1000
PROCESSES = 2
INSTANCES = 10
INTERVAL_S = 5.0
#: When all agents have begun, and what waited then is answered.
START_S = 60.0
PARTS = ('collector', 'api')


class _Watch(threading.Thread):
    """Asks the API, and reads how much memory the services use."""

    def __init__(
        self, services: deployment.Deployment, meter: fleet_meter.Meter
    ) -> None:
        super().__init__(daemon=True)
        self._meter = meter
        self._services = services
        self._stopping = threading.Event()
        self._problem: Exception | None = None
        self.latencies_ms: list[float] = []
        self.failed = 0
        self.rss_mib: dict[str, list[float]] = {name: [] for name in PARTS}

    def end(self) -> None:
        """End; returns when it has."""
        self._stopping.set()
        self.join()

    def stop(self) -> None:
        """End, and raise what has ended the thread before."""
        self.end()
        if self._problem is not None:
            raise self._problem

    def run(self) -> None:
        try:
            self._watch()
        except Exception as problem:
            self._problem = problem

    def _watch(self) -> None:
        number, etag = 0, ''
        while not self._stopping.wait(1):
            number += 1
            if number % 60 == 0:
                self._meter.read()
            for name in PARTS:
                self.rss_mib[name].append(_rss_mib(self._services.pid(name)))
            self._ask('/v1/hosts?limit=100')
            self._ask('/v1/reservations?limit=100')
            if number % 2 == 0:
                reply = self._ask('/v1/snapshot', etag)
                etag = etag if reply is None else reply.headers.get('ETag', '')

    def _ask(self, path: str, etag: str = '') -> requests.Response | None:
        began = time.monotonic()
        try:
            reply = self._services.request(
                'GET', path, headers={'If-None-Match': etag} if etag else {}
            )
        except requests.RequestException:
            self.failed += 1
            return None
        self.latencies_ms.append(round(1000 * (time.monotonic() - began), 2))
        self.failed += reply.status_code not in (200, 304)
        return reply


def _rss_mib(pid: int) -> float:
    """The resident set of a process and its children."""
    kib = 0
    for one in (pid, *_children(pid)):
        with open(
            '/proc/%d/status' % one, encoding='ascii', errors='replace'
        ) as file:
            kib += sum(
                int(line.split()[1])
                for line in file
                if line.startswith('VmRSS:')
            )
    return kib / 1024


def _children(pid: int) -> list[int]:
    with open(
        '/proc/%d/task/%d/children' % (pid, pid), encoding='ascii'
    ) as file:
        return [int(one) for one in file.read().split()]


def run(quick: bool) -> frame.Run:
    """One run."""
    seconds = 90.0 if quick else 600.0
    with (
        private_services.Rabbit() as broker,
        private_services.Postgres() as database,
        deployment.Deployment(
            broker.transport_url, database.connection, parts=PARTS
        ) as services,
        contextlib.ExitStack() as stack,
    ):
        agents = stack.enter_context(
            fleet_simulation.Agents(
                broker.transport_url,
                fleet_simulation.issue_keys(services, AGENTS),
                fleet_simulation.Size(
                    AGENTS, PROCESSES, INSTANCES, INTERVAL_S, seconds
                ),
            )
        )
        meter = fleet_meter.Meter(
            {
                'collector': (services.pid('collector'),),
                'api': (services.pid('api'),),
                'agents': agents.pids,
                'broker': (broker.pid,),
                'database': (database.pid,),
            },
            database.connection,
        )
        watch = _Watch(services, meter)
        watch.start()
        stack.callback(watch.end)
        found = agents.wait()
        watch.stop()
    latencies = found.latencies_ms()
    steady = found.latencies_ms(START_S)
    rss = {name: _fifths(values) for name, values in watch.rss_mib.items()}
    failed = found.failed + watch.failed
    yield frame.Variant(
        'fleet',
        {
            'reports': len(latencies),
            'failed': failed,
            'problems': found.problems,
            'report_ms': fleet_simulation.quantiles(latencies),
            'api_requests': len(watch.latencies_ms),
            'api_ms': fleet_simulation.quantiles(sorted(watch.latencies_ms)),
            'rss_mib': rss,
        },
    )
    yield frame.Variant(
        'by minute',
        {'report_p99_ms': _by_minute(found.reports), **meter.minutes},
    )
    return {
        'agents': AGENTS,
        'report_p50_ms': fleet_simulation.quantile(latencies, 0.5),
        'report_p99_ms': fleet_simulation.quantile(latencies, 0.99),
        'steady_p99_ms': fleet_simulation.quantile(steady, 0.99),
        'api_p99_ms': fleet_simulation.quantile(
            sorted(watch.latencies_ms), 0.99
        ),
        'failed': failed,
        'timeouts': found.timeouts,
        'rss_growth_mib': round(
            max(values[-1] - values[1] for values in rss.values()), 1
        ),
    }


def _by_minute(reports: ty.Sequence[tuple[float, float]]) -> list[float]:
    """The p99 of the latency of the reports that were due in each minute."""
    minutes: dict[int, list[float]] = {}
    for at, ms in reports:
        minutes.setdefault(int(at // 60), []).append(ms)
    return [
        fleet_simulation.quantile(sorted(minutes[one]), 0.99)
        for one in sorted(minutes)
    ]


def _fifths(values: ty.Sequence[float]) -> list[float]:
    """The median of each fifth of the run."""
    length = len(values) // 5
    return [
        round(
            statistics.median(values[part * length : (part + 1) * length]), 1
        )
        for part in range(5)
    ]


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Memory over the run."""
    axes = figure.add_subplot()
    for name, values in record.variants['fleet']['rss_mib'].items():
        axes.plot(
            [20 * (part + 1) for part in range(5)],
            values,
            marker='o',
            label=name,
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel('% of the run')
    axes.set_ylabel('resident set, MiB')
    axes.legend()
