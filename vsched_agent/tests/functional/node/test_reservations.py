# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
import typing as ty

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.node import node_case
from vsched_lib.contract import messages

State = messages.State


class TestReservations(agent_case.AgentCase):
    """An agent, and three busy guests under KVM on two CPUs."""

    GUESTS = {
        name: {
            'load': 'burn',
            'virt_type': 'kvm',
            'ready_timeout_s': node_case.READY_S,
            **fields,
        }
        for name, fields in {
            'promised': {'extra_specs': {'vsched:cpu_runtime_us': '12000'}},
            'plain': {},
            'other': {},
        }.items()
    }
    #: Commands wait as long for their first connection to libvirt.
    AGENT: ty.ClassVar = {'hypervisor__call_timeout': node_case.ANSWER_S}
    #: In emulation, over ten seconds.
    TOLERANCE = 0.03

    @classmethod
    def setUpClass(cls):
        node_case.require_node()
        super().setUpClass()

    def setUp(self):
        super().setUp()
        self.promised = self.vms['promised']
        self.agent.await_said(self.promised.uuid, state=State.APPLIED)

    def assert_share(self, expected, vm):
        got = agent_guests.measure(vm.vcpu_tids[:1], 10.0)
        self.assertLess(
            abs(got.shares[0] - expected), self.TOLERANCE + got.stolen, got
        )

    def test_deadline_changed_from_60_to_30_percent(self):
        self.assertEqual([(12_000, 20_000)], self.promised.held())
        self.assert_share(0.6, self.promised)
        mark = self.override(self.promised, 6_000)
        self.agent.await_said(self.promised.uuid, mark, state=State.APPLIED)
        self.assertEqual([(6_000, 20_000)], self.promised.held())
        self.assert_share(0.3, self.promised)

    def test_a_quota_and_back(self):
        """KVM's own thread shares the vCPU's group on some kernels."""
        found = self.promised.quota()
        mark = self.override(self.promised, 6_000, backend='cfs')
        self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            enforced_backend='cfs',
        )
        self.assertEqual((6_000, 20_000), self.promised.quota())
        got = agent_guests.measure(self.promised.vcpu_tids, 5.0)
        self.assertLess(got.shares[0], 0.3 + self.TOLERANCE)
        mark = self.end_override(self.promised)
        self.agent.await_said(
            self.promised.uuid, mark, enforced_backend='deadline'
        )
        self.assertEqual(found, self.promised.quota())

    def test_restored_and_held_again(self):
        """The agent leaves the node as it was found."""
        self.agent.stop()
        self.addCleanup(self.agent.start)
        self.assertEqual([(12_000, 20_000)], self.promised.held())
        done = subprocess.run(
            [*self.agent.command, 'restore'],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual(
            self.found[self.promised.spec.name], self.promised.found()
        )

    def test_libvirt_groups(self):
        """What the other tests rely on: a scope of systemd's machined."""
        place = self.promised.place()
        self.assertEqual(2, place.version)
        self.assertIn('/machine.slice/machine-qemu', place.path)
        self.assertTrue(os.path.exists(place.file('cpuset.cpus')))
