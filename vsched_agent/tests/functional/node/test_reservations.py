# SPDX-License-Identifier: Apache-2.0

import os
import subprocess

from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.node import node_agent_case
from vsched_lib.contract import messages

State = messages.State


class TestReservations(node_agent_case.NodeAgentCase):
    """An agent, and three busy guests under KVM on two CPUs."""

    GUESTS = node_agent_case.competing()
    #: In emulation, over ten seconds.
    TOLERANCE = 0.03

    def setUp(self):
        super().setUp()
        self.reserved = self.vms['reserved']
        self.agent.await_said(self.reserved.uuid, state=State.APPLIED)

    def assert_share(self, expected, vm):
        got = agent_guests.measure(vm.vcpu_tids[:1], 10.0)
        self.assertLess(
            abs(got.shares[0] - expected), self.TOLERANCE + got.stolen, got
        )

    def test_deadline_changed_from_60_to_30_percent(self):
        self.assertEqual([(12_000, 20_000)], self.reserved.held())
        self.assert_share(0.6, self.reserved)
        mark = self.override(self.reserved, 6_000)
        self.agent.await_said(self.reserved.uuid, mark, state=State.APPLIED)
        self.assertEqual([(6_000, 20_000)], self.reserved.held())
        self.assert_share(0.3, self.reserved)

    def test_a_quota_and_back(self):
        """KVM's own thread shares the vCPU's group on some kernels."""
        found = self.reserved.quota()
        mark = self.override(self.reserved, 6_000, backend='cfs')
        self.agent.await_said(
            self.reserved.uuid,
            mark,
            state=State.APPLIED,
            enforced_backend='cfs',
        )
        self.assertEqual((6_000, 20_000), self.reserved.quota())
        got = agent_guests.measure(self.reserved.vcpu_tids, 5.0)
        self.assertLess(got.shares[0], 0.3 + self.TOLERANCE)
        mark = self.end_override(self.reserved)
        self.agent.await_said(
            self.reserved.uuid, mark, enforced_backend='deadline'
        )
        self.assertEqual(found, self.reserved.quota())

    def test_restored_and_held_again(self):
        """The agent leaves the node as it was found."""
        self.agent.stop()
        self.addCleanup(self.agent.start)
        self.assertEqual([(12_000, 20_000)], self.reserved.held())
        done = subprocess.run(
            [*self.agent.command, 'restore'],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual(
            self.found[self.reserved.spec.name], self.reserved.found()
        )

    def test_libvirt_groups(self):
        """What the other tests rely on: a scope of systemd's machined."""
        place = self.reserved.place()
        self.assertEqual(2, place.version)
        self.assertIn('/machine.slice/machine-qemu', place.path)
        self.assertTrue(os.path.exists(place.file('cpuset.cpus')))
