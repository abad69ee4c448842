# SPDX-License-Identifier: Apache-2.0

import errno
import itertools
import random
import threading
import time

import ddt
from oslotest import base

from vsched_agent.privileged.budget_expiry import budgets
from vsched_agent.privileged.budget_expiry import polling
from vsched_agent.privileged import entering
from vsched_agent.privileged import leaving
from vsched_agent.privileged import reclaiming
from vsched_agent.privileged import syscalls
from vsched_agent.tests import fake_kernel
from vsched_agent.tests import in_process

MS = 1_000_000
RECLAIM = syscalls.FLAG_RECLAIM
STEP_S = 0.001


class TestSample(base.BaseTestCase):
    def saturated(self, cpus, runnable, wanting, running):
        return reclaiming.Sample(cpus, runnable, wanting, running).saturated

    def test_nobody_else(self):
        self.assertFalse(self.saturated(2, 0, 0, 0))
        # They wait for each other.
        self.assertFalse(self.saturated(2, 3, 3, 3))

    def test_a_cpu_for_everybody(self):
        self.assertFalse(self.saturated(2, 2, 1, 1))
        self.assertFalse(self.saturated(2, 1, 1, 0))

    def test_one_too_many(self):
        self.assertTrue(self.saturated(2, 3, 1, 1))
        self.assertTrue(self.saturated(2, 2, 1, 0))

    def test_a_sleeper_would_take_one(self):
        self.assertTrue(self.saturated(2, 2, 0, 0))
        self.assertFalse(self.saturated(2, 1, 0, 0))


class Host:
    """CPUs shared by work-conserving and ordinary threads, by the step.

    :param busy: by time in seconds, how many ordinary threads want to run.
    """

    CPUS, GUARANTEE, MOST = 2, 0.3, 0.95

    def __init__(self, busy, watched=1):
        self.busy = busy
        self.watched = watched
        self.policy = reclaiming.Policy(0.0)
        self.ordinary_s = self.capped_s = self.got_s = 0.0
        self.on_at = []

    def run(self, seconds):
        due_s, was = 0.0, False
        for step in range(int(seconds / STEP_S)):
            now_s = step * STEP_S
            wanted = self.busy(now_s)
            if now_s >= due_s:
                # Without the flag a thread is throttled most of the time.
                running = (
                    self.watched
                    if self.policy.on or (now_s % 0.1 < 0.1 * self.GUARANTEE)
                    else 0
                )
                on = self.policy.take(
                    reclaiming.Sample(
                        self.CPUS, wanted + running, self.watched, running
                    ),
                    now_s,
                )
                if on != was:
                    self.on_at.append((now_s, on))
                    was = on
                due_s = now_s + self.policy.interval_s
            capped = self.watched * self.GUARANTEE
            used = (
                min(self.watched * self.MOST, self.MOST * self.CPUS)
                if (self.policy.on)
                else capped
            )
            self.ordinary_s += STEP_S * min(wanted, self.CPUS - used)
            self.capped_s += STEP_S * min(wanted, self.CPUS - capped)
            self.got_s += STEP_S * used
        return self

    @property
    def loss(self):
        return 1 - self.ordinary_s / self.capped_s


