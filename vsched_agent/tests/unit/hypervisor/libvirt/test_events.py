# SPDX-License-Identifier: Apache-2.0

"""Events, by libvirt's own driver for tests (no daemon)."""

import threading

import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor.libvirt import events
from vsched_agent.tests import hypervisor_suite


class EventsTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        events.LOOP.acquire()
        self.addCleanup(events.LOOP.release)
        self.connection = libvirt.open('test:///default')
        self.addCleanup(self.connection.close)
        self.domain = self.connection.lookupByName('test')
        self.uuid = self.domain.UUIDString()
        self.changes = hypervisor_suite.Changes()

    def test_followed_until_let_go(self):
        subscriptions = events.subscribe(self.connection, self.changes)
        self.domain.suspend()
        self.assertTrue(self.changes.wait_for(self.uuid, 30))
        self.domain.setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT, '<a/>', 'k', 'urn:k', 0
        )
        self.assertTrue(self.changes.wait_for(self.uuid, 30))
        events.unsubscribe(self.connection, subscriptions)
        self.domain.resume()
        self.assertFalse(self.changes.wait_for(self.uuid, 0.2))

    def test_what_is_only_written_down_is_no_change(self):
        events.subscribe(self.connection, self.changes)
        other = self.connection.defineXML(
            '<domain type="test"><name>other</name><memory>1</memory>'
            '<os><type>hvm</type></os></domain>'
        )
        self.assertFalse(self.changes.wait_for(other.UUIDString(), 0.2))


class LoopTest(test_base.BaseTestCase):
    def loops(self):
        return [
            thread
            for thread in threading.enumerate()
            if thread.name == 'vsched-libvirt-events'
        ]

    def test_shared_and_ended_with_the_last(self):
        for _ in range(3):
            events.LOOP.acquire()
            events.LOOP.acquire()
            self.assertEqual(1, len(self.loops()))
            events.LOOP.release()
            self.assertEqual(1, len(self.loops()))
            events.LOOP.release()
            self.assertEqual([], self.loops())
