# SPDX-License-Identifier: Apache-2.0

"""How many samples of usage one collector stores in a second."""

from concurrent import futures
import json
import threading
import time
import typing as ty
import uuid

from oslo_config import cfg
import sqlalchemy as sa

from benchmarks import frame
from benchmarks import stored_fleet
from vsched_api.collector import endpoint
from vsched_api.db import models
from vsched_api.operations import retention
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import database_options

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'How many samples one collector stores',
    "The collector's endpoint of the bus is given reports as they come "
    'off it, as JSON text: each says what 50 instances of one host used in '
    "a second, and what the host's CPUs did. Sixteen hosts send at the "
    'same time, each its next report once the last is stored. All of it '
    'happens in one Python process; the database is a server of its own on '
    'the same machine, with its defaults: a report is on the disk when it '
    'is answered.\n\n'
    'Meanwhile the same process does what a collector does in the '
    'background: after each minute of reports it adds the samples to their '
    'sums by minute and by hour, and after each five minutes it deletes '
    "what is older than an hour. So the table grows to an hour's worth of "
    'samples in the first two thirds of the run and stays there in the '
    'last. In the end the sums by minute and by hour are compared with what '
    'was sent, and what is left of the samples with what should be.',
    (),
    {
        name: text
        for kind in ('postgresql', 'mariadb')
        for name, text in (
            (kind + '_samples_per_s', 'samples stored and summed in a second'),
            (
                kind + '_last_to_first_tenth',
                "rate over the last tenth, with an hour's worth of samples "
                'there, over that of the first, with none',
            ),
        )
    },
    targets=(
        frame.at_least('postgresql_samples_per_s', 10_000, '/s', 'issue 4'),
        frame.at_least('mariadb_samples_per_s', 10_000, '/s', 'issue 4'),
        frame.at_least('postgresql_last_to_first_tenth', 1, '', 'issue 4'),
        frame.at_least('mariadb_last_to_first_tenth', 1, '', 'issue 4'),
    ),
)

#: Where a minute and an hour begin.
START = base.NOW // 3600 * 3600

HOSTS = 16
INSTANCES = 50
TENTHS = 10

#: How much of what is sent is kept.
KEPT = 2 / 3

#: As the collector's options say by default, in seconds of what is sent.
FOLD_S = 60
PURGE_S = 300

_GUEST_US = 600_000
_DIRECT_US = 40_000
_EXECUTIONS = 5_000


def run(quick: bool) -> frame.Run:
    """One database after the other."""
    metrics: dict[str, float] = {}
    for kind in stored_fleet.SERVERS:
        found = _measure(kind, 900 if quick else 5400)
        yield frame.Variant(kind.name, found)
        metrics[kind.name + '_samples_per_s'] = found['samples_per_s']
        metrics[kind.name + '_last_to_first_tenth'] = round(
            found['tenths'][-1] / found['tenths'][0], 3
        )
    return metrics


def _measure(kind: ty.Any, seconds: int) -> dict[str, ty.Any]:
    with stored_fleet.database(kind) as url:
        return _fill(url, seconds)


def _fill(url: str, seconds: int) -> dict[str, ty.Any]:
    conf = database_options.configuration(url)
    collector = endpoint.Collector(conf)
    background = _Background(collector, conf, round(seconds * KEPT))
    names = {
        'node%d' % number: [str(uuid.uuid4()) for _ in range(INSTANCES)]
        for number in range(HOSTS)
    }
    length = seconds // TENTHS
    took_s, cpu_s = [], 0.0
    try:
        with futures.ThreadPoolExecutor(HOSTS) as agents:
            # Tables of the dialect, connections, caches.
            for host in names:
                _send(
                    collector,
                    [json.dumps({'host': host, 'batch': 1, 'at': START})],
                    lambda at: None,
                )
            background.start()
            for tenth in range(TENTHS):
                batches = [
                    _batches(host, uuids, tenth * length, length)
                    for host, uuids in names.items()
                ]
                began, cpu = time.perf_counter(), time.process_time()
                list(
                    agents.map(
                        lambda some: _send(collector, some, background.sent),
                        batches,
                    )
                )
                if tenth == TENTHS - 1:
                    # What is left to do is part of the work.
                    background.finish(START + seconds + 1)
                took_s.append(time.perf_counter() - began)
                cpu_s += time.process_time() - cpu
        samples = TENTHS * length * HOSTS * INSTANCES
        left = _check(collector, samples, round(seconds * KEPT))
    finally:
        background.stop()
        collector.database.dispose()
    return {
        'samples': samples,
        'samples_left': left,
        'samples_per_s': round(samples / sum(took_s)),
        'tenths': [round(samples / TENTHS / one) for one in took_s],
        'process_cpu_us_per_sample': round(cpu_s * 1e6 / samples, 1),
        'sum_us_per_sample': round(background.fold_s * 1e6 / samples, 1),
        'delete_us_per_sample': round(background.purge_s * 1e6 / samples, 1),
    }


