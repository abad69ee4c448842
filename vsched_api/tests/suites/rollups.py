# SPDX-License-Identifier: Apache-2.0

"""Sums of samples by minute and by hour: on every database alike."""

import random

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.db.queries import usage_buckets
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base

#: At both, a minute and an hour end.
HOUR = base.NOW // 3600 * 3600.0
MINUTE = usage.Resolution.MINUTE
BY_HOUR = usage.Resolution.HOUR
DAY_S = 86_400


class Folding:
    """Folds samples into buckets, and reads these.

    To be mixed into a :class:`vsched_api.tests.base.TestCase`.
    """

    def setUp(self):
        super().setUp()
        # Samples of up to some hours later are no future ones.
        self.now = HOUR + DAY_S

    def fold(self, rows=5000):
        return rollups.fold(self.database, rows)

    def buckets(self, resolution=MINUTE, **filters):
        return usage.buckets(self.database, resolution, 10_000, **filters)


class Rollups(Folding):
    """When samples are folded, and which of them are summed together."""

    def all_sums(self):
        """By their names, what all buckets say."""

        def work(session):
            return {
                (
                    row.__tablename__,
                    one.host_id,
                    one.length_s,
                    one.at,
                    getattr(
                        one, 'instance_uuid', one.__dict__.get('instances')
                    ),
                ): tuple(
                    getattr(one, name) for name in usage_buckets.Sums._fields
                )
                for row in (models.UsageBucket, models.HostUsageBucket)
                for one in session.execute(sa.select(row)).scalars()
            }

        return self.database.read(work)

    def test_what_a_host_did_goes_into_the_sums_in_bounded_steps(self):
        agent = self.agent()
        for number in range(6):
            agent.send(
                listed=False, host_usage=[base.host_usage(HOUR + number + 1)]
            )
        asked = iter([False, False, True])
        rollups.fold(self.database, 1, lambda: next(asked))
        self.assertEqual(
            [2],
            [one.samples for one in usage.of_hosts(self.database, MINUTE, 10)],
        )
        self.fold(1)
        (one,) = usage.of_hosts(self.database, MINUTE, 10)
        self.assertEqual(
            (6, HOUR, HOUR + 6, 12_000_000, 6_000_000),
            (one.samples, one.first_at, one.last_at, one.cpu_us, one.idle_us),
        )
        # Nothing that the CPUs did is lost.
        self.assertEqual(
            one.cpu_us,
            (
                one.idle_us
                + one.steal_us
                + one.guest_us
                + one.direct_us
                + one.shared_us
                + one.own_us
            ),
        )

    def test_a_sample_belongs_to_where_its_interval_ended(self):
        (one,) = base.uuids(1)
        self.agent().first(
            one,
            usage=[
                base.sample(one, HOUR),
                base.sample(one, HOUR + 0.5),
                base.sample(one, HOUR + 60),
                base.sample(one, HOUR + 60.001),
            ],
        )
        self.fold()
        self.assertEqual(
            [(HOUR, 1), (HOUR + 60, 2), (HOUR + 120, 1)],
            [
                (bucket.at, bucket.samples)
                for bucket in self.buckets(instance_uuids=[one])
            ],
        )
        self.assertEqual(
            [(HOUR, 1), (HOUR + 3600, 3)],
            [
                (bucket.at, bucket.samples)
                for bucket in self.buckets(BY_HOUR, instance_uuids=[one])
            ],
        )

    def test_a_late_batch_changes_its_own_time(self):
        one, other = base.uuids(2)
        agent = self.agent()
        agent.first(
            one,
            other,
            usage=[base.sample(one, HOUR - 3000), base.sample(one, HOUR + 30)],
        )
        self.fold()
        before = self.all_sums()
        # Later than samples are kept.
        agent.send(
            listed=False,
            usage=[
                base.sample(one, HOUR - 3001),
                base.sample(other, HOUR - 3000),
                base.sample(one, HOUR - 86_400),
            ],
        )
        self.fold()
        after = self.all_sums()
        changed = {
            key[3]
            for key in set(before) | set(after)
            if before.get(key) != after.get(key)
        }
        self.assertEqual({HOUR - 3000, HOUR, HOUR - 86_400}, changed)
        (late,) = self.buckets(
            host=base.HOST, start=HOUR - 3060, end=HOUR - 3000
        )
        self.assertEqual(
            (3, 2, 1_800_000), (late.samples, late.instances, late.guest_us)
        )

    def test_order_and_pauses_do_not_matter(self):
        chance = random.Random(4)
        many = base.uuids(4)
        self.now = HOUR + 3600
        samples = [
            base.sample(one, HOUR + second, guest_us=second)
            for one in many
            for second in range(1, 150)
        ]
        sums = []
        for number in range(3):
            chance.shuffle(samples)
            agent = self.agent('node%d' % number)
            agent.first(*many)
            for start in range(0, len(samples), 50):
                agent.send(listed=False, usage=samples[start : start + 50])
                if chance.random() < 0.5:
                    self.fold(chance.randrange(1, 200))
            self.fold(chance.randrange(1, 200))
            sums.append(
                [
                    (one.at, one.samples, one.guest_us, one.instances)
                    for one in self.buckets(host=agent.host)
                ]
            )
        self.assertEqual([sums[0]] * 3, sums)
        self.assertEqual(
            [(HOUR + 60, 240, 4), (HOUR + 120, 240, 4), (HOUR + 180, 116, 4)],
            [(at, count, instances) for at, count, _, instances in sums[0]],
        )

    def test_sums_that_no_column_takes_hold_up_nothing(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        # As many of the largest as it takes.
        agent.first(
            one, usage=[base.sample(one, HOUR, guest_us=2**53 - 1)] * 1100
        )
        agent.send(listed=False, usage=[base.sample(one, HOUR + 1)])
        self.fold()
        self.assertEqual(
            [(1100, 2**63 - 1), (1, 600_000)],
            [
                (bucket.samples, bucket.guest_us)
                for bucket in self.buckets(instance_uuids=[one])
            ],
        )

    def test_folding_can_be_stopped_and_goes_on(self):
        (one,) = base.uuids(1)
        agent = self.agent()
        for number in range(5):
            agent.send(listed=False, usage=[base.sample(one, HOUR + number)])
        asked = iter([False, False, True])
        self.assertEqual(
            2, rollups.fold(self.database, 1, lambda: next(asked))
        )
        self.assertEqual(3, self.fold(1))
        self.assertEqual(0, self.fold(1))
        self.assertEqual(
            5, sum(bucket.samples for bucket in self.buckets(host=base.HOST))
        )

    def test_a_host_that_reports_without_end_keeps_none_waiting(self):
        one, other = base.uuids(2)
        busy, quiet = self.agent('a'), self.agent('b')
        for number in range(3):
            busy.send(listed=False, usage=[base.sample(one, HOUR + number)])
        quiet.send(listed=False, usage=[base.sample(other, HOUR + 1)])
        calls = []

        def stopped():
            # Two more batches before each call.
            calls.append(None)
            for _ in range(2):
                busy.send(listed=False, usage=[base.sample(one, HOUR)])
            return len(calls) > 50

        times = iter(range(0, 10_000, 50))
        rollups.fold(self.database, 1, stopped, lambda: float(next(times)))
        # One of both in the first round, then the busy one until its time
        # is up.
        self.assertEqual(4, len(calls))
        self.assertEqual(
            1,
            sum(each.samples for each in self.buckets(instance_uuids=[other])),
        )
        self.assertEqual(
            3, sum(each.samples for each in self.buckets(instance_uuids=[one]))
        )

    def test_shares_of_a_host(self):
        one, other = base.uuids(2)
        self.agent().first(
            one,
            other,
            usage=[
                base.sample(
                    uuid,
                    HOUR + second,
                    guest_us=guest_us,
                    promised_us=promised_us,
                )
                for uuid, guest_us, promised_us in (
                    (one, 660_000, 600_000),
                    (other, 900_000, None),
                )
                for second in range(1, 61)
            ],
        )
        self.fold()
        (host,) = self.buckets(host=base.HOST)
        self.assertEqual(
            (1560, 600, 100_000),
            (host.guest_mcpu, host.promised_mcpu, host.error_ppm),
        )
        (plain,) = self.buckets(instance_uuids=[other])
        self.assertEqual(
            (900, None, None),
            (plain.guest_mcpu, plain.promised_mcpu, plain.error_ppm),
        )
