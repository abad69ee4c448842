# SPDX-License-Identifier: Apache-2.0

"""Tests of a whole agent on a node as operators have it."""

import typing as ty

from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional.node import node_case


def busy(**fields: ty.Any) -> dict[str, ty.Any]:
    """Return the fields of a busy guest under KVM.

    :param fields: others, of the guest's description.
    """
    return {
        'load': 'burn',
        'virt_type': 'kvm',
        'ready_timeout_s': node_case.READY_S,
        **fields,
    }


def competing() -> dict[str, dict[str, ty.Any]]:
    """Return three busy guests for two CPUs, one with 60 % reserved."""
    return {
        'reserved': busy(extra_specs={'vsched:cpu_runtime_us': '12000'}),
        'plain': busy(),
        'other': busy(),
    }


class NodeAgentCase(agent_case.AgentCase):
    """An agent and guests under KVM."""

    #: Commands wait as long for their first connection to libvirt.
    AGENT: ty.ClassVar = {'hypervisor__call_timeout': node_case.ANSWER_S}

    @classmethod
    def setUpClass(cls) -> None:
        node_case.require_node()
        super().setUpClass()
