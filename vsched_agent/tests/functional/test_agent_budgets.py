# SPDX-License-Identifier: Apache-2.0

"""Budgets that an agent has checked between the kernel's ticks."""

import contextlib
import time

from vsched_agent.enforcement import capacity
from vsched_agent.privileged.budget_expiry import checking
from vsched_agent.privileged import syscalls
from vsched_agent.profiling import manager as host_profiles
from vsched_agent.profiling import withdrawal
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_lib.tests import error_profiles

Code = errors.Code
State = messages.State

CHECK_US = 500
_LOOKS = 200


class TestBudgets(agent_case.AgentCase):
    """A guest that burns, under 2 ms in 20 ms."""

    GUESTS = {'burning': {'load': 'burn'}}

    def setUp(self):
        super().setUp()
        self.vm = self.vms['burning']
        self.await_checkers(0)
        self.addCleanup(self.release_threads)
        self.restart_agent(enforcement__budget_check_us=CHECK_US)
        mark = self.collector.mark()
        self.want(2_000)
        # Its word must not be left to a successor.
        self.agent.await_said(
            self.vm.uuid, mark, state=State.APPLIED, enforced_runtime_us=2_000
        )
        self.await_held(2_000)

    def release_threads(self):
        self.vm.set_extra_specs({})
        self.collector.await_news(lambda: self.vm.held() == [None], 'release')

    def checkers(self):
        """Threads under SCHED_DEADLINE with a checker's parameters."""
        found = []
        wanted = checking.request(0, CHECK_US).attr
        for one in capacity.deadline_threads():
            with contextlib.suppress(ProcessLookupError):
                if syscalls.get_attr(one.tid) == wanted:
                    found.append(one.tid)
        return found

    def await_checkers(self, count):
        self.collector.await_news(
            lambda: len(self.checkers()) == count, '%d checkers' % count
        )

    def want(self, runtime_us):
        # The budgets of I/O threads are checked like those of vCPUs, and
        # would count with them.
        self.vm.set_extra_specs(
            {
                'cpu_runtime_us': runtime_us,
                'cpu_period_us': 20_000,
                'io_charging': 'none',
            }
        )

    def await_held(self, runtime_us):
        self.collector.await_news(
            lambda: self.vm.held() == [(runtime_us, 20_000)],
            '%d us' % runtime_us,
        )

    def assert_checked(self, yes=True):
        """The kernel is seen to hold two values in turn, or one."""
        (tid,) = self.vm.vcpu_tids
        found = set()
        give_up = time.monotonic() + agent_fixture.PATIENCE_S
        # The machine under this one may keep both from running.
        while not found or (
            yes and len(found) < 2 and time.monotonic() < give_up
        ):
            for _ in range(_LOOKS):
                found.add(syscalls.get_attr(tid))
                agent_guests.pause(0.0007)
        self.assertEqual(2 if yes else 1, len(found), found)
        self.assertEqual(
            1,
            len(
                {
                    syscalls.kernel_bandwidth(one.runtime_ns, one.period_ns)
                    for one in found
                }
            ),
            found,
        )

    def test_held_and_checked_without_drift(self):
        self.assert_checked()
        mark = self.collector.mark()
        self.agent.await_passes(4)
        self.assertEqual([], self.collector.vcpu_events(mark, self.vm.uuid))
        self.assertEqual([(2_000, 20_000)], self.vm.held())
        self.assert_share(0.1, self.vm)

    def test_the_checker_is_part_of_the_reserve(self):
        info = self.collector.await_news(
            lambda: next(
                (
                    one.host_info
                    for one in reversed(self.collector.reports)
                    # The last one may be of the agent before.
                    if one.host_info is not None
                    and one.host_info.budget_check_us == CHECK_US
                ),
                None,
            ),
            'the host',
        )
        part_mcpu = checking.reserve_mcpu()
        self.assertGreaterEqual(info.reserve_mcpu, part_mcpu)
        self.assertEqual(self.CAPACITY_MCPU - part_mcpu, info.capacity_mcpu)
        self.await_checkers(1)

    def told_us(self):
        """Return the last reported state of the checks."""
        return next(
            (
                one.host_info.budget_check_us
                for one in reversed(self.collector.reports)
                if one.host_info is not None
            ),
            None,
        )

    def measured_with(self, threads):
        """Have the agent find an error profile."""
        agent = self.agent.agent
        stored = host_profiles.error_profiles(agent._conf)
        facts = host_profiles.facts(agent._kernel, agent._conf)
        stored.keep(
            error_profiles.profile(
                [error_profiles.point([0] * 180, contenders=4)],
                version=stored.next_version(contract.ProfileSource.BENCHMARK),
                **{
                    **facts,
                    'features': {
                        **facts['features'],
                        certification.THREADS: threads,
                    },
                },
            )
        )

    def test_certificates_hold_for_as_many_threads_as_were_measured(self):
        self.patch(withdrawal, 'RESTORE_S', 0.0)
        certified = self.agent.agent._profiles.certified
        mark = self.collector.mark()
        self.measured_with(1)
        self.collector.await_news(lambda: bool(certified()), 'certificates')
        self.assertEqual(
            [], self.collector.events(mark, None, Code.CERTIFICATES_WITHDRAWN)
        )
        self.measured_with(0)
        event = self.agent.await_event(Code.CERTIFICATES_WITHDRAWN, None, mark)
        self.assertEqual(
            (1, 0),
            (event.figures['threads'], event.figures['certified_threads']),
        )
        self.assertEqual(frozenset(), certified())
        self.collector.await_news(lambda: self.told_us() == 0, 'the host')
        # What is in force stays.
        self.assertEqual([(2_000, 20_000)], self.vm.held())
        self.assert_checked()
        self.measured_with(1)
        self.agent.await_event(Code.CERTIFICATES_GRANTED, None, mark)
        self.assertTrue(certified())
        self.collector.await_news(
            lambda: self.told_us() == CHECK_US, 'the host'
        )

    def test_changed_live(self):
        began = self.collector.mark()
        for runtime_us in (3_000, 2_500, 4_000):
            self.want(runtime_us)
            self.await_held(runtime_us)
            self.assert_checked()
        mark = self.override(self.vm, 5_000)
        self.agent.await_said(
            self.vm.uuid, mark, state=State.APPLIED, enforced_runtime_us=5_000
        )
        self.assert_checked()
        self.assertEqual(
            [], self.collector.events(began, self.vm.uuid, Code.DRIFT_REPAIRED)
        )

    def test_a_foreign_hand_is_seen_and_repaired(self):
        (tid,) = self.vm.vcpu_tids
        mark = self.collector.mark()

        def seen():
            found = self.collector.events(
                mark, self.vm.uuid, Code.DRIFT_REPAIRED
            )
            if not found and self.vm.held() == [(2_000, 20_000)]:
                # A check that has begun before it undoes it.
                syscalls.set_attr(
                    tid, syscalls.get_attr(tid)._replace(runtime_ns=7_000_000)
                )
            return bool(found)

        self.collector.await_news(seen, 'the repair')
        self.await_held(2_000)
        self.assert_checked()

    def test_a_successor_checks_again(self):
        self.agent.stop()
        self.assertEqual([(2_000, 20_000)], self.vm.held())
        self.await_checkers(0)
        self.assert_checked(False)
        mark = self.collector.mark()
        self.agent.start()
        self.agent.await_passes()
        self.assertEqual(
            {Code.AGENT_STARTED},
            {one.code for one in self.collector.vcpu_events(mark)},
        )
        self.assert_checked()

    def test_an_agent_that_puts_back(self):
        self.agent.stop()
        self.agent.configure(
            restore_on_stop=True, enforcement__budget_check_us=CHECK_US
        )
        self.agent.start()
        self.await_held(2_000)
        self.agent.stop()
        self.assertEqual(self.found[self.vm.spec.name], self.vm.found())
        self.await_checkers(0)
