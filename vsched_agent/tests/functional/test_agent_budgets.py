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

"""Budgets that an agent has looked at between the kernel's ticks."""

import contextlib

from vsched_agent.enforcement import capacity
from vsched_agent.privileged import checking
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.contract import messages

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
        self.assertEqual([], self.checkers())
        self.addCleanup(self.let_go)
        self.restart_agent(enforcement__budget_check_us=CHECK_US)
        mark = self.collector.mark()
        self.want(2_000)
        # Its word must not be left to a successor.
        self.agent.await_said(self.vm.uuid, mark, state=State.APPLIED,
                              enforced_runtime_us=2_000)
        self.await_held(2_000)

    def let_go(self):
        self.vm.set_extra_specs({})
        self.collector.await_news(
            lambda: self.vm.held() == [None], 'release')

    def checkers(self):
        """Threads under SCHED_DEADLINE with a checker's parameters."""
        found = []
        wanted = checking.request(0, CHECK_US).attr
        for one in capacity.deadline_threads():
            with contextlib.suppress(ProcessLookupError):
                if syscalls.get_attr(one.tid) == wanted:
                    found.append(one.tid)
        return found

    def want(self, runtime_us):
        self.vm.set_extra_specs({
            'cpu_runtime_us': runtime_us, 'cpu_period_us': 20_000})

    def await_held(self, runtime_us):
        self.collector.await_news(
            lambda: self.vm.held() == [(runtime_us, 20_000)],
            '%d us' % runtime_us)

    def assert_looked_at(self, yes=True):
        """The kernel is seen to hold two values in turn, or one."""
        tid, = self.vm.vcpu_tids
        found = set()
        for _ in range(_LOOKS):
            found.add(syscalls.get_attr(tid))
            agent_guests.pause(0.0007)
        self.assertEqual(2 if yes else 1, len(found), found)
        self.assertEqual(1, len({
            syscalls.kernel_bandwidth(one.runtime_ns, one.period_ns)
            for one in found}), found)

    def test_held_and_looked_at_without_drift(self):
        self.assert_looked_at()
        mark = self.collector.mark()
        self.agent.await_passes(4)
        self.assertEqual([], self.collector.events(mark, self.vm.uuid))
        self.assertEqual([(2_000, 20_000)], self.vm.held())
        self.assert_share(0.1, self.vm)

    def test_who_looks_is_part_of_the_reserve(self):
        info = self.collector.await_news(
            lambda: next((one.host_info for one in
                          reversed(self.collector.reports)
                          if one.host_info is not None), None), 'the host')
        self.assertEqual(CHECK_US, info.budget_check_us)
        part_mcpu = 1_000 // checking.PART
        self.assertGreaterEqual(info.reserve_mcpu, part_mcpu)
        self.assertEqual(
            self.CAPACITY_MCPU - part_mcpu, info.capacity_mcpu)
        self.assertEqual(1, len(self.checkers()))

    def test_changed_live(self):
        began = self.collector.mark()
        for runtime_us in (3_000, 2_500, 4_000):
            self.want(runtime_us)
            self.await_held(runtime_us)
            self.assert_looked_at()
        mark = self.override(self.vm, 5_000)
        self.agent.await_said(self.vm.uuid, mark, state=State.APPLIED,
                              enforced_runtime_us=5_000)
        self.assert_looked_at()
        self.assertEqual([], self.collector.events(
            began, self.vm.uuid, Code.DRIFT_REPAIRED))

    def test_a_foreign_hand_is_seen_and_repaired(self):
        tid, = self.vm.vcpu_tids
        mark = self.collector.mark()
        syscalls.set_attr(tid, syscalls.get_attr(tid)._replace(
            runtime_ns=7_000_000))
        self.agent.await_event(Code.DRIFT_REPAIRED, self.vm.uuid, mark)
        self.await_held(2_000)
        self.assert_looked_at()

    def test_a_successor_looks_again(self):
        self.agent.stop()
        self.assertEqual([(2_000, 20_000)], self.vm.held())
        self.assert_looked_at(False)
        self.assertEqual([], self.checkers())
        mark = self.collector.mark()
        self.agent.start()
        self.agent.await_passes()
        self.assertEqual({Code.AGENT_STARTED}, {
            one.code for one in self.collector.events(mark)})
        self.assert_looked_at()

    def test_an_agent_that_puts_back(self):
        self.agent.stop()
        self.agent.configure(
            restore_on_stop=True, enforcement__budget_check_us=CHECK_US)
        self.agent.start()
        self.await_held(2_000)
        self.agent.stop()
        self.assertEqual(self.found[self.vm.spec.name], self.vm.found())
        self.assertEqual([], self.checkers())