@ddt.ddt
class TestPolicy(base.BaseTestCase):
    def test_an_idle_host(self):
        host = Host(lambda now_s: 0).run(10)
        self.assertEqual(1, len(host.on_at))
        self.assertLess(host.on_at[0][0], 0.5)
        self.assertGreater(host.got_s / 10, 0.9)

    def test_room_beside_an_ordinary_thread(self):
        host = Host(lambda now_s: 1).run(10)
        self.assertGreater(host.got_s / 10, 0.9)
        self.assertEqual(0, host.loss)

    def test_a_busy_host(self):
        host = Host(lambda now_s: 4).run(10)
        self.assertEqual([], host.on_at)
        self.assertAlmostEqual(0.3, host.got_s / 10)

    @ddt.data(0.1, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.3, 2.0, 4.0)
    def test_bursts_lose_little(self, period_s):
        for threads in (2, 4):
            host = Host(
                lambda now_s, threads=threads: (
                    threads if (now_s % period_s < period_s / 2) else 0
                )
            ).run(60)
            self.assertLess(host.loss, 0.02)

    @ddt.data(0.6, 0.7, 0.8, 1.0, 2.0)
    def test_bursts_lose_little_to_two(self, period_s):
        host = Host(
            lambda now_s: 4 if now_s % period_s < period_s / 2 else 0,
            watched=2,
        ).run(60)
        self.assertLess(host.loss, 0.02)

    @ddt.data(0.03, 0.06, 0.1, 0.15, 0.3, 1.0)
    def test_short_bursts_lose_little_of_the_host(self, period_s):
        for length_s in (0.01, 0.02, 0.03, 0.05):
            if length_s >= period_s:
                continue
            host = Host(
                lambda now_s, length_s=length_s: (
                    4 if now_s % period_s < length_s else 0
                )
            ).run(30)
            lost_s = host.capped_s - host.ordinary_s
            self.assertLess(lost_s / (30 * host.CPUS), 0.01)

    @ddt.data(0.006, 0.010)
    def test_short_waits_cost_an_idle_host_little(self, length_s):
        # Two threads of the host run for a moment each second or so.
        for seed in range(3):
            random_ = random.Random(seed)
            steps = set()
            at_s = 0.0
            while at_s < 30:
                at_s += random_.uniform(0.7, 1.7)
                first = round(at_s / STEP_S)
                steps.update(range(first, first + round(length_s / STEP_S)))
            host = Host(
                lambda now_s, steps=steps: (
                    2 if round(now_s / STEP_S) in steps else 0
                )
            ).run(30)
            self.assertGreater(host.got_s / 30, 0.9)

    def test_the_flag_follows_within_a_second(self):
        edges = [0, 5, 7, 13, 14, 21]
        host = Host(
            lambda now_s: (
                4 if sum(now_s >= edge for edge in edges) % 2 == 0 else 0
            )
        ).run(30)
        self.assertEqual(len(edges), len(host.on_at))
        for edge, (at_s, on) in zip(edges, host.on_at, strict=True):
            self.assertLess(at_s - edge, 0.8 if on else 0.03)

    def test_short_waits_are_endured(self):
        # Something runs for 1 ms every 250 ms on a host with no idle CPU.
        host = Host(lambda now_s: 2 if now_s % 0.25 < 0.001 else 1)
        host.run(20)
        self.assertGreater(host.got_s / 20, 0.9)

    def test_the_agent_is_silent(self):
        policy = reclaiming.Policy(0.0)
        sample = reclaiming.Sample(2, 0, 1, 0)
        for step in range(100):
            policy.take(sample, step * 0.02)
        self.assertTrue(policy.on)
        policy.clear()
        self.assertFalse(policy.on)


