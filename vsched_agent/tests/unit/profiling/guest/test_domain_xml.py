# SPDX-License-Identifier: Apache-2.0

"""Definitions of small domains are read back as they were meant."""

import dataclasses
from xml.etree import ElementTree

from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import domain
from vsched_agent.profiling.guest import domain_xml

SPEC = domain_xml.DomainSpec('a <b>', '/boot/k', '/boot/i')
SPECS = {'vsched:cpu_runtime_us': '12000', 'vsched:odd & <': '"\''}


class BuildTest(test_base.BaseTestCase):
    def build(self, **fields):
        return domain_xml.build(dataclasses.replace(SPEC, **fields))

    def test_extra_specs(self):
        read = domain.parse(self.build(extra_specs=SPECS))
        self.assertEqual(SPECS, read.metadata.extra_specs)

    def test_clock_source(self):
        for spec in (
            SPEC,
            dataclasses.replace(
                SPEC, cmdline=domain_xml.cmdline('vsched.load=burn')
            ),
        ):
            words = (
                ElementTree.fromstring(domain_xml.build(spec))
                .findtext('os/cmdline')
                .split()
            )
            self.assertIn('clocksource=tsc', words)
            self.assertIn('tsc=reliable', words)
        self.assertEqual('vsched.load=burn', words[-1])

    def test_pins(self):
        read = domain.parse(
            self.build(pins={1: frozenset({0, 1})}, cpuset=frozenset({2}))
        )
        online = frozenset(range(4))
        self.assertEqual({2}, read.pinned_cpus(0, online))
        self.assertEqual({0, 1}, read.pinned_cpus(1, online))

    def test_the_rest(self):
        root = ElementTree.fromstring(
            self.build(
                vcpus=1,
                max_vcpus=3,
                iothreads=2,
                serial_file='/console',
                virt_type='kvm',
                emulator='/usr/bin/q',
                memory_mib=64,
            )
        )
        self.assertEqual('kvm', root.get('type'))
        self.assertEqual('a <b>', root.findtext('name'))
        self.assertEqual(SPEC.uuid, root.findtext('uuid'))
        self.assertEqual('3', root.findtext('vcpu'))
        self.assertEqual('1', root.find('vcpu').get('current'))
        self.assertEqual('2', root.findtext('iothreads'))
        self.assertEqual('64', root.findtext('memory'))
        self.assertEqual('/boot/k', root.findtext('os/kernel'))
        self.assertEqual('/usr/bin/q', root.findtext('devices/emulator'))
        self.assertEqual(
            '/console', root.find('devices/serial/source').get('path')
        )
        self.assertIsNone(root.find('metadata'))

    def test_cpus(self):
        for virt_type, mode in (
            ('kvm', 'host-passthrough'),
            ('qemu', 'custom'),
        ):
            root = ElementTree.fromstring(self.build(virt_type=virt_type))
            self.assertEqual(mode, root.find('cpu').get('mode'))

    def test_networks(self):
        root = ElementTree.fromstring(
            self.build(
                networks=(
                    domain_xml.Network('br0', '52:54:00:00:00:01'),
                    domain_xml.Network('br1'),
                )
            )
        )
        first, second = root.findall('devices/interface')
        self.assertEqual('bridge', first.get('type'))
        self.assertEqual('br0', first.find('source').get('bridge'))
        self.assertEqual('52:54:00:00:00:01', first.find('mac').get('address'))
        self.assertEqual('br1', second.find('source').get('bridge'))
        self.assertIsNone(second.find('mac'))

    def test_disks(self):
        root = ElementTree.fromstring(
            self.build(
                disks=(
                    domain_xml.Disk('/a.img', iothread=1),
                    domain_xml.Disk('/b.img', direct=False),
                )
            )
        )
        first, second = root.findall('devices/disk')
        self.assertEqual('/a.img', first.find('source').get('file'))
        self.assertEqual('vda', first.find('target').get('dev'))
        self.assertEqual('vdb', second.find('target').get('dev'))
        self.assertEqual(
            {
                'name': 'qemu',
                'type': 'raw',
                'cache': 'none',
                'io': 'native',
                'iothread': '1',
            },
            first.find('driver').attrib,
        )
        self.assertEqual(
            {'name': 'qemu', 'type': 'raw', 'cache': 'writeback'},
            second.find('driver').attrib,
        )

    def test_what_is_not_asked_is_left_out(self):
        root = ElementTree.fromstring(self.build())
        for path in (
            'metadata',
            'cputune',
            'iothreads',
            'devices/serial',
            'devices/emulator',
            'devices/disk',
            'devices/interface',
        ):
            self.assertIsNone(root.find(path), path)
        self.assertIsNone(root.find('vcpu').get('cpuset'))

    def test_every_domain_has_its_own_uuid(self):
        other = domain_xml.DomainSpec('a', '/k', '/i')
        self.assertNotEqual(SPEC.uuid, other.uuid)
