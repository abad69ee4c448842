# SPDX-License-Identifier: Apache-2.0

from unittest import mock

from oslotest import base

from benchmarks import scheduling
from vsched_agent.privileged import syscalls


def held(runtime_us, period_us):
    return syscalls.Attr(
        syscalls.SCHED_DEADLINE,
        syscalls.FLAG_RESET_ON_FORK,
        0,
        0,
        1000 * runtime_us,
        1000 * period_us,
        1000 * period_us,
    )


ORDINARY = syscalls.Attr(syscalls.SCHED_OTHER)


def member(*attrs, quota=-1):
    vm = mock.Mock()
    vm.attrs.return_value = list(attrs)
    vm.quota.return_value = (quota, 20_000)
    return scheduling.Member(vm, 6_000)


class MemberTestCase(base.BaseTestCase):
    def test_specs(self):
        one = member()
        self.assertEqual({}, one.specs(scheduling.Way.DEFAULT))
        self.assertEqual(
            [('cfs', 'false'), ('deadline', 'false'), ('deadline', 'true')],
            [
                (specs['backend'], specs['comm_aware'])
                for specs in map(
                    one.specs,
                    (
                        scheduling.Way.QUOTA,
                        scheduling.Way.FIXED,
                        scheduling.Way.SHAPED,
                    ),
                )
            ],
        )

    def ways(self, one):
        return [way for way in scheduling.Way if one.scheduled(way)]

    def test_scheduled(self):
        way = scheduling.Way
        self.assertEqual([way.DEFAULT], self.ways(member(ORDINARY)))
        self.assertEqual([way.QUOTA], self.ways(member(ORDINARY, quota=6_000)))
        self.assertEqual(
            [way.FIXED, way.SHAPED], self.ways(member(held(6_000, 20_000)))
        )
        self.assertEqual([way.SHAPED], self.ways(member(held(1_500, 5_000))))

    def test_another_reservation_is_none_of_them(self):
        for other in (
            member(held(6_000, 10_000)),
            member(held(3_000, 20_000)),
            member(held(6_000, 20_000), ORDINARY),
            member(ORDINARY, quota=3_000),
        ):
            self.assertEqual([], self.ways(other))

    def test_a_nanosecond_does_not_matter(self):
        self.assertTrue(scheduling.divides(1_500_001, 5_000_001, 6_000))
        self.assertFalse(scheduling.divides(1_502_000, 5_000_000, 6_000))


class SchedulerTestCase(base.BaseTestCase):
    def test_undivide(self):
        vm = mock.Mock(vcpu_tids=[1], io_tids=[2, 3])
        attrs = {1: held(1_500, 5_000), 2: held(500, 10_000), 3: ORDINARY}
        scheduler = scheduling.Scheduler([scheduling.Member(vm, 6_000)])
        with mock.patch.multiple(
            scheduling.syscalls,
            get_attr=attrs.__getitem__,
            set_attr=attrs.__setitem__,
        ):
            self.assertEqual([[4, 2, 0]], scheduler.divisions())
            scheduler.undivide(vcpus=False)
            self.assertEqual([[4, 1, 0]], scheduler.divisions())
            self.assertEqual(held(1_000, 20_000), attrs[2])
            scheduler.undivide(vcpus=True)
            self.assertEqual(held(6_000, 20_000), attrs[1])
            self.assertEqual(ORDINARY, attrs[3])

    def test_steady(self):
        scheduler = scheduling.Scheduler([])
        seen = iter(([1], [1], [4], [4], [4]))
        asked = []
        with (
            mock.patch.object(
                scheduler,
                'divisions',
                autospec=True,
                side_effect=lambda: next(seen),
            ),
            mock.patch.object(
                scheduling.time,
                'monotonic',
                autospec=True,
                side_effect=(float(one) for one in range(100)),
            ),
        ):
            scheduler.await_steady(lambda: asked.append(1), 3.0, 30.0)
        self.assertEqual(4, len(asked))

    def test_never_steady(self):
        scheduler = scheduling.Scheduler([])
        with (
            mock.patch.object(
                scheduler,
                'divisions',
                autospec=True,
                side_effect=([one] for one in range(9)),
            ),
            mock.patch.object(
                scheduling.time,
                'monotonic',
                autospec=True,
                side_effect=(float(one) for one in range(100)),
            ),
        ):
            scheduler.await_steady(lambda: None, 3.0, 9.0)


class HostWatchTestCase(base.BaseTestCase):
    def test_what_was_since_its_making(self):
        runs = {1: iter((0, 500_000_000)), 2: iter((7, 1_000_000_007))}
        with (
            mock.patch.object(
                scheduling.schedstat,
                'read',
                autospec=True,
                side_effect=lambda tid: mock.Mock(run_ns=next(runs[tid])),
            ),
            mock.patch.object(
                scheduling.request_rig,
                'context_switches',
                autospec=True,
                side_effect=(1_000, 5_000),
            ),
            mock.patch.object(
                scheduling.time,
                'monotonic_ns',
                autospec=True,
                side_effect=(3, 2_000_000_003),
            ),
        ):
            seen = scheduling.HostWatch([1, 2]).read()
        self.assertEqual(([0.25, 0.5], 2000.0), seen)


class ArithmeticTestCase(base.BaseTestCase):
    def test_ratios_are_of_one_repeat(self):
        found = {
            'ours': [{'p99_ms': 1.0}, {'p99_ms': 4.0}],
            'fixed': [{'p99_ms': 2.0}, {'p99_ms': 16.0}],
        }
        self.assertEqual(
            [0.5, 0.25], scheduling.ratios(found, 'p99_ms', 'ours', 'fixed')
        )

    def test_cut(self):
        self.assertEqual(40.0, scheduling.cut_pct([0.2, 0.6, 1.5]))
        self.assertEqual(-10.0, scheduling.cut_pct([1.1]))

    def test_share_change_is_that_of_the_worst(self):
        self.assertAlmostEqual(
            10.0, scheduling.share_change_pct([0.2, 0.3], [0.2, 0.27])
        )
        self.assertAlmostEqual(
            5.0,
            scheduling.hog_share_change_pct(
                [{'hog_shares': [0.2]}] * 3,
                [{'hog_shares': [one]} for one in (0.21, 0.2, 0.1)],
            ),
        )


class RepeatsTestCase(base.BaseTestCase):
    def test_each_repeat_has_all_variants(self):
        found = list(scheduling.rounds(('a', 'b', 'c'), 5, 7))
        self.assertEqual(
            [(repeat, name) for repeat in range(5) for name in 'abc'],
            sorted(found),
        )
        orders = [
            tuple(name for repeat, name in found if repeat == each)
            for each in range(5)
        ]
        self.assertGreater(len(set(orders)), 1)
        self.assertEqual(found, list(scheduling.rounds(('a', 'b', 'c'), 5, 7)))

    def test_figures_of_a_variant(self):
        repeated = [
            {'p99_ms': one, 'hog_shares': [0.22], 'divisions': [[1]]}
            for one in (1.0, 3.0, 2.0)
        ]
        found = scheduling.figures_of(repeated)
        self.assertEqual(2.0, found['p99_ms']['median'])
        self.assertEqual(
            (1.0, 3.0), (found['p99_ms']['least'], found['p99_ms']['most'])
        )
        self.assertEqual([[0.22]] * 3, found['hog_shares'])