class TestGovernor(base.BaseTestCase):
    """The real thread, on a kernel that is not."""

    def setUp(self):
        super().setUp()
        self.kernel = self.useFixture(fake_kernel.FakeKernel())
        self.patch(leaving.time, 'sleep', lambda seconds: None)
        self.runnable = 0
        self.patch(
            reclaiming._Runnable,
            'read',
            lambda this, now_s: (2, self.runnable),
        )
        manager = in_process.entrypoints(budgets.budgets_pctxt)
        manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.addCleanup(budgets.stop)

    def held(self):
        request = entering.Request(
            self.kernel.start(state='R'), 4 * MS, 20 * MS
        )
        self.kernel.threads[request.tid].attr = request.attr
        return request

    def flags(self, request):
        return self.kernel.threads[request.tid].attr.flags & RECLAIM

    def await_flags(self, request, flags):
        give_up = time.monotonic() + 60
        while self.flags(request) != flags:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.001)

    def test_set_and_cleared(self):
        one, other = self.held(), self.held()
        self.assertEqual(0, budgets.reclaim([one, other]))
        self.await_flags(one, RECLAIM)
        self.await_flags(other, RECLAIM)
        self.runnable = 4
        self.await_flags(one, 0)
        self.await_flags(other, 0)
        self.assertEqual(
            {
                'on': False,
                'watched': 2,
                'sampling': True,
                'switches': 2,
                'refused': {},
            },
            {**budgets.renew(), 'switches': 2},
        )

    def test_no_call_while_nothing_changes(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        self.kernel.calls.clear()
        time.sleep(0.2)
        self.assertEqual([], self.kernel.calls)

    def test_forgotten_ones_lose_it(self):
        one, other = self.held(), self.held()
        budgets.reclaim([one, other])
        self.await_flags(one, RECLAIM)
        self.assertEqual((tuple(one),), budgets.stop_reclaiming([one.tid, 1]))
        self.assertEqual(0, self.flags(one))
        self.assertEqual(RECLAIM, self.flags(other))

    def test_all_lose_it_in_the_end(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        budgets.stop()
        self.assertEqual(0, self.flags(one))
        self.assertNotIn(
            reclaiming.COMM, [thread.name for thread in threading.enumerate()]
        )

    def test_the_lease_ends(self):
        self.patch(reclaiming, 'LEASE_S', 3.0)
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        self.await_flags(one, 0)
        give_up = time.monotonic() + 60
        while not self.flags(one):
            self.assertLess(time.monotonic(), give_up)
            budgets.renew()
            time.sleep(0.001)

    def test_what_others_changed_is_left_alone(self):
        one = self.held()
        foreign = one._replace(runtime_ns=5 * MS).attr
        self.kernel.threads[one.tid].attr = foreign
        budgets.reclaim([one])
        time.sleep(0.5)
        self.assertEqual(foreign, self.kernel.get_attr(one.tid))
        self.assertEqual(0, budgets.renew()['watched'])

    def test_pinned_ones_are_told_of(self):
        one = self.held()
        self.kernel.threads[one.tid].cpus = frozenset((1,))
        budgets.reclaim([one])
        give_up = time.monotonic() + 60
        while budgets.renew()['refused'] != {one.tid: errno.EPERM}:
            self.assertLess(time.monotonic(), give_up)
            time.sleep(0.001)

    def test_no_room_for_the_sampler(self):
        def no_room(tid):
            raise OSError(errno.EBUSY, 'full')

        self.patch(reclaiming, '_enter', no_room)
        one = self.held()
        self.assertEqual(errno.EBUSY, budgets.reclaim([one]))
        self.assertEqual(0, self.flags(one))
        self.assertFalse(budgets.renew()['sampling'])

    def test_a_thread_ends(self):
        one, other = self.held(), self.held()
        budgets.reclaim([one, other])
        self.kernel.end(one.tid)
        self.await_flags(other, RECLAIM)
        self.assertEqual(1, budgets.renew()['watched'])

    def test_looks_go_on(self):
        one = self.held()
        self.assertEqual(0, budgets.watch([one], 500))
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        for flags in (RECLAIM, 0):
            with self.subTest(flags=flags):
                seen = set()
                give_up = time.monotonic() + 60
                while len(seen) < 2:
                    self.assertLess(time.monotonic(), give_up)
                    seen.add(self.kernel.get_attr(one.tid))
                self.assertEqual(
                    {flags}, {attr.flags & RECLAIM for attr in seen}
                )
                self.runnable = 4
                self.await_flags(one, 0)

    def test_looks_begin_later(self):
        one = self.held()
        budgets.reclaim([one])
        self.await_flags(one, RECLAIM)
        budgets.watch([one], 500)
        seen = set()
        give_up = time.monotonic() + 60
        while len(seen) < 2:
            self.assertLess(time.monotonic(), give_up)
            seen.add(self.kernel.get_attr(one.tid))


class TestSetFlags(base.BaseTestCase):
    def test_either_parameters_are_kept(self):
        kernel = self.useFixture(fake_kernel.FakeKernel())
        request = entering.Request(kernel.start(), 4 * MS, 20 * MS)
        watched = polling.Watched()
        for attr, flags in itertools.product(
            (request.attr, polling.alternate(request.attr)), (RECLAIM, 0)
        ):
            kernel.threads[request.tid].attr = attr
            self.assertTrue(watched.set_flags(request, flags))
            self.assertEqual(
                attr._replace(flags=attr.flags | flags),
                kernel.get_attr(request.tid),
            )
