# SPDX-License-Identifier: Apache-2.0

"""Tests for a node as operators have it: systemd, cgroup v2 and KVM.

``tools/test.sh --node`` runs them in the lab node. They fail elsewhere.
"""

import os
import time
import typing as ty

import fixtures
from oslotest import base

from vsched_agent.enforcement import base as enforcement
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import partitions
from vsched_agent.host import cgroup
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_guests

#: The guests boot in an emulated node.
READY_S = 180.0
#: The longest wait for guest agents and for libvirt, likewise, in seconds.
ANSWER_S = 60.0
#: Only a leak takes as long, in seconds.
_SETTLE_S = 30.0


def require_node() -> None:
    """Fail where this is no such node.

    :raises AssertionError: with what is missing.
    """
    missing = [
        what
        for what, found in (
            ('systemd', os.path.isdir('/run/systemd/system')),
            ('cgroup v2 alone', cgroup.Cgroups().versions == {2}),
            ('/dev/kvm', os.path.exists('/dev/kvm')),
            ('/dev/vhost-net', os.path.exists('/dev/vhost-net')),
        )
        if not found
    ]
    if missing:
        raise AssertionError('this node has no %s' % ', no '.join(missing))


def remote_partitions() -> bool:
    """Return whether this kernel has partitions of single vCPUs."""
    return partitions.remote('/sys/fs/cgroup')


def sums() -> tuple[int, int]:
    """Return what the kernel admits in total, and what has leaked."""
    found = capacity.KernelCapacity().measured()
    return found.total_units, found.leaked_units


class NodeCase(base.BaseTestCase):
    """Guests under KVM, and a host that is left as it was found."""

    def setUp(self) -> None:
        super().setUp()
        require_node()
        agent_fixtures.require_libvirt(self)
        self._folder = self.useFixture(fixtures.TempDir()).path
        self.addCleanup(self.assert_sums, sums())

    def assert_sums(self, before: tuple[int, int]) -> None:
        """The kernel admits what it did, at once or soon.

        The bandwidth of a thread that has left the class is free up to a
        period later.
        """
        give_up = time.monotonic() + _SETTLE_S
        while (found := sums()) != before and time.monotonic() < give_up:
            agent_guests.pause(0.1)
        self.assertEqual(before, found)

    @staticmethod
    def make_guest(folder: str, **fields: ty.Any) -> agent_guests.Vm:
        """Return a guest under KVM that does not run yet."""
        return agent_guests.Vm(
            folder, virt_type='kvm', ready_timeout_s=READY_S, **fields
        )

    def guest(self, **fields: ty.Any) -> agent_guests.Vm:
        """Start a guest under KVM; it ends with the test."""
        vm = self.make_guest(self._folder, **fields)
        self.addCleanup(vm.stop)
        vm.start()
        return vm

    def targets(self, vm: agent_guests.Vm) -> list[enforcement.Target]:
        """Return its vCPUs, pinned as its definition has it."""
        return [
            enforcement.Target(index, tid, vm.spec.pins.get(index))
            for index, tid in enumerate(vm.vcpu_tids)
        ]
