# SPDX-License-Identifier: Apache-2.0

"""Requests of disks, as a simulated hypervisor counts them."""

import threading
from unittest import mock

import fixtures
from oslotest import base as test_base

from vsched_agent.accounting import disk
from vsched_agent.hypervisor import base
from vsched_agent.tests import simulated


class RequestMeterTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.hypervisor = simulated.SimulatedHypervisor()
        self.hypervisor.start(lambda uuid: None)
        self.addCleanup(self.hypervisor.close)
        self.one = self.hypervisor.add(disks=['vda', 'vdb']).uuid
        self.ask = mock.Mock(side_effect=self.hypervisor.disk_counters)
        self.asker = disk.BlockingPoller(self.ask)
        self.meter = disk.RequestMeter(self.asker)
        self.now_s = 1000.0
        self.useFixture(
            fixtures.MockPatchObject(
                disk.time, 'monotonic', lambda: self.now_s
            )
        )

    def moved(self, seconds=10, **wakeups):
        self.now_s += seconds
        return {
            uuid: tuple(found)
            for uuid, found in self.meter.moved(
                self.hypervisor.domains(), wakeups
            ).items()
        }

    def test_differences(self):
        self.hypervisor.move_blocks(self.one, 'vda', 500, 600)
        self.assertEqual({}, self.moved())
        self.hypervisor.move_blocks(self.one, 'vda', 5, 6)
        self.hypervisor.move_blocks(self.one, 'vdb', 1)
        self.assertEqual({self.one: (6, 6)}, self.moved())
        self.assertEqual({self.one: (0, 0)}, self.moved())

    def test_who_does_little_is_asked_about_rarely(self):
        self.moved()
        for _ in range(9):
            self.moved(1, **{self.one: 100})
        self.assertEqual(1, self.ask.call_count)
        self.moved(1, **{self.one: 1})
        self.assertEqual(2, self.ask.call_count)

    def test_who_does_much_is_asked_about_at_once(self):
        self.moved()
        self.hypervisor.move_blocks(self.one, 'vda', 50)
        found = self.moved(1, **{self.one: 1500})
        self.assertEqual({self.one: (50, 0)}, found)
        # Bit by bit as well.
        self.moved(1, **{self.one: 600})
        self.moved(1, **{self.one: 600})
        self.assertEqual(3, self.ask.call_count)

    def test_who_has_no_disks_is_not_asked_about(self):
        other = self.hypervisor.add().uuid
        self.moved(1, **{other: 10**6})
        self.ask.assert_called_once_with({self.one})
        self.hypervisor.remove(self.one)
        self.moved(10, **{other: 10**6})
        self.ask.assert_called_once()

    def test_a_disk_that_is_replaced(self):
        self.hypervisor.move_blocks(self.one, 'vda', 10**9, 10**9)
        self.moved()
        # The counters of a new process begin anew.
        self.hypervisor.restart(self.one)
        self.hypervisor.move_blocks(self.one, 'vda', 3, 4)
        self.assertEqual({self.one: (0, 0)}, self.moved())
        self.hypervisor.move_blocks(self.one, 'vda', 3, 4)
        self.assertEqual({self.one: (3, 4)}, self.moved())

    def test_a_disk_that_is_plugged_in(self):
        def counters(**disks):
            return {
                self.one: {
                    name: base.DiskCounters(*pair)
                    for name, pair in disks.items()
                }
            }

        self.ask.side_effect = [
            counters(vda=(1, 1)),
            counters(vda=(2, 2), vdb=(10**6, 0)),
            counters(vdb=(10**6 + 5, 0)),
        ]
        self.moved()
        self.assertEqual({self.one: (1, 1)}, self.moved())
        self.assertEqual({self.one: (5, 0)}, self.moved())

    def test_an_instance_that_goes_and_comes(self):
        self.moved()
        domains = self.hypervisor.domains()
        self.meter.moved([], {})
        self.now_s += 1
        self.assertEqual({}, self.meter.moved(domains, {}))

    def test_counters_that_are_unavailable_for_a_while(self):
        self.moved()
        self.hypervisor.move_blocks(self.one, 'vda', 5)
        self.hypervisor.lose_connection()
        domains = [base.Domain(self.one, 'x', 1, (), disks=('vda',))]
        self.now_s += 10
        self.assertEqual({}, self.meter.moved(domains, {}))
        self.hypervisor.regain_connection()
        self.assertEqual({self.one: (5, 0)}, self.moved())

    def test_an_error_is_survived(self):
        self.ask.side_effect = RuntimeError('on purpose')
        self.assertEqual({}, self.moved())


class AskerTest(test_base.BaseTestCase):
    def test_the_caller_does_not_wait(self):
        going_on, answered = threading.Event(), threading.Event()

        def ask(uuids):
            going_on.wait(30)
            answered.set()
            return {uuid: {} for uuid in uuids}

        asker = disk.BackgroundPoller(ask)
        self.addCleanup(asker.close)
        asker.request({'u'})
        self.assertEqual({}, asker.take())
        going_on.set()
        self.assertTrue(answered.wait(30))
        asker.close()
        self.assertEqual({'u': {}}, asker.take())
        self.assertEqual({}, asker.take())

    def test_never_used(self):
        disk.BackgroundPoller(mock.Mock()).close()