class _Background:
    """What a collector does beside, by the clock of what is sent.

    :param kept_s: how much of it is kept.
    """

    def __init__(
        self, collector: endpoint.Collector, conf: cfg.ConfigOpts, kept_s: int
    ) -> None:
        self._collector = collector
        self._conf = conf
        self._kept_s = kept_s
        self._at = START
        self._told = threading.Condition()
        self._stopped = False
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self.fold_s = self.purge_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def sent(self, at: float) -> None:
        """A report of that moment is stored."""
        if at >= self._at + FOLD_S:
            with self._told:
                self._at = max(self._at, at)
                self._told.notify()

    def finish(self, at: float) -> None:
        """End once all is summed, and deleted what is too old."""
        self.stop()
        if self._problem is not None:
            raise self._problem
        self._fold()
        self._purge(at)

    def stop(self) -> None:
        """End at once."""
        with self._told:
            self._stopped = True
            self._told.notify()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        folded = purged = START
        try:
            while True:
                with self._told:
                    while not self._stopped and self._at < folded + FOLD_S:
                        self._told.wait()
                    if self._stopped:
                        return
                    folded = self._at
                self._fold()
                if folded >= purged + PURGE_S:
                    purged = folded
                    self._purge(folded)
        except BaseException as problem:
            self._problem = problem

    def _fold(self) -> None:
        began = time.perf_counter()
        rollups.fold(
            self._collector.database,
            self._conf.collector.usage_fold_chunk_rows,
        )
        self.fold_s += time.perf_counter() - began

    def _purge(self, at: float) -> None:
        began = time.perf_counter()
        # As if an hour or more had passed since the oldest that is kept.
        hours = self._conf.collector.usage_retention_hours
        retention.purge(
            self._collector.database,
            self._conf,
            at - self._kept_s + hours * 3600,
        )
        self.purge_s += time.perf_counter() - began


def _batches(
    host: str, uuids: list[str], first: int, length: int
) -> list[str]:
    return [
        json.dumps(
            {
                'host': host,
                'batch': second + 2,
                'at': START + second + 1,
                'usage': [
                    {
                        'instance_uuid': one,
                        'at': START + second + 0.25,
                        'interval_us': 1_000_000 + second,
                        'guest_us': _GUEST_US + second,
                        'wait_us': 1_000 * number,
                        'promised_us': 600_000,
                        'direct_us': _DIRECT_US + number,
                        'direct_wait_us': 3_000,
                        'shared_us': 12_000 + number,
                        'wakeups': 4_000 + second,
                        'net_rx_packets': 10_000 + number,
                        'net_tx_packets': 9_000,
                        'disk_read_requests': 120,
                        'disk_write_requests': 80 + number,
                        'executions': [
                            _EXECUTIONS + number,
                            3_000 + second,
                            2_000,
                            900,
                            900,
                            100,
                            100,
                        ],
                    }
                    for number, one in enumerate(uuids)
                ],
                'host_usage': [
                    {
                        'at': START + second + 0.25,
                        'interval_us': 1_000_000,
                        'cpus': 64,
                        'idle_us': 30_000_000,
                        'steal_us': 0,
                        'irq_us': 500_000,
                        'guest_us': INSTANCES * _GUEST_US,
                        'direct_us': INSTANCES * _DIRECT_US,
                        'shared_us': 600_000,
                        'own_us': 1_400_000,
                    }
                ],
            }
        )
        for second in range(first, first + length)
    ]


def _send(
    collector: endpoint.Collector,
    batches: list[str],
    sent: ty.Callable[[float], None],
) -> None:
    for text in batches:
        batch = json.loads(text)
        if collector.report({}, batch)['duplicate']:
            raise AssertionError('%(host)s: %(batch)d is a repeat' % batch)
        sent(batch['at'])


def _check(collector: endpoint.Collector, samples: int, kept_s: int) -> int:
    """Everything was stored once, and deleted what was too old.

    :returns: how many samples are there.
    """
    seconds = samples // HOSTS // INSTANCES

    def sums(row: ty.Any, *where: ty.Any) -> ty.Any:
        # The CPUs' time has no executions.
        executions = getattr(row, 'executions', row.guest_us)
        return collector.database.read(
            lambda session: tuple(
                map(
                    int,
                    session.execute(
                        sa.select(
                            sa.func.sum(row.samples),
                            sa.func.sum(row.guest_us),
                            sa.func.sum(row.direct_us),
                            sa.func.sum(executions),
                        ).where(*where)
                    ).one(),
                )
            )
        )

    of_samples = (
        samples,
        samples * _GUEST_US + HOSTS * INSTANCES * sum(range(seconds)),
        samples * _DIRECT_US + HOSTS * seconds * sum(range(INSTANCES)),
        samples * _EXECUTIONS + HOSTS * seconds * sum(range(INSTANCES)),
    )
    of_hosts = (
        HOSTS * seconds,
        samples * _GUEST_US,
        samples * _DIRECT_US,
        samples * _GUEST_US,
    )
    for row, wanted in (
        (models.UsageBucket, of_samples),
        (models.HostUsageBucket, of_samples),
        (models.HostTimeBucket, of_hosts),
    ):
        for length_s in rollups.LENGTHS_S:
            found = sums(row, row.length_s == length_s)
            if found != wanted:
                raise AssertionError(
                    '%s of %d s: %s, sent: %s'
                    % (row.__name__, length_s, found, wanted)
                )
    left = collector.database.read(
        lambda session: int(
            session.execute(
                sa.select(sa.func.sum(models.UsageSecond.count))
            ).scalar_one()
        )
    )
    if left != kept_s * HOSTS * INSTANCES:
        raise AssertionError(
            '%d samples are left, not %d' % (left, kept_s * HOSTS * INSTANCES)
        )
    return left


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The rate while the tables grow."""
    axes = figure.add_subplot()
    for name, found in record.variants.items():
        each = found['samples'] / len(found['tenths'])
        axes.plot(
            [
                each * (number + 1) / 1000
                for number in range(len(found['tenths']))
            ],
            found['tenths'],
            marker='o',
            label=name,
        )
    axes.axhline(10_000, color='grey', linestyle='--', label='target')
    axes.set_ylim(bottom=0)
    axes.set_xlabel('samples stored, thousands')
    axes.set_ylabel('samples a second')
    axes.legend()
