# SPDX-License-Identifier: Apache-2.0

"""Any samples are summed exactly: on every database alike."""

import collections
import itertools
import math

import hypothesis
from hypothesis import strategies as st

from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests.suites import rollups
from vsched_lib.contract import messages

INSTANCES = base.uuids(3)

_LARGE = st.integers(0, 2**50)
_SAMPLES = st.builds(
    messages.UsageSample,
    st.sampled_from(INSTANCES),
    # Around the ends of minutes and hours, and hours late.
    st.builds(
        lambda end, offset: rollups.HOUR + 60 * end + offset,
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
    st.integers(-200, 200).map(lambda end: rollups.HOUR + end),
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


class ExactSums(rollups.Folding):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

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
            for resolution, length_s in (
                (rollups.MINUTE, 60),
                (rollups.BY_HOUR, 3600),
            ):
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
            for resolution, length_s in (
                (rollups.MINUTE, 60),
                (rollups.BY_HOUR, 3600),
            ):
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
