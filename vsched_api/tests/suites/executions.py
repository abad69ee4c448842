# SPDX-License-Identifier: Apache-2.0

"""Executions in samples and sums of usage: on every database alike."""

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.schemas import servers
from vsched_api.tests import base
from vsched_lib.model import executions

#: A minute and an hour end.
HOUR = base.NOW // 3600 * 3600.0
COUNTS = {
    'executions': 500,
    'emulator_wakeups': 300,
    'emulator_wait_us': 6_000,
    'iothread_wakeups': 90,
    'iothread_wait_us': 900,
    'vhost_wakeups': 0,
    'vhost_wait_us': 0,
}
OTHERS = {
    'wait_us': 20_000,
    'direct_wait_us': 7_000,
    'wakeups': 400,
    'net_rx_packets': 600,
    'net_tx_packets': 350,
    'disk_read_requests': 30,
    'disk_write_requests': 20,
}
UNKNOWN = dict.fromkeys(COUNTS)


def counts(found):
    """Return the counts of a sample or a bucket."""
    return {name: getattr(found, name) for name in COUNTS}


class Executions:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.now = HOUR + 3600
        self.one, self.other = base.uuids(2)
        self.reporter = self.agent()
        self.reporter.first(self.one, self.other)

    def report(self, *seconds, uuid=None, **changes):
        self.reporter.send(
            listed=False,
            usage=[
                base.sample(
                    uuid or self.one,
                    HOUR + second,
                    **{**OTHERS, 'executions': tuple(COUNTS.values())}
                    | changes,
                )
                for second in seconds
            ],
        )

    def samples(self, **filters):
        return usage.page(self.database, 1000, **filters)

    def minutes(self, **filters):
        rollups.fold(self.database, 100)
        return usage.buckets(
            self.database, usage.Resolution.MINUTE, 100, **filters
        )

    def test_samples_are_stored_as_reported(self):
        self.report(1)
        self.report(1, uuid=self.other, executions=None)
        # A newer agent reports something more.
        self.report(1, executions=(0, *list(COUNTS.values())[1:], 99))
        for filters in ({}, {'host': base.HOST}):
            self.assertEqual(
                [COUNTS, UNKNOWN, COUNTS | {'executions': 0}],
                [counts(found) for found in self.samples(**filters)],
            )
        self.assertEqual(
            [500, 0],
            [
                found.executions
                for found in self.samples(
                    host=base.HOST, instance_uuids=[self.one]
                )
            ],
        )

    def test_one_instance_of_a_packed_second(self):
        self.reporter.send(
            listed=False,
            usage=[
                base.sample(uuid, HOUR + 1, executions=(number,) * 7)
                for number, uuid in enumerate(
                    (self.one, self.other, self.one, self.other)
                )
            ]
            + [base.sample(self.other, HOUR + 1)],
        )
        self.assertEqual(
            [1, 3, None],
            [
                found.executions
                for found in self.samples(
                    host=base.HOST, instance_uuids=[self.other]
                )
            ],
        )

    def test_figures_of_samples(self):
        self.report(1)
        (found,) = self.samples()
        self.assertEqual(
            {
                'executions_per_s': 500.0,
                'io_per_execution': 2.0,
                'wait_per_execution_us': 40.0,
                'wakeups_per_s': 400.0,
                'io_per_wakeup': 2.5,
                'wait_per_wakeup_us': 17.5,
                'emulator_wakeups_per_s': 300.0,
                'emulator_wait_per_wakeup_us': 20.0,
                'iothread_wakeups_per_s': 90.0,
                'iothread_wait_per_wakeup_us': 10.0,
                'vhost_wakeups_per_s': 0.0,
                'vhost_wait_per_wakeup_us': None,
            },
            found.figures(),
        )

    def test_sums(self):
        self.report(*range(1, 61))
        self.report(*range(1, 61), uuid=self.other)
        (one,) = self.minutes(instance_uuids=[self.one])
        self.assertEqual(
            {name: 60 * count for name, count in COUNTS.items()}, counts(one)
        )
        self.assertEqual(500.0, one.figures()['executions_per_s'])
        self.assertEqual(2.0, one.figures()['io_per_execution'])
        # A host's time is covered once, not once by each instance.
        (host,) = self.minutes(host=base.HOST)
        self.assertEqual(60_000, host.executions)
        self.assertEqual(1000.0, host.figures()['executions_per_s'])
        self.assertEqual(20.0, host.figures()['emulator_wait_per_wakeup_us'])

    def test_a_sum_is_unknown_when_one_of_its_samples_is(self):
        self.report(1, 61)
        self.report(2, executions=None)
        self.report(3)
        for filters in ({'instance_uuids': [self.one]}, {'host': base.HOST}):
            first, second = self.minutes(**filters)
            self.assertEqual(
                (UNKNOWN, COUNTS), (counts(first), counts(second))
            )
            self.assertEqual(3, first.samples)
            self.assertIsNone(first.figures()['executions_per_s'])
            # Wakeups of the host's threads are known all the same.
            self.assertEqual(400.0, second.figures()['wakeups_per_s'])

    def test_rows_of_a_collector_of_an_earlier_release(self):
        self.report(1)
        self.minutes()
        self.report(2)
        # It stores no executions, and adds to sums without counting any.
        self.database.write(
            lambda session: session.execute(
                sa.update(models.UsageSecond).values(executions=None)
            )
        )
        self.assertEqual(
            [UNKNOWN, UNKNOWN], [counts(found) for found in self.samples()]
        )
        (found,) = self.minutes(instance_uuids=[self.one])
        self.assertEqual((2, UNKNOWN), (found.samples, counts(found)))
        self.report(61)
        for row in (models.UsageBucket, models.HostUsageBucket):
            self.minutes()
            self.database.write(
                lambda session, row=row: session.execute(
                    sa.update(row).values(samples=row.samples + 1)
                )
            )
        self.assertEqual(
            [UNKNOWN, UNKNOWN],
            [counts(found) for found in self.minutes(host=base.HOST)],
        )

    def test_columns_of_the_series(self):
        self.report(1)
        http = self.client()
        (found,) = http.get('/v1/usage').json['usage']
        self.assertEqual(COUNTS, {name: found[name] for name in COUNTS})
        self.assertEqual(500.0, found['executions_per_s'])
        columns = (*executions.COUNTS, *executions.FIGURES, *servers.FIELDS)
        names, values = (
            line.split(',')[-len(columns) :]
            for line in http.get('/v1/usage?format=csv').text.splitlines()
        )
        self.assertEqual(list(columns), names)
        self.assertEqual(
            ('500', '2.0', ''), (values[0], values[8], values[-4])
        )
