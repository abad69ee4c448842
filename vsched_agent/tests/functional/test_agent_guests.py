# SPDX-License-Identifier: Apache-2.0

"""Guests that start anew, grow, or are pinned, while the agent runs."""

import os

import libvirt

from vsched_agent.tests.functional import agent_case
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State
Code = errors.Code


class TestGuestLives(agent_case.AgentCase):
    """What a guest goes through."""

    GUESTS = {
        'growing': {
            'load': 'idle',
            'max_vcpus': 4,
            'extra_specs': {'vsched:cpu_runtime_us': '4000'},
        },
        'restarted': {
            'load': 'idle',
            'extra_specs': {'vsched:cpu_runtime_us': '18000'},
        },
    }

    def setUp(self):
        super().setUp()
        self.growing = self.vms['growing']
        self.restarted = self.vms['restarted']
        for vm in self.vms.values():
            self.agent.await_said(vm.uuid, state=State.APPLIED)

    def test_vcpus_that_are_plugged_in(self):
        live = libvirt.VIR_DOMAIN_AFFECT_LIVE
        tids = self.growing.vcpu_tids
        self.assertEqual(1, len(tids))
        mark = self.collector.mark()
        self.growing.handle.setVcpusFlags(2, live)
        said = self.agent.await_said(
            self.growing.uuid, mark, vcpus=2, state=State.APPLIED
        )
        self.assertEqual('deadline', said.enforced_backend)
        self.assertEqual([(4_000, 20_000)] * 2, self.growing.held())
        self.assertEqual(tids, self.growing.vcpu_tids[:1])
        (event,) = self.collector.vcpu_events(mark, self.growing.uuid)
        self.assertIn('2 vCPUs', event.detail)
        # Beyond what there is room for: those that had it keep it.
        mark = self.override(self.growing, 8_000)
        self.agent.await_said(
            self.growing.uuid,
            mark,
            state=State.APPLIED,
            enforced_runtime_us=8_000,
        )
        mark = self.collector.mark()
        self.growing.handle.setVcpusFlags(3, live)
        said = self.agent.await_said(
            self.growing.uuid, mark, vcpus=3, state=State.REFUSED
        )
        self.assertEqual(Code.DOES_NOT_FIT, said.code)
        self.assertEqual([(8_000, 20_000)] * 2 + [None], self.growing.held())
        mark = self.end_override(self.growing)
        self.agent.await_said(
            self.growing.uuid, mark, vcpus=3, state=State.APPLIED
        )
        self.assertEqual([(4_000, 20_000)] * 3, self.growing.held())

    def _boots_again(self, how):
        mark, tids = self.collector.mark(), self.restarted.vcpu_tids
        readies = self.restarted.readies()
        how()
        self.restarted.await_readies(readies + 1)
        self.agent.await_passes()
        self.assertEqual(
            [], self.collector.vcpu_events(mark, self.restarted.uuid)
        )
        self.assertEqual(tids, self.restarted.vcpu_tids)
        self.assertEqual([(18_000, 20_000)], self.restarted.held())

    def test_a_reset(self):
        self._boots_again(self.restarted.handle.reset)

    def test_a_reboot_from_within(self):
        self._boots_again(
            lambda: self.restarted.execute('/bin/busybox', 'reboot', '-f')
        )

    def test_destroyed_and_started_again(self):
        vm, mark = self.restarted, self.collector.mark()
        vm.stop()
        self.collector.await_news(
            lambda: any(
                report.instances is not None
                and all(
                    one.instance_uuid != vm.uuid for one in report.instances
                )
                for report in self.collector.reports[mark:]
            ),
            'its end',
        )
        mark = self.collector.mark()
        vm.start()
        self.agent.await_said(vm.uuid, mark, state=State.APPLIED)
        self.assertEqual([(18_000, 20_000)], vm.held())
        self.agent.await_passes(1)
        self.assertEqual(
            [Code.RESERVATION_APPLIED],
            [one.code for one in self.collector.vcpu_events(mark, vm.uuid)],
        )

    def test_started_again_while_the_agent_was_away(self):
        vm = self.restarted
        self.agent.stop()
        vm.stop()
        vm.start()
        self.assertEqual([None], vm.held())
        mark = self.collector.mark()
        self.agent.start()
        self.collector.await_news(
            lambda: vm.held() == [(18_000, 20_000)], 'a new promise'
        )
        said = self.agent.await_said(vm.uuid, mark, state=State.APPLIED)
        self.assertEqual('deadline', said.enforced_backend)


class TestPinned(agent_case.AgentCase):
    """Guests whose definition confines them to a CPU."""

    GUESTS = {
        'pinned': {
            'load': 'burn',
            'pins': {0: frozenset({1})},
            'extra_specs': {'vsched:cpu_runtime_us': '8000'},
        },
        'plain': {'load': 'idle', 'pins': {0: frozenset({1})}},
    }

    def assert_on(self, cpu, vm):
        self.assertEqual(str(cpu), vm.place('cpuset').read('cpuset.cpus'))
        for tid in vm.vcpu_tids:
            self.assertEqual({cpu}, os.sched_getaffinity(tid))

    def test_held_and_changed_on_its_cpu(self):
        vm = self.vms['pinned']
        said = self.agent.await_said(vm.uuid, state=State.APPLIED)
        self.assertEqual('deadline', said.enforced_backend)
        self.assertEqual([(8_000, 20_000)], vm.held())
        self.assert_on(1, vm)
        self.assert_share(0.4, vm)
        for runtime_us in (4_000, 12_000):
            mark = self.override(vm, runtime_us)
            self.agent.await_said(
                vm.uuid,
                mark,
                state=State.APPLIED,
                enforced_runtime_us=runtime_us,
            )
            self.assertEqual([(runtime_us, 20_000)], vm.held())
            self.assert_on(1, vm)
        mark = self.end_override(vm)
        self.agent.await_said(vm.uuid, mark, enforced_runtime_us=8_000)
        self.assert_on(1, vm)

    def test_given_to_one_without_and_taken_back(self):
        vm = self.vms['plain']
        found = vm.found()
        mark = self.override(vm, 6_000)
        self.agent.await_said(vm.uuid, mark, state=State.APPLIED)
        self.assertEqual([(6_000, 20_000)], vm.held())
        self.assert_on(1, vm)
        mark = self.end_override(vm)
        self.agent.await_said(vm.uuid, mark, state=State.RELEASED)
        self.assertEqual(found, vm.found())
        self.assert_on(1, vm)

    def test_one_cpu_holds_no_more_than_its_part(self):
        vm = self.vms['plain']
        found = vm.found()
        self.agent.await_said(self.vms['pinned'].uuid, state=State.APPLIED)
        mark = self.override(vm, 12_000)
        said = self.agent.await_said(vm.uuid, mark, state=State.REFUSED)
        self.assertEqual(Code.DOES_NOT_FIT, said.code)
        self.assertIn('CPU 1', said.detail)
        self.assertEqual(1, said.figures['cpu'])
        self.assertEqual(found, vm.found())

    def test_quotas_need_no_care(self):
        vm = self.vms['plain']
        found = vm.found()
        mark = self.override(vm, 6_000, backend='cfs')
        self.agent.await_said(vm.uuid, mark, state=State.APPLIED)
        self.assertEqual((6_000, 20_000), vm.quota())
        self.assert_on(1, vm)
        mark = self.end_override(vm)
        self.agent.await_said(vm.uuid, mark, state=State.RELEASED)
        self.assertEqual(found, vm.found())
