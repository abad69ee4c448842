# SPDX-License-Identifier: Apache-2.0

"""Sums of samples by minute and by hour: on every database alike."""

import collections
import itertools
import math
import random

import hypothesis
from hypothesis import strategies as st
import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.db.queries import usage_buckets
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import messages

#: At both, a minute and an hour end.
HOUR = base.NOW // 3600 * 3600.0
MINUTE = usage.Resolution.MINUTE
BY_HOUR = usage.Resolution.HOUR
INSTANCES = base.uuids(3)

DAY_S = 86_400
_LARGE = st.integers(0, 2**50)
_SAMPLES = st.builds(
    messages.UsageSample,
    st.sampled_from(INSTANCES),
    # Around the ends of minutes and hours, and hours late.
    st.builds(
        lambda end, offset: HOUR + 60 * end + offset,
        st.integers(-200, 200),
        st.sampled_from((-0.000001, 0.0, 0.000001)) | st.floats(-60, 60),
    ),
    _LARGE,
    _LARGE,
    _LARGE,
    st.none() | _LARGE,
    *[_LARGE] * 8,
    st.none() | st.tuples(*[_LARGE] * 7),
)
_HOST_SAMPLES = st.builds(
    messages.HostUsage,
    st.integers(-200, 200).map(lambda end: HOUR + end),
    _LARGE,
    st.integers(1, 8),
    *[_LARGE] * 7,
)
_WORK = (
    'direct_us',
    'direct_wait_us',
    'shared_us',
    'wakeups',
    'net_rx_packets',
    'net_tx_packets',
    'disk_read_requests',
    'disk_write_requests',
)
_EXECUTIONS = (
    'executions',
    'emulator_wakeups',
    'emulator_wait_us',
    'iothread_wakeups',
    'iothread_wait_us',
    'vhost_wakeups',
    'vhost_wait_us',
)
_TIMES = (
    'interval_us',
    'idle_us',
    'steal_us',
    'irq_us',
    'guest_us',
    'direct_us',
    'shared_us',
    'own_us',
)


class Rollups:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        # Samples of up to some hours later are no future ones.
        self.now = HOUR + DAY_S

    def fold(self, rows=5000):
        return rollups.fold(self.database, rows)

    def buckets(self, resolution=MINUTE, **filters):
        return usage.buckets(self.database, resolution, 10_000, **filters)

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

    def test_sums_are_exact(self):
        collector = self.collector()
        numbers = itertools.count()

        @hypothesis.settings(
            max_examples=15, deadline=None, database=None, derandomize=True
        )
        @hypothesis.given(
            st.lists(st.lists(_SAMPLES, max_size=6), min_size=1, max_size=6),
            st.sets(st.integers(0, 5)),
            st.integers(1, 20),
            st.randoms(),
        )
        def check(batches, pauses, rows, chance):
            host = 'exact%d' % next(numbers)
            reports = [
                messages.Report(host, number, base.NOW, usage=tuple(samples))
                for number, samples in enumerate(batches, 1)
            ]
            for number, report in enumerate(reports):
                collector.on_report(report)
                # Any that was stored before may come again.
                collector.on_report(chance.choice(reports[: number + 1]))
                if number in pauses:
                    self.fold(rows)
            self.fold(rows)
            self.assertEqual(0, self.fold(rows))
            flat = [one for some in batches for one in some]
            for resolution, length_s in ((MINUTE, 60), (BY_HOUR, 3600)):
                self._compare(host, resolution, length_s, flat)

        check()

    def _compare(self, host, resolution, length_s, samples):
        wanted = collections.defaultdict(list)
        for one in samples:
            at = math.ceil(one.at / length_s) * length_s
            wanted[at, one.instance_uuid].append(one)
            wanted[at, None].append(one)
        found = self.buckets(resolution, host=host) + [
            bucket
            for one in INSTANCES
            for bucket in self.buckets(
                resolution, host=host, instance_uuids=[one]
            )
        ]
        self.assertEqual(
            sorted(wanted, key=str),
            sorted(((one.at, one.instance_uuid) for one in found), key=str),
        )
        for bucket in found:
            those = wanted[bucket.at, bucket.instance_uuid]
            promised = [one for one in those if one.promised_us is not None]
            self.assertEqual(
                (
                    len(those),
                    len({one.instance_uuid for one in those}),
                    max(
                        0, min(one.at - one.interval_us / 1e6 for one in those)
                    ),
                    max(one.at for one in those),
                    sum(one.interval_us for one in those),
                    sum(one.guest_us for one in those),
                    sum(one.wait_us for one in those),
                    sum(one.promised_us for one in promised)
                    if promised
                    else None,
                    sum(one.guest_us for one in promised),
                ),
                (
                    bucket.samples,
                    bucket.instances,
                    bucket.first_at,
                    bucket.last_at,
                    bucket.interval_us,
                    bucket.guest_us,
                    bucket.wait_us,
                    bucket.promised_us,
                    bucket.promised_guest_us,
                ),
            )
            for name in _WORK:
                self.assertEqual(
                    sum(getattr(one, name) for one in those),
                    getattr(bucket, name),
                    name,
                )
            known = all(one.executions is not None for one in those)
            for place, name in enumerate(_EXECUTIONS):
                self.assertEqual(
                    sum(one.executions[place] for one in those)
                    if known
                    else None,
                    getattr(bucket, name),
                    name,
                )

    def test_sums_of_what_a_host_did_are_exact(self):
        collector = self.collector()
        numbers = itertools.count()

        @hypothesis.settings(
            max_examples=15, deadline=None, database=None, derandomize=True
        )
        @hypothesis.given(
            st.lists(
                st.lists(_HOST_SAMPLES, max_size=4), min_size=1, max_size=6
            ),
            st.sets(st.integers(0, 5)),
            st.integers(1, 10),
        )
        def check(batches, pauses, rows):
            host = 'cpus%d' % next(numbers)
            for number, some in enumerate(batches):
                report = messages.Report(
                    host, number + 1, base.NOW, host_usage=tuple(some)
                )
                for _ in range(2):
                    collector.on_report(report)
                if number in pauses:
                    self.fold(rows)
            self.fold(rows)
            flat = [one for some in batches for one in some]
            for resolution, length_s in ((MINUTE, 60), (BY_HOUR, 3600)):
                self._compare_cpus(host, resolution, length_s, flat)

        check()

    def _compare_cpus(self, host, resolution, length_s, samples):
        wanted = collections.defaultdict(list)
        for one in samples:
            wanted[math.ceil(one.at / length_s) * length_s].append(one)
        found = usage.of_hosts(self.database, resolution, 1000, host=host)
        self.assertEqual(sorted(wanted), [one.at for one in found])
        for bucket in found:
            those = wanted[bucket.at]
            self.assertEqual(
                (
                    len(those),
                    max(one.at for one in those),
                    sum(one.cpus * one.interval_us for one in those),
                ),
                (bucket.samples, bucket.last_at, bucket.cpu_us),
            )
            for name in _TIMES:
                self.assertEqual(
                    sum(getattr(one, name) for one in those),
                    getattr(bucket, name),
                    name,
                )

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
