# SPDX-License-Identifier: Apache-2.0

import contextlib
import pathlib
import subprocess

from vsched_agent.privileged import syscalls
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests.functional.node import node_agent_case
from vsched_agent.tests.functional.node import node_case
from vsched_lib.contract import messages

State = messages.State

_BRIDGE = 'vsched-node1'


class TestReservation(node_agent_case.NodeAgentCase):
    """vhost's worker of a guest whose I/O is charged.

    It is a thread of the kernel on 6.1, and of QEMU since 6.4.
    """

    GUESTS = {
        'sending': node_agent_case.busy(
            networks=(domain_xml.Network(_BRIDGE),),
            ip='198.18.1.2/24',
            # UDP packets to an address and a port, 200 a second.
            runs=('send 198.18.1.1 9 200 1 64 0',),
        )
    }

    @classmethod
    def setUpClass(cls):
        node_case.require_node()
        for words in (
            ('link', 'add', _BRIDGE, 'type', 'bridge'),
            ('address', 'add', '198.18.1.1/24', 'dev', _BRIDGE),
            ('link', 'set', _BRIDGE, 'up'),
        ):
            subprocess.run(['ip', *words], check=True)
        cls.addClassCleanup(
            subprocess.run, ['ip', 'link', 'delete', _BRIDGE], check=True
        )
        super().setUpClass()

    def workers(self):
        """The workers, found without the agent: by name, of any process."""
        name = 'vhost-%d\n' % self.vms['sending'].pid
        found = []
        for path in pathlib.Path('/proc').glob('[0-9]*/task/[0-9]*/comm'):
            # Other threads may end meanwhile.
            with contextlib.suppress(OSError):
                if path.read_text() == name:
                    found.append(int(path.parent.name))
        return found

    def reserved(self):
        return [
            syscalls.get_attr(tid).policy == syscalls.SCHED_DEADLINE
            for tid in self.workers()
        ]

    def test_held_and_released(self):
        vm = self.vms['sending']
        vm.set_extra_specs({'cpu_runtime_us': 12_000, 'io_charging': 'charge'})
        self.agent.await_said(vm.uuid, state=State.APPLIED)
        self.collector.await_news(
            lambda: self.reserved() == [True], 'a reservation of its worker'
        )
        said = self.collector.said(vm.uuid)
        self.assertIsNotNone(said.io)
        mark = self.collector.mark()
        vm.set_extra_specs({})
        self.collector.await_news(
            lambda: self.reserved() == [False], 'release since %d' % mark
        )
