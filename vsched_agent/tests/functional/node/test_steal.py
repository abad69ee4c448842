# SPDX-License-Identifier: Apache-2.0

from vsched_agent.accounting import readers
from vsched_agent.accounting import usage
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.node import node_agent_case
from vsched_agent.tests import guest_calls
from vsched_lib.contract import messages

State = messages.State

#: Of a guest agent in emulation, beside guests that burn.
_ANSWER_S = 120.0
#: The guest counts steal time at its ticks, in hundredths of a second.
_WATCHED_S = 20.0


class TestSteal(node_agent_case.NodeAgentCase):
    """A guest's own view of its reservation.

    KVM tells a guest how long its vCPU was runnable and did not run. A guest
    that is always busy was refused all that it did not get.
    """

    GUESTS = node_agent_case.competing()
    #: Of the time.
    TOLERANCE = 0.02

    def setUp(self):
        super().setUp()
        self.reserved = self.vms['reserved']
        self.agent.await_said(self.reserved.uuid, state=State.APPLIED)
        manager = agent_guests.hypervisor()
        self.hypervisor = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        self.meter = usage.UsageMeter(readers.of_kind(self.hypervisor.kind))
        self.addCleanup(self.meter.close)

    def watch(self):
        """Return the shares that were run and stolen, by the two accounts.

        The reservation is in force all the time, and the guest is busy: its
        share of the time between its answers is that between the readings.
        """
        began_s, began_steal_s = guest_calls.steal(
            self.reserved.handle, _ANSWER_S
        )
        self.meter.sample(self.hypervisor.domains(), {})
        agent_guests.pause(_WATCHED_S)
        self.meter.sample(self.hypervisor.domains(), {})
        reading = self.meter.readings[self.reserved.uuid]
        ended_s, ended_steal_s = guest_calls.steal(
            self.reserved.handle, _ANSWER_S
        )
        return (
            reading.guest.run_ns / reading.interval_ns,
            (ended_steal_s - began_steal_s) / (ended_s - began_s),
        )

    def assert_agrees(self, expected):
        ran, stolen = self.watch()
        self.assertLess(abs(ran - expected), self.TOLERANCE, (ran, stolen))
        self.assertLess(abs(1 - ran - stolen), self.TOLERANCE, (ran, stolen))

    def test_of_60_and_of_30_percent(self):
        self.assert_agrees(0.6)
        mark = self.override(self.reserved, 6_000)
        self.agent.await_said(self.reserved.uuid, mark, state=State.APPLIED)
        self.assert_agrees(0.3)
