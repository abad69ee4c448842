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

"""How many samples of usage one collector stores in a second."""

from concurrent import futures
import json
import time
import typing as ty
import unittest
import uuid

import sqlalchemy as sa

from benchmarks import frame
from vsched_api.collector import endpoint
from vsched_api.db import models
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import databases

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'One collector stores what ten thousand VMs use',
    'The collector\'s endpoint of the bus is given reports as they come '
    'off it, each with a second of one host: 50 samples. Eight hosts send '
    'at the same time, each its next report once the last is stored. All '
    'of it happens in one Python process; the database is a server of its '
    'own on the same machine, with its defaults: every report is a '
    'transaction that is on the disk when it is answered.\n\n'
    'Adding the samples to their sums by minute and by hour, which the '
    'collector does in the background, is done after each tenth and counts '
    'in its time. In the end the samples in the database are counted, and '
    'their sums compared with those of the buckets.',
    (),
    {
        name: text for kind in ('postgresql', 'mariadb') for name, text in (
            (kind + '_samples_per_s',
             'samples stored and summed in a second (target: 10000)'),
            (kind + '_last_to_first_tenth',
             'rate over the last tenth of an hour\'s worth of samples, over '
             'that of the first'))
    })

KINDS: tuple[ty.Any, ...] = (databases.PostgreSQL, databases.MariaDB)
HOSTS = 8
INSTANCES = 50
TENTHS = 10


def run(quick: bool) -> frame.Run:
    """One database after the other."""
    metrics: dict[str, float] = {}
    for kind in KINDS:
        found = _measure(kind, 600 if quick else 3600)
        yield frame.Variant(kind.name, found)
        metrics[kind.name + '_samples_per_s'] = found['samples_per_s']
        metrics[kind.name + '_last_to_first_tenth'] = round(
            found['tenths'][-1] / found['tenths'][0], 3)
    return metrics


def _measure(kind: ty.Any, seconds: int) -> dict[str, ty.Any]:
    test = unittest.TestCase()
    try:
        try:
            url = kind.make(test)
        except unittest.SkipTest as error:
            raise frame.Unavailable(str(error)) from error
        with frame.alone():
            return _fill(url, seconds)
    finally:
        test.doCleanups()


def _fill(url: str, seconds: int) -> dict[str, ty.Any]:
    conf = databases.configuration(url)
    collector = endpoint.Collector(conf)
    names = {'node%d' % number: [str(uuid.uuid4()) for _ in range(INSTANCES)]
             for number in range(HOSTS)}
    length = seconds // TENTHS
    took_s, cpu_s, fold_s = [], 0.0, 0.0
    try:
        with futures.ThreadPoolExecutor(HOSTS) as agents:
            # Tables of the dialect, connections, caches.
            list(agents.map(lambda host: _send(collector, [
                {'host': host, 'batch': 1, 'at': base.NOW}]), names))
            for tenth in range(TENTHS):
                batches = [_batches(host, uuids, tenth * length, length)
                           for host, uuids in names.items()]
                began, cpu = time.perf_counter(), time.process_time()
                list(agents.map(
                    lambda some: _send(collector, some), batches))
                stored = time.perf_counter()
                rollups.fold(collector.database,
                             conf.collector.usage_fold_chunk_rows)
                fold_s += time.perf_counter() - stored
                took_s.append(time.perf_counter() - began)
                cpu_s += time.process_time() - cpu
        samples = TENTHS * length * HOSTS * INSTANCES
        _check(collector, samples)
    finally:
        collector.database.dispose()
    return {
        'samples': samples,
        'samples_per_s': round(samples / sum(took_s)),
        'tenths': [round(samples / TENTHS / one) for one in took_s],
        'process_cpu_us_per_sample': round(cpu_s * 1e6 / samples, 1),
        'sum_us_per_sample': round(fold_s * 1e6 / samples, 1),
    }


def _batches(host: str, uuids: list[str], first: int,
             length: int) -> list[dict[str, ty.Any]]:
    # Through JSON, as on the bus: no string or number is shared.
    return [json.loads(json.dumps({
        'host': host, 'batch': second + 2, 'at': base.NOW + second,
        'usage': [{
            'instance_uuid': one, 'at': base.NOW + second + 0.25,
            'interval_us': 1_000_000 + second, 'guest_us': 600_000 + number,
            'wait_us': 1_000 * number, 'promised_us': 600_000}
            for number, one in enumerate(uuids)]}))
        for second in range(first, first + length)]


def _send(collector: endpoint.Collector,
          batches: list[dict[str, ty.Any]]) -> None:
    for batch in batches:
        if collector.report({}, batch)['duplicate']:
            raise AssertionError('%(host)s: %(batch)d is a repeat' % batch)


def _check(collector: endpoint.Collector, samples: int) -> None:
    def sums(row: ty.Any, count: ty.Any, *where: ty.Any) -> ty.Any:
        return collector.database.read(lambda session: tuple(
            map(int, session.execute(sa.select(
                count, sa.func.sum(row.interval_us),
                sa.func.sum(row.guest_us)).where(*where)).one())))

    wanted = sums(models.UsageSample, sa.func.count())
    if wanted[0] != samples:
        raise AssertionError('%d of %d samples are there' % (
            wanted[0], samples))
    for row in (models.UsageBucket, models.HostUsageBucket):
        for length_s in rollups.LENGTHS_S:
            found = sums(row, sa.func.sum(row.samples),
                         row.length_s == length_s)
            if found != wanted:
                raise AssertionError('%s of %d s: %s, samples: %s' % (
                    row.__name__, length_s, found, wanted))


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The rate while the tables grow."""
    axes = figure.add_subplot()
    for name, found in record.variants.items():
        each = found['samples'] / len(found['tenths'])
        axes.plot([each * (number + 1) / 1000
                   for number in range(len(found['tenths']))],
                  found['tenths'], marker='o', label=name)
    axes.axhline(10_000, color='grey', linestyle='--', label='target')
    axes.set_ylim(bottom=0)
    axes.set_xlabel('samples stored, thousands')
    axes.set_ylabel('samples a second')
    axes.legend()
