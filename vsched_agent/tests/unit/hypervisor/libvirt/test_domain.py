# SPDX-License-Identifier: Apache-2.0

"""Live definitions, good and hostile."""

from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import domain as definition
from vsched_agent.tests.unit.hypervisor.libvirt import test_metadata

ONLINE = frozenset(range(4))


def domain(content, vcpu='<vcpu placement="static">4</vcpu>'):
    return '<domain type="qemu" id="3">%s%s</domain>' % (vcpu, content)


class ParseTest(test_base.BaseTestCase):
    def test_metadata(self):
        found = definition.parse(
            domain(
                '<metadata>%s</metadata>'
                % test_metadata.nova([(test_metadata.RUNTIME, '12000')])
            )
        )
        self.assertEqual(
            {test_metadata.RUNTIME: '12000'}, found.metadata.extra_specs
        )
        self.assertIsNone(found.pinned_cpus(0, ONLINE))

    def test_pins(self):
        found = definition.parse(
            domain(
                '<cputune><vcpupin vcpu="0" cpuset="1"/>'
                '<vcpupin vcpu="2" cpuset="0-3"/>'
                '<emulatorpin cpuset="3"/></cputune>',
                '<vcpu cpuset="0-2,^1">4</vcpu>',
            )
        )
        self.assertEqual(
            [{1}, {0, 2}, None, {0, 2}],
            [found.pinned_cpus(index, ONLINE) for index in range(4)],
        )

    def test_all_that_are_online_is_no_pin(self):
        found = definition.parse(domain('', '<vcpu cpuset="0-7">1</vcpu>'))
        self.assertIsNone(found.pinned_cpus(0, ONLINE))
        self.assertEqual(
            frozenset(range(8)), found.pinned_cpus(0, frozenset(range(16)))
        )

    def test_devices(self):
        found = definition.parse(
            domain(
                '<devices><disk type="file"><target dev="vda"/></disk>'
                '<disk type="network"><target dev="vdb" bus="virtio"/></disk>'
                '<interface type="bridge"><target dev="tap1"/></interface>'
                '<interface type="direct"><target dev="macvtap0"/></interface>'
                '<interface type="hostdev"><mac address="x"/></interface>'
                '<interface type="user"/></devices>'
            )
        )
        self.assertEqual(('vda', 'vdb'), found.disks)
        self.assertEqual(
            (base.Interface('tap1'), base.Interface('macvtap0', True)),
            found.interfaces,
        )

    def test_pins_that_can_not_be_read(self):
        for pin in (
            'vcpu="0" cpuset="x"',
            'vcpu="x" cpuset="0"',
            'cpuset="0"',
        ):
            found = definition.parse(
                domain('<cputune><vcpupin %s/></cputune>' % pin)
            )
            self.assertIn('pinning', found.metadata.problem)
            self.assertEqual({}, found.metadata.extra_specs)

    def test_not_xml(self):
        for text in (
            '',
            'x',
            '<domain>',
            '<other/>',
            '<domain/><domain/>',
            '\0',
        ):
            found = definition.parse(text)
            self.assertIn('cannot be read', found.metadata.problem)

    def test_entities_are_refused(self):
        bomb = '<!DOCTYPE domain [<!ENTITY a "%s">%s]><domain>&j;</domain>' % (
            'x' * 100,
            ''.join(
                '<!ENTITY %s "%s">' % (one, ('&%s;' % before) * 10)
                for before, one in zip('abcdefghi', 'bcdefghij', strict=True)
            ),
        )
        self.assertIn('document type', definition.parse(bomb).metadata.problem)

    def test_files_are_not_read(self):
        text = (
            '<!DOCTYPE domain [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
            '<domain><metadata>&f;</metadata></domain>'
        )
        self.assertIn('document type', definition.parse(text).metadata.problem)

    def test_too_long(self):
        text = '<domain>%s</domain>' % (' ' * definition.MAX_CHARS)
        self.assertIn('more than', definition.parse(text).metadata.problem)
