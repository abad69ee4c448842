# SPDX-License-Identifier: Apache-2.0

import os

import ddt
from oslotest import base

from vsched_agent.privileged.budget_expiry import polling
from vsched_agent.privileged import entering
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel

US = 1_000
MS = 1_000_000
#: A descriptor that is not.
_EVENT = -7
#: More CPU time than a test takes.
_LONG_NS = 1 << 60


def attr(runtime_ns, period_ns, flags=syscalls.FLAG_RESET_ON_FORK):
    return syscalls.Attr(
        syscalls.SCHED_DEADLINE, flags, 0, 0, runtime_ns, period_ns, period_ns
    )


def units(one):
    return syscalls.kernel_bandwidth(one.runtime_ns, one.period_ns)


@ddt.ddt
class TestAlternate(base.BaseTestCase):
    @ddt.data(2_100, 5_000, 10_000, 20_000, 100_000, 1_000_000, 4_000_000)
    def test_a_nanosecond_of_runtime(self, period_us):
        for part in range(1, 1_000):
            one = attr(max(1_024, period_us * part), period_us * US)
            other = polling.alternate(one)
            self.assertEqual(1, abs(other.runtime_ns - one.runtime_ns))
            self.assertEqual(
                (one.period_ns, one.period_ns, units(one)),
                (other.period_ns, other.deadline_ns, units(other)),
            )

    @ddt.data(250, 500, 1_000, 1_250, 2_000)
    def test_short_periods(self, period_us):
        most_us = period_us * min(period_us, 1_000) * 47 // 100_000
        for runtime_us in range(2, most_us + 1):
            one = attr(runtime_us * US, period_us * US)
            other = polling.alternate(one)
            self.assertEqual(units(one), units(other))
            self.assertNotEqual(one, other)
            self.assertEqual(other.period_ns, other.deadline_ns)
            self.assertLessEqual(abs(other.runtime_ns - one.runtime_ns), 1)
            self.assertLessEqual(abs(other.period_ns - one.period_ns), 1)

    def test_all_that_the_kernel_takes(self):
        for runtime_ns, period_ns in (
            (1_024, 20 * MS),
            (20 * MS - 1, 20 * MS),
        ):
            other = polling.alternate(attr(runtime_ns, period_ns))
            self.assertGreaterEqual(other.runtime_ns, 1_024)
            self.assertLessEqual(other.runtime_ns, other.deadline_ns)

    def test_none(self):
        for runtime_us, period_us in ((99, 100), (20_000, 20_000)):
            self.assertIsNone(
                polling.alternate(attr(runtime_us * US, period_us * US))
            )


@ddt.ddt
class TestUntilCheck(base.BaseTestCase):
    #: Delay of a check after the end of the budget.
    BEHIND_NS = 20 * US

    def until(self, left_ns, flags=0):
        return polling.until_check_ns(
            entering.Request(1, 4 * MS, 20 * MS, flags), left_ns, 500 * US
        )

    @ddt.data(
        (4 * MS, 4 * MS),
        (1 * MS, 1 * MS),
        (1, 1),
        # An overrun is charged to the next budgets.
        (0, 4 * MS),
        (-100 * US, 3_900 * US),
        (-4 * MS, 4 * MS),
        (-5 * MS, 3 * MS),
    )
    @ddt.unpack
    def test_when_the_budget_has_ended(self, left_ns, ends_ns):
        self.assertEqual(ends_ns + self.BEHIND_NS, self.until(left_ns))

    def test_where_nothing_is_known(self):
        self.assertEqual(500 * US, self.until(None))

    def test_of_who_uses_what_is_idle(self):
        self.assertEqual(500 * US, self.until(1 * MS, syscalls.FLAG_RECLAIM))


class WatchedCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())

    def held(self, runtime_ns=4 * MS, flags=0, **fields):
        request = entering.Request(
            self.kernel.start(**fields), runtime_ns, 20 * MS, flags
        )
        self.kernel.threads[request.tid].attr = request.attr
        return request

    def runtime_ns(self, request):
        return self.kernel.get_attr(request.tid).runtime_ns


