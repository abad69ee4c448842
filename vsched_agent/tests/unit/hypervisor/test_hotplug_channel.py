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

import json
from unittest import mock

import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor import channel
from vsched_agent.hypervisor import definition
from vsched_agent.hypervisor import domain_xml
from vsched_agent.hypervisor import hotplug_channel


def failure(code=libvirt.VIR_ERR_OPERATION_TIMEOUT):
    error = libvirt.libvirtError('the test says so')
    error.err = (code,) + (None,) * 8
    return error


class Domain:
    """QEMU, and what libvirt believes of it.

    :param silent: QEMU does not say when a vCPU is gone.
    """

    def __init__(self, hotpluggable=True, silent=False, clinging=False):
        self._spec = domain_xml.DomainSpec(
            'one', '/kernel', '/initrd', vcpus=4, max_vcpus=6,
            hotpluggable=hotpluggable)
        self.silent, self.clinging = silent, clinging
        self.plugged = self.believed = frozenset(range(4))

    def name(self):
        return 'one'

    def XMLDesc(self, flags):
        return domain_xml.build(self._spec)

    def setVcpu(self, text, wanted, flags):
        assert flags == libvirt.VIR_DOMAIN_AFFECT_LIVE
        index = int(text)
        if (index in self.believed) == bool(wanted):
            raise failure(libvirt.VIR_ERR_INVALID_ARG)
        if wanted:
            self.plugged |= {index}
            self.believed |= {index}
            return
        if self.clinging:
            raise failure()
        self.plugged -= {index}
        if self.silent:
            raise failure()
        self.believed -= {index}

    def ask(self, _self, text, _flags):
        command = json.loads(text)
        if command['execute'] == 'query-cpus-fast':
            return json.dumps({'return': [
                {'cpu-index': index, 'thread-id': 100 + index}
                for index in self.plugged]})
        raise AssertionError(command)


class HotplugChannelTest(test_base.BaseTestCase):

    def make(self, **fields):
        domain = Domain(**fields)
        connection = mock.Mock()
        connection.lookupByUUIDString.return_value = domain
        patch = mock.patch(
            'libvirt_qemu.qemuMonitorCommand',
            lambda *arguments: domain.ask(domain, *arguments[1:]))
        patch.start()
        self.addCleanup(patch.stop)

        def call(key, timeout_s, function):
            try:
                return function(connection)
            except libvirt.libvirtError as error:
                raise channel.ChannelFailed(str(error)) from error

        return domain, hotplug_channel.HotplugChannel(call)

    def test_what_there_is(self):
        _, one = self.make()
        self.assertEqual(channel.GuestVcpus(
            frozenset(range(4)), frozenset(), frozenset({0}),
            frozenset({4, 5})), one.ask('u', 1))
        self.assertIsNone(one.progress('u', '/x', 1))
        self.assertEqual({}, one.yields(['u']))

    def test_nothing_is_declared(self):
        _, one = self.make(hotpluggable=False)
        problem = self.assertRaises(channel.ChannelFailed, one.ask, 'u', 1)
        self.assertIn('hotpluggable', str(problem))

    def test_down_and_up(self):
        domain, one = self.make()
        for wanted in ({0}, {0, 1, 2, 3}, {0, 1}, {0, 1, 2, 3}):
            self.assertEqual(wanted, one.set_online(
                'u', frozenset(wanted), 1).online)
            self.assertEqual(wanted, domain.plugged)

    def test_libvirt_loses_count(self):
        domain, one = self.make(silent=True)
        for _ in range(2):
            problem = self.assertRaises(
                channel.ChannelFailed, one.set_online, 'u', frozenset({0}),
                1)
            self.assertIn('vCPU 3 of one', str(problem))
            # Once is enough.
            self.assertEqual({0, 1, 2}, domain.plugged)

    def test_a_guest_that_does_not_let_go(self):
        domain, one = self.make(clinging=True)
        problem = self.assertRaises(
            channel.ChannelFailed, one.set_online, 'u', frozenset({0}), 1)
        self.assertTrue(problem.undone)
        self.assertEqual({0, 1, 2, 3}, domain.plugged)

    def test_what_no_guest_can_do(self):
        _, one = self.make()
        for wanted in ((), (1, 2), (0, 7)):
            self.assertRaises(channel.ChannelFailed, one.set_online, 'u',
                              frozenset(wanted), 1)


class DeclaredTest(test_base.BaseTestCase):

    def test_by_the_definition(self):
        spec = domain_xml.DomainSpec('one', '/k', '/i', vcpus=2)
        self.assertEqual(frozenset(), definition.hotpluggable(
            domain_xml.build(spec)))
        for text in ('<', '<domain><vcpus><vcpu id="x" hotpluggable="yes"/>'
                     '</vcpus></domain>'):
            self.assertRaises(definition.UnreadableDefinition,
                              definition.hotpluggable, text)
