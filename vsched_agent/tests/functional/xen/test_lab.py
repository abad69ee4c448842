# SPDX-License-Identifier: Apache-2.0

"""What the lab node with Xen has, on which all other tests stand."""

import pathlib
import re

import fixtures

from vsched_agent.tests.functional.xen import xen_case


class TestGuests(xen_case.XenCase):
    """Guests by libvirt, of both kinds."""

    def _vcpus_follow(self, kind):
        guest = self.guest(kind, vcpus=2)
        self.assertEqual(2, guest.handle.maxVcpus())

        def online():
            lines = xen_case.run('xl', 'vcpu-list', guest.name).splitlines()
            # The state of a vCPU that is offline is "--p".
            return sum('--p' not in line for line in lines[1:])

        self.assertEqual(2, online())
        guest.handle.setVcpus(1)
        self.eventually(lambda: online() == 1, 'one vCPU')
        guest.handle.setVcpus(2)
        self.eventually(lambda: online() == 2, 'two vCPUs')

    def test_vcpus_of_a_pv_guest(self):
        self._vcpus_follow('pv')

    def test_vcpus_of_a_pvh_guest(self):
        self._vcpus_follow('pvh')

    def test_network(self):
        guest = self.guest(
            # UDP packets to an address and a port, 50 a second.
            words='vsched.ip=198.18.0.2/24 '
            'vsched.run=send:198.18.0.1:9:50:1:64:0',
            devices='<interface type="bridge"><source bridge="xenbr0"/>'
            '</interface>',
        )
        device = 'vif%d.0' % guest.handle.ID()

        def moved():
            return sum(guest.handle.interfaceStats(device)[1:6:4])

        before = moved()
        # Without the address there are but some of the kernel's own.
        self.eventually(lambda: moved() > before + 100, 'packets')

    def test_disk(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'disk')
        with open(path, 'wb') as file:
            file.truncate(1 << 20)
        device = xen_case.loop_device(path)
        self.addCleanup(xen_case.run, 'losetup', '--detach', device)
        guest = self.guest(
            words='vsched.run=read:/dev/xvda:50:1:4096:0',
            devices=xen_case.disk_xml(device),
        )
        before = guest.handle.blockStats('xvda')[0]
        self.eventually(
            lambda: guest.handle.blockStats('xvda')[0] > before, 'a block'
        )


class TestScheduler(xen_case.XenCase):
    """The scheduler that Debian leaves out."""

    def test_parameters_are_kept(self):
        self.assertEqual('rtds', xen_case.scheduler())
        guest = self.guest(words='vsched.load=burn')
        xen_case.run(
            *('xl', 'sched-rtds', '-d', guest.name, '-v', '0'),
            *('-p', '100000', '-b', '30000', '-e', '0'),
        )
        self.assertEqual(('100000', '30000', 'no'), self.parameters(guest))

    def parameters(self, guest):
        """Return period and budget in us, and whether there is more time."""
        found = re.search(
            r'^%s\s+\d+\s+0\s+(\d+)\s+(\d+)\s+(\w+)' % guest.name,
            xen_case.run('xl', 'sched-rtds', '-d', guest.name, '-v', 'all'),
            re.MULTILINE,
        )
        self.assertIsNotNone(found)
        return found.groups()