class TestWatched(WatchedCase):
    def setUp(self):
        super().setUp()
        self.watched = polling.Watched()

    def check(self):
        self.watched.due(self.watched.silent)
        self.watched.check(_LONG_NS)

    def test_each_check_is_a_change(self):
        one = self.held(flags=syscalls.FLAG_RECLAIM)
        self.watched.add(one)
        found, free = [], self.kernel.free
        for _ in range(4):
            self.check()
            found.append(self.runtime_ns(one))
            self.assertEqual(free, self.kernel.free)
        self.assertEqual([4 * MS + 1, 4 * MS] * 2, found)
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def test_exact_again_when_forgotten(self):
        one = self.held()
        self.watched.add(one)
        self.check()
        self.assertEqual(one, self.watched.forget(one.tid))
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))
        self.assertIsNone(self.watched.forget(one.tid))
        self.kernel.calls.clear()
        self.check()
        self.assertEqual([], self.kernel.calls)

    def test_ended_threads_are_forgotten(self):
        one, other = self.held(), self.held()
        for request in (one, other):
            self.watched.add(request)
        self.kernel.end(one.tid)
        self.check()
        self.assertEqual(1, len(self.watched))
        self.assertEqual(4 * MS + 1, self.runtime_ns(other))

    def test_foreign_changes_are_left_alone(self):
        for changed in (
            attr(5 * MS, 20 * MS),
            attr(4 * MS, 30 * MS),
            attr(4 * MS, 20 * MS, syscalls.FLAG_RECLAIM),
            syscalls.Attr(syscalls.SCHED_OTHER),
        ):
            one = self.held()
            self.watched.add(one)
            self.check()
            self.kernel.threads[one.tid].attr = changed
            self.check()
            self.assertEqual(changed, self.kernel.get_attr(one.tid))
            self.assertEqual(0, len(self.watched))

    def test_left_alone_by_forgetting_as_well(self):
        one = self.held()
        self.watched.add(one)
        self.kernel.threads[one.tid].attr = changed = attr(5 * MS, 20 * MS)
        self.watched.forget(one.tid)
        self.assertEqual(changed, self.kernel.get_attr(one.tid))

    def test_what_is_pinned_is_left_to_the_tick(self):
        one = self.held(cpus=frozenset((1,)))
        self.watched.add(one)
        self.check()
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))
        self.assertEqual(0, len(self.watched))

    def test_without_an_alternate(self):
        self.watched.add(
            entering.Request(self.kernel.start(), 99 * US, 100 * US)
        )
        self.assertEqual(0, len(self.watched))

    def test_unchecked_threads_come_first_next_time(self):
        requests = [self.held() for _ in range(5)]
        for one in requests:
            self.watched.add(one)
        self.kernel.calls.clear()
        for left in (True, True, True, True, False):
            self.assertEqual(left, self.watched.check(0))
        self.assertEqual(
            {one.tid for one in requests},
            {call[0] for call in self.kernel.calls},
        )
        self.assertEqual(5, len(self.kernel.calls))


class Alarms:
    """Alarms as they were set.

    :ivar set_ns: by thread; its event until then.
    :ivar mute: of whom the kernel does not tell.
    """

    def __init__(self):
        self.set_ns = {}
        self.mute = set()

    def __len__(self):
        return len(self.set_ns)

    def __contains__(self, tid):
        return tid in self.set_ns

    def add(self, tid, event):
        if tid in self.mute:
            raise PermissionError
        self.set_ns[tid] = event

    def set(self, tid, run_ns):
        assert tid in self.set_ns
        self.set_ns[tid] = run_ns

    def drop(self, tid):
        self.set_ns.pop(tid, None)


class TestAlarms(WatchedCase):
    """When threads are checked again, and which are silent."""

    CHECK_NS = 500 * US

    def setUp(self):
        super().setUp()
        self.watched = polling.Watched()
        self.watched.alarms = self.alarms = Alarms()

    def add(self, **fields):
        one = self.held(**fields)
        self.watched.add(one, _EVENT)
        return one

    def check(self):
        return self.watched.check(_LONG_NS, self.CHECK_NS)

    def test_after_what_is_left(self):
        one = self.add(left_ns=3 * MS)
        self.assertEqual([], self.watched.silent)
        self.assertEqual({one.tid: _EVENT}, self.alarms.set_ns)
        self.check()
        self.assertEqual({one.tid: 3_020 * US}, self.alarms.set_ns)
        self.kernel.threads[one.tid].left_ns = -50 * US
        self.watched.due([one.tid])
        self.check()
        self.assertEqual({one.tid: 3_970 * US}, self.alarms.set_ns)

    def test_who_has_none_is_silent(self):
        one, without = self.held(), self.held()
        self.alarms.mute.add(one.tid)
        self.watched.add(one, _EVENT)
        self.watched.add(without)
        other = self.add()
        self.assertEqual([one.tid, without.tid], self.watched.silent)
        self.check()
        self.assertEqual({other.tid}, set(self.alarms.set_ns))
        for silent in (one, without):
            self.assertEqual(4 * MS + 1, self.runtime_ns(silent))

    def test_an_event_that_is_not_wanted(self):
        event = os.open(os.devnull, os.O_RDONLY)
        self.watched.add(
            entering.Request(self.kernel.start(), 99 * US, 100 * US), event
        )
        self.assertRaises(OSError, os.fstat, event)

    def test_an_ended_thread_is_forgotten(self):
        one = self.add()
        # As for an ended thread: see Alarms.threads_of.
        self.alarms.drop(one.tid)
        self.kernel.end(one.tid)
        self.watched.due([one.tid])
        self.check()
        self.assertEqual(0, len(self.watched))

    def test_one_at_a_time(self):
        one, other = self.add(), self.add()
        self.check()
        for _ in range(3):
            self.watched.due([one.tid, other.tid])
        self.kernel.calls.clear()
        self.assertFalse(self.check())
        self.assertEqual(
            [one.tid, other.tid], [call[0] for call in self.kernel.calls]
        )

    def test_none_is_left_behind(self):
        one, other = self.add(), self.add(flags=syscalls.FLAG_RECLAIM)
        self.watched.forget(one.tid)
        self.assertEqual({other.tid}, set(self.alarms.set_ns))
        self.watched.add(other, _EVENT)
        self.assertEqual({other.tid}, set(self.alarms.set_ns))
        self.watched.forget_all()
        self.assertEqual({}, self.alarms.set_ns)
