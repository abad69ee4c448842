# SPDX-License-Identifier: Apache-2.0

"""Batches of samples that share transactions: on every database alike."""

import collections
import threading
from unittest import mock

from vsched_api.db import errors as db_errors
from vsched_api.db import packing
from vsched_api.db.queries import usage as queries
from vsched_api.operations import hosts
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages

HOSTS = 8
BATCHES = 20


class Gathering:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def batch(self, host, number, *samples):
        return messages.Report(host, number, base.NOW + number, usage=samples)

    def count(self):
        return collections.Counter(
            (sample.host, sample.at)
            for sample in usage.page(self.database, 10_000)
        )

    def test_many_hosts_at_once_and_each_batch_twice(self):
        (one,) = base.uuids(1)
        collectors = [self.collector() for _ in range(2)]
        replies = collections.Counter()
        problems = []

        def send(host, collector):
            try:
                for number in range(1, BATCHES + 1):
                    reply = collector.on_report(
                        self.batch(
                            host, number, base.sample(one, base.NOW + number)
                        )
                    )
                    replies[host, number, reply.duplicate] += 1
            except Exception as problem:
                problems.append(problem)

        threads = [
            threading.Thread(target=send, args=('node%d' % host, collector))
            for host in range(HOSTS)
            for collector in (*collectors, collectors[0])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], problems)
        keys = [
            ('node%d' % host, number)
            for host in range(HOSTS)
            for number in range(1, BATCHES + 1)
        ]
        self.assertEqual(
            {(host, base.NOW + number): 1 for host, number in keys},
            dict(self.count()),
        )
        self.assertEqual(
            {
                (*key, duplicate): 2 if duplicate else 1
                for key in keys
                for duplicate in (False, True)
            },
            dict(replies),
        )
        rollups.fold(self.database, 100)
        self.assertEqual(
            HOSTS * BATCHES,
            sum(
                bucket.samples
                for bucket in usage.buckets(
                    self.database, usage.Resolution.HOUR, 100
                )
            ),
        )

    def test_a_batch_of_samples_is_answered_like_any_other(self):
        (one,) = base.uuids(1)
        collector = self.collector()
        agent = base.Agent(collector)
        # Of an unknown host; then one that was never told of in full.
        for _ in range(2):
            self.assertEqual(
                collector_replies.ReportReply(False, 0, True),
                agent.send(listed=False, usage=[base.sample(one)]),
            )
        agent.first(one)
        self.now += 7
        agent.at += 5
        self.assertEqual(
            collector_replies.ReportReply(False, 0, False),
            agent.send(listed=False, usage=[base.sample(one)]),
        )
        found = hosts.get(self.database, base.HOST, self.now, 30)
        self.assertEqual(
            (4, self.now), (found.last_batch, found.last_report_at)
        )
        # A repeat, an older one, and one after a gap.
        for number, reply in (
            (4, collector_replies.ReportReply(True, 0)),
            (2, collector_replies.ReportReply(True, 0)),
            (9, collector_replies.ReportReply(False, 0, True)),
        ):
            self.assertEqual(
                reply,
                collector.on_report(
                    self.batch(base.HOST, number, base.sample(one))
                ),
            )
        self.assertEqual(4, sum(self.count().values()))

    def test_numbers_are_stored_as_they_are(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        told = [
            base.sample(one, at, guest_us=guest_us, promised_us=None)
            for at in (
                0.1 + 0.2,
                1e-300,
                5e-324,
                1_800_000_000.1234567,
                base.NOW + 2 / 3,
            )
            for guest_us in (0, 2**53 - 1)
        ]
        agent.send(listed=False, usage=told)
        self.assertEqual(
            sorted((one.at, one.guest_us, None) for one in told),
            sorted(
                (one.at, one.guest_us, one.promised_us)
                for one in usage.page(self.database, 100)
            ),
        )

    def test_pages_of_samples(self):
        one, other = base.uuids(2)
        told = []
        for number in range(3):
            agent = self.agent('node%d' % number)
            agent.first(one, other)
            for second in range(40):
                # Readings are not at the same instant, and some are late.
                those = [
                    base.sample(
                        uuid,
                        base.NOW
                        + second
                        - 0.9
                        + 0.3 * place
                        + 0.1 * number
                        - (50 if second == 7 else 0),
                        guest_us=second,
                    )
                    for place, uuid in enumerate((one, other, one))
                ]
                told += [
                    (sample.at, sample.instance_uuid, agent.host)
                    for sample in those
                ]
                agent.send(listed=False, usage=those)
        told.sort()
        middle = told[len(told) // 2][0]
        for newest_first in (False, True):
            for size in (1, 7, 1000):
                for filters in (
                    {},
                    {'host': 'node1'},
                    {'instance_uuids': [other]},
                    {'instance_uuids': [one], 'host': 'node2'},
                    {'instance_uuids': [one, other], 'start': middle},
                    {'start': middle},
                    {'end': middle},
                    {
                        'instance_uuids': [one],
                        'start': middle - 3,
                        'end': middle + 3,
                    },
                ):
                    if size == 1 and len(filters) < 2:
                        continue
                    wanted = [
                        sample
                        for sample in told
                        if filters.get('host') in (None, sample[2])
                        and sample[1]
                        in filters.get('instance_uuids', (one, other))
                        and sample[0] > filters.get('start', 0)
                        and sample[0] <= filters.get('end', 2 * base.NOW)
                    ]
                    found = self._pages(size, newest_first, filters)
                    self.assertEqual(
                        wanted[::-1] if newest_first else wanted,
                        [
                            (sample.at, sample.instance_uuid, sample.host)
                            for sample in found
                        ],
                    )
                    self.assertEqual(
                        len(found), len({sample.number for sample in found})
                    )

    def _pages(self, size, newest_first, filters):
        found, marker = [], None
        while True:
            some = usage.page(
                self.database, size, marker, newest_first, **filters
            )
            found += some
            if len(some) < size:
                return found
            marker = some[-1].number

    def test_samples_of_an_instance_that_no_host_lists(self):
        (one,) = base.uuids(1)
        self.agent().send(listed=False, usage=[base.sample(one)])
        rollups.fold(self.database, 10)
        self.assertEqual(
            1, len(usage.page(self.database, 10, instance_uuids=[one]))
        )
        self.assertEqual(
            0,
            len(
                usage.page(
                    self.database, 10, instance_uuids=[base.uuids(1)[0]]
                )
            ),
        )

    def test_very_many_samples_of_one_second(self):
        many = base.uuids(packing.MAX_SAMPLES + 1)
        self.agent().first(*many[:1], usage=[base.sample(one) for one in many])
        self.assertEqual(
            many,
            [one.instance_uuid for one in usage.page(self.database, 2000)],
        )
        self.assertEqual(len(many), rollups.fold(self.database, 10))

    def test_what_fails_together_is_tried_alone(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        real = queries.add
        failures = [db_errors.UnstorableValue('x')]

        def add(*args):
            if failures:
                raise failures.pop()
            real(*args)

        with mock.patch.object(queries, 'add', autospec=True, side_effect=add):
            agent.send(listed=False, usage=[base.sample(one)])
        self.assertEqual(1, sum(self.count().values()))

    def test_a_database_that_is_away_answers_nobody(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        agent.first(one)
        with mock.patch.object(
            queries,
            'add',
            autospec=True,
            side_effect=db_errors.DatabaseUnavailable('away'),
        ):
            self.assertRaises(
                db_errors.DatabaseUnavailable,
                agent.send,
                listed=False,
                usage=[base.sample(one)],
            )
        self.assertEqual(0, sum(self.count().values()))
