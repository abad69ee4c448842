# SPDX-License-Identifier: Apache-2.0

import json
import os
import subprocess
import sys
import time

from vsched_agent.accounting import base
from vsched_agent.accounting import readers
from vsched_agent.accounting import usage
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.node import node_case

_BRIDGE = 'vsched-node0'


class TestDoctor(node_case.NodeCase):
    """The command, as an operator runs it."""

    def test_what_this_node_can_do(self):
        # libvirt is slow in emulation too: with the default of 10 s the first
        # connection is not there in time on busy CPUs.
        path = os.path.join(self._folder, 'vsched.conf')
        with open(path, 'w', encoding='ascii') as file:
            file.write(
                '[hypervisor]\ncall_timeout = %d\n' % node_case.ANSWER_S
            )
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                path,
                'doctor',
                '--json',
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        found = {}
        for one in json.loads(done.stdout):
            found.setdefault(one['subject'], []).append(one)
        for name in ('deadline', 'cfs'):
            self.assertEqual('ok', found[name][0]['level'], found[name])
        texts = ' '.join(one['text'] for one in found['cgroup'])
        self.assertIn('cpuset controller: v2', texts)
        self.assertEqual('ok', found['leak'][0]['level'], found['leak'])
        self.assertIn('answers', found['hypervisor'][0]['text'])
        self.assertEqual(1, len(found['pinning']))


class TestVhost(node_case.NodeCase):
    """Packets of a guest, moved by vhost."""

    def setUp(self):
        super().setUp()
        for words in (
            ('link', 'add', _BRIDGE, 'type', 'bridge'),
            ('address', 'add', '198.18.0.1/24', 'dev', _BRIDGE),
            ('link', 'set', _BRIDGE, 'up'),
        ):
            subprocess.run(['ip', *words], check=True)
        self.addCleanup(
            subprocess.run, ['ip', 'link', 'delete', _BRIDGE], check=True
        )

    def test_its_worker_is_charged_to_the_guest(self):
        """A thread of the kernel on 6.1, of QEMU since 6.4."""
        vm = self.guest(
            networks=(domain_xml.Network(_BRIDGE),),
            ip='198.18.0.2/24',
            # UDP packets to an address and a port, 200 a second.
            runs=('send 198.18.0.1 9 200 1 64 600',),
        )
        manager = agent_guests.hypervisor()
        hypervisor = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        meter = usage.UsageMeter(readers.of_kind(hypervisor.kind))
        self.addCleanup(meter.close)
        used_ns = []
        for _ in range(60):
            meter.sample(hypervisor.domains(), {})
            reading = meter.readings.get(vm.uuid)
            used_ns.append(
                sum(
                    use.run_ns
                    for use in (reading.threads if reading else ())
                    if use.role is base.Role.VHOST
                )
            )
            # The first reading of a thread has no time yet.
            if used_ns[-1] > 0:
                return
            agent_guests.pause(1.0)
        self.fail('no time of vhost: %s' % used_ns)


class TestBalloon(node_case.NodeCase):
    """A vCPU that a guest under KVM does without."""

    def test_offline_and_back(self):
        vm = self.guest(vcpus=2)
        channel = guest_agent.GuestAgentChannel(fixtures.URI)
        channel.start()
        self.addCleanup(channel.stop)
        self.await_agent(channel, vm.uuid)
        for wanted in ({0}, {0, 1}):
            found = channel.set_online(
                vm.uuid, frozenset(wanted), node_case.ANSWER_S
            )
            self.assertEqual(wanted, found.online)

    def await_agent(self, channel, uuid):
        """Wait until the guest's agent is up, after the guest itself."""
        give_up = time.monotonic() + node_case.READY_S
        while True:
            try:
                channel.get_vcpus(uuid, node_case.ANSWER_S)
            except vcpu_channel.GuestAgentUnavailable:
                if time.monotonic() > give_up:
                    raise
                agent_guests.pause(0.5)
            else:
                return
