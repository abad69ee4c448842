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

import errno
import threading
import time

import ddt
from oslotest import base

from vsched_agent.privileged import budgets
from vsched_agent.privileged import checking
from vsched_agent.privileged import context
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel

US = 1_000
MS = 1_000_000
#: More CPU time than a test takes.
_LONG_NS = 1 << 60


def attr(runtime_ns, period_ns, flags=syscalls.FLAG_RESET_ON_FORK):
    return syscalls.Attr(syscalls.SCHED_DEADLINE, flags, 0, 0,
                         runtime_ns, period_ns, period_ns)


def units(one):
    return syscalls.kernel_bandwidth(one.runtime_ns, one.period_ns)


@ddt.ddt
class TestAlternate(base.BaseTestCase):

    @ddt.data(2_100, 5_000, 10_000, 20_000, 100_000, 1_000_000, 4_000_000)
    def test_a_nanosecond_of_runtime(self, period_us):
        for part in range(1, 1_000):
            one = attr(max(1_024, period_us * part), period_us * US)
            other = checking.alternate(one)
            self.assertEqual(1, abs(other.runtime_ns - one.runtime_ns))
            self.assertEqual(
                (one.period_ns, one.period_ns, units(one)),
                (other.period_ns, other.deadline_ns, units(other)))

    @ddt.data(250, 500, 1_000, 1_250, 2_000)
    def test_short_periods(self, period_us):
        most_us = period_us * min(period_us, 1_000) * 47 // 100_000
        for runtime_us in range(2, most_us + 1):
            one = attr(runtime_us * US, period_us * US)
            other = checking.alternate(one)
            self.assertEqual(units(one), units(other))
            self.assertNotEqual(one, other)
            self.assertEqual(other.period_ns, other.deadline_ns)
            self.assertLessEqual(abs(other.runtime_ns - one.runtime_ns), 1)
            self.assertLessEqual(abs(other.period_ns - one.period_ns), 1)

    def test_all_that_the_kernel_takes(self):
        for runtime_ns, period_ns in ((1_024, 20 * MS),
                                      (20 * MS - 1, 20 * MS)):
            other = checking.alternate(attr(runtime_ns, period_ns))
            self.assertGreaterEqual(other.runtime_ns, 1_024)
            self.assertLessEqual(other.runtime_ns, other.deadline_ns)

    def test_none(self):
        for runtime_us, period_us in ((99, 100), (20_000, 20_000)):
            self.assertIsNone(checking.alternate(
                attr(runtime_us * US, period_us * US)))


class WatchedCase(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())

    def held(self, runtime_ns=4 * MS, flags=0, **fields):
        request = entering.Request(
            self.kernel.start(**fields), runtime_ns, 20 * MS, flags)
        self.kernel.threads[request.tid].attr = request.attr
        return request

    def runtime_ns(self, request):
        return self.kernel.get_attr(request.tid).runtime_ns


class TestWatched(WatchedCase):

    def setUp(self):
        super().setUp()
        self.watched = checking.Watched()

    def look(self):
        self.watched.look(_LONG_NS)

    def test_each_look_is_a_change(self):
        one = self.held(flags=syscalls.FLAG_RECLAIM)
        self.watched.add(one)
        found, free = [], self.kernel.free
        for _ in range(4):
            self.look()
            found.append(self.runtime_ns(one))
            self.assertEqual(free, self.kernel.free)
        self.assertEqual([4 * MS + 1, 4 * MS] * 2, found)
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def test_exact_again_when_forgotten(self):
        one = self.held()
        self.watched.add(one)
        self.look()
        self.assertEqual(one, self.watched.forget(one.tid))
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))
        self.assertIsNone(self.watched.forget(one.tid))
        self.kernel.calls.clear()
        self.look()
        self.assertEqual([], self.kernel.calls)

    def test_what_is_gone_is_forgotten(self):
        one, other = self.held(), self.held()
        for request in (one, other):
            self.watched.add(request)
        self.kernel.end(one.tid)
        self.look()
        self.assertEqual(1, len(self.watched))
        self.assertEqual(4 * MS + 1, self.runtime_ns(other))

    def test_what_others_changed_is_left_alone(self):
        for changed in (attr(5 * MS, 20 * MS), attr(4 * MS, 30 * MS),
                        attr(4 * MS, 20 * MS, syscalls.FLAG_RECLAIM),
                        syscalls.Attr(syscalls.SCHED_OTHER)):
            one = self.held()
            self.watched.add(one)
            self.look()
            self.kernel.threads[one.tid].attr = changed
            self.look()
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
        self.look()
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))
        self.assertEqual(0, len(self.watched))

    def test_without_an_alternate(self):
        self.watched.add(entering.Request(
            self.kernel.start(), 99 * US, 100 * US))
        self.assertEqual(0, len(self.watched))

    def test_those_not_seen_come_first_the_next_time(self):
        requests = [self.held() for _ in range(5)]
        for one in requests:
            self.watched.add(one)
        self.kernel.calls.clear()
        for _ in requests:
            self.watched.look(0)
        self.assertEqual({one.tid for one in requests},
                         {call[0] for call in self.kernel.calls})
        self.assertEqual(5, len(self.kernel.calls))


class TestChecker(WatchedCase):
    """The real thread, on a kernel that is not."""

    def setUp(self):
        super().setUp()
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        manager = context.in_process(budgets.budgets_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.addCleanup(budgets.stop)

    def await_looks(self, count=4):
        done = len(self.kernel.calls) + count
        give_up = time.monotonic() + 10
        while len(self.kernel.calls) < done:
            self.assertLess(time.monotonic(), give_up)
            threading.Event().wait(0.001)

    def checkers(self):
        return [one for one in threading.enumerate()
                if one.name == 'budgets']

    def test_it_looks_holding_a_tenth(self):
        one = self.held()
        held = self.kernel.used
        self.assertEqual(0, budgets.watch([tuple(one)], 500))
        self.assertEqual(fake_kernel.CPU // 10, self.kernel.used - held)
        self.await_looks()
        self.assertEqual((tuple(one),), budgets.forget([one.tid]))
        self.kernel.calls.clear()
        threading.Event().wait(0.02)
        self.assertEqual([], [call for call in self.kernel.calls
                              if call[0] == one.tid])
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def test_it_ends_when_there_is_nothing_to_look_at(self):
        one = self.held()
        budgets.watch([tuple(one)], 500)
        checker, = self.checkers()
        budgets.forget([one.tid])
        checker.join(10)
        self.assertEqual([], self.checkers())
        self.kernel.end(one.tid)
        self.assertEqual(self.kernel.leaked, self.kernel.used)
        # ... and comes again.
        again = self.held()
        budgets.watch([tuple(again)], 500)
        self.await_looks()

    def test_another_interval(self):
        one = self.held()
        budgets.watch([tuple(one)], 500)
        budgets.watch([], 1_000)
        budgets.watch([tuple(one)], 1_000)
        self.assertEqual(1, len(self.checkers()))
        self.assertIn((50 * US * 2, 1_000 * US), [
            call[2:] for call in self.kernel.calls])
        self.await_looks()

    def test_a_full_kernel(self):
        one = self.held()
        self.kernel.bound = self.kernel.used
        self.assertEqual(errno.EBUSY, budgets.watch([tuple(one)], 500))
        self.assertEqual([], self.checkers())
        self.assertEqual((), budgets.forget([one.tid]))
        self.assertEqual(one.attr, self.kernel.get_attr(one.tid))

    def test_nothing_to_do(self):
        self.assertEqual(0, budgets.watch([], 500))
        self.assertEqual([], self.checkers())
        budgets.stop()
