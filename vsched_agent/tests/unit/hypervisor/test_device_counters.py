# SPDX-License-Identifier: Apache-2.0

"""Devices of a domain are found and counted."""

from unittest import mock

from oslotest import base

from vsched_agent.hypervisor import device_counters
from vsched_agent.profiling.guest import domain_xml


class DevicesTest(base.BaseTestCase):
    def test_devices(self):
        domain = mock.Mock()
        text = domain_xml.build(
            domain_xml.DomainSpec(
                'one',
                '/k',
                '/i',
                networks=(domain_xml.Network('br0'),),
                disks=(domain_xml.Disk('/a'), domain_xml.Disk('/b')),
            )
        )
        # As libvirt names it once it runs.
        domain.XMLDesc.return_value = text.replace(
            '<rom enabled="no" />', '<target dev="vnet3" />'
        )
        found = device_counters.Devices.of(domain)
        self.assertEqual(
            (('vnet3',), ('vda', 'vdb')), (found.interfaces, found.disks)
        )
        domain.blockStats.side_effect = {
            'vda': (3, 300, 4, 400, 0),
            'vdb': (0, 0, 1, 10, 0),
        }.get
        self.assertEqual(
            {'vda': (3, 4), 'vdb': (0, 1)}, found.read_disks(domain)
        )
