# SPDX-License-Identifier: Apache-2.0

"""Packets, from made-up namespaces and from this host's own."""

import pathlib

import fixtures
from oslotest import base as test_base

from vsched_agent.accounting import network
from vsched_agent.hypervisor import base

HEAD = (
    'Inter-|   Receive                            |  Transmit\n'
    ' face |bytes    packets errs drop fifo frame compressed multicast|'
    'bytes    packets errs drop fifo colls carrier compressed\n'
)
LINE = '%6s: 999 %d 0 0 0 0 0 0 888 %d 0 0 0 0 0 0\n'


def domain(uuid='u', pid=7, *devices, same_view=False):
    return base.Domain(
        uuid,
        uuid,
        pid,
        (),
        interfaces=tuple(base.Interface(one, same_view) for one in devices),
    )


class PacketMeterTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.proc = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.meter = network.PacketMeter(str(self.proc))

    def write(self, pid='', **counters):
        folder = self.proc / str(pid) / 'net'
        folder.mkdir(parents=True, exist_ok=True)
        (folder / 'dev').write_text(
            HEAD
            + ''.join(LINE % (name, *pair) for name, pair in counters.items())
        )

    def moved(self, *domains):
        return {
            uuid: tuple(found)
            for uuid, found in self.meter.moved(domains).items()
        }

    def test_from_the_guests_point_of_view(self):
        self.write(tap0=(100, 1000), lo=(5, 5))
        self.assertEqual({'u': (0, 0)}, self.moved(domain('u', 7, 'tap0')))
        self.write(tap0=(110, 1003), lo=(9, 9))
        self.assertEqual({'u': (3, 10)}, self.moved(domain('u', 7, 'tap0')))
        self.assertEqual({'u': (0, 0)}, self.moved(domain('u', 7, 'tap0')))

    def test_a_macvtap_sees_what_the_guest_sees(self):
        one = domain('u', 7, 'macvtap0', same_view=True)
        self.write(macvtap0=(0, 0))
        self.moved(one)
        self.write(macvtap0=(10, 3))
        self.assertEqual({'u': (10, 3)}, self.moved(one))

    def test_many(self):
        one, two = domain('u', 7, 'tap0', 'tap1'), domain('v', 8, 'tap2')
        three = domain('w', 9)
        self.write(tap0=(0, 0), tap1=(0, 0), tap2=(0, 0))
        self.moved(one, two, three)
        self.write(tap0=(1, 10), tap1=(2, 20), tap2=(3, 30))
        self.assertEqual(
            {'u': (30, 3), 'v': (30, 3)}, self.moved(one, two, three)
        )

    def test_another_device_of_the_same_name(self):
        one = domain('u', 7, 'tap0')
        self.write(tap0=(10**9, 10**9))
        self.moved(one)
        self.write(tap0=(40, 50))
        self.assertEqual({'u': (0, 0)}, self.moved(one))
        self.write(tap0=(41, 52))
        self.assertEqual({'u': (2, 1)}, self.moved(one))

    def test_a_device_that_goes_and_comes(self):
        one = domain('u', 7, 'tap0')
        self.write(tap0=(10, 10))
        self.moved(one)
        self.write()
        self.assertEqual({'u': (0, 0)}, self.moved(one))
        self.write(tap0=(10**9, 10**9))
        self.assertEqual({'u': (0, 0)}, self.moved(one))

    def test_a_device_that_goes_to_another_instance(self):
        self.write(tap0=(10, 10))
        self.moved(domain('u', 7, 'tap0'))
        self.write(tap0=(50, 50))
        self.assertEqual({'v': (0, 0)}, self.moved(domain('v', 8, 'tap0')))

    def test_a_counter_that_wraps(self):
        one = domain('u', 7, 'tap0')
        self.write(tap0=(2**64 - 3, 0))
        self.moved(one)
        self.write(tap0=(2, 0))
        self.assertEqual({'u': (0, 5)}, self.moved(one))

    def test_a_failed_reading_loses_nothing(self):
        one = domain('u', 7, 'tap0')
        self.write(tap0=(0, 0))
        self.moved(one)
        (self.proc / 'net' / 'dev').write_text(HEAD + ' tap0: 1 x\n')
        self.assertEqual({'u': (0, 0)}, self.moved(one))
        self.write(tap0=(4, 9))
        self.assertEqual({'u': (9, 4)}, self.moved(one))

    def test_another_network_namespace(self):
        for pid in ('self', 7, 8):
            (self.proc / str(pid) / 'ns').mkdir(parents=True)
            (self.proc / str(pid) / 'ns' / 'net').touch()
        there = self.proc / '8' / 'ns' / 'net'
        there.unlink()
        there.hardlink_to(self.proc / '7' / 'ns' / 'net')
        one, two = domain('u', 7, 'tap0'), domain('v', 8, 'tap1')
        self.write(tap0=(0, 0), tap1=(0, 0))
        self.write(7, tap0=(0, 0), tap1=(0, 0))
        self.moved(one, two)
        self.write(tap0=(100, 100), tap1=(100, 100))
        self.write(7, tap0=(1, 2), tap1=(3, 4))
        self.assertEqual({'u': (2, 1), 'v': (4, 3)}, self.moved(one, two))
        # The first process ends; the second one leads there as well.
        (self.proc / '7' / 'net' / 'dev').unlink()
        self.write(8, tap0=(1, 2), tap1=(5, 6))
        self.assertEqual({'u': (0, 0), 'v': (2, 2)}, self.moved(one, two))

    def test_this_host(self):
        meter = network.PacketMeter()
        one = domain('u', 1 << 22, 'lo')
        meter.moved([one])
        found = meter.moved([one])['u']
        self.assertGreaterEqual(found.rx, 0)
        self.assertIn(('u', 'lo'), meter._last)
