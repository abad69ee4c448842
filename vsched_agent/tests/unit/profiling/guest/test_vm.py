# SPDX-License-Identifier: Apache-2.0

"""Guests that get ready, and guests that don't."""

import os
import pathlib
import threading
from unittest import mock

import fixtures
import libvirt
from oslotest import base as test_base

from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm


class RunningDomainTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.serial = pathlib.Path(folder, 'serial')
        self.spec = domain_xml.DomainSpec(
            'vsched-test', '/k', '/i', serial_file=str(self.serial)
        )
        self.connection = mock.Mock()
        self.handle = self.connection.createXML.return_value
        self.useFixture(
            fixtures.MockPatchObject(
                libvirt, 'open', return_value=self.connection
            )
        )

    def boots(self, *lines):
        def create(xml, flags):
            self.serial.write_text('\n'.join(lines))
            return self.handle

        self.connection.createXML.side_effect = create

    def test_ready(self):
        self.boots('booting', 'vsched-guest ready 3.2')
        with vm.RunningDomain(self.spec) as running:
            self.assertIs(self.handle, running.handle)
            self.assertEqual(self.spec.uuid, running.uuid)
            self.assertIn(b'booting', running.console())
            self.handle.destroy.assert_not_called()
        self.handle.destroy.assert_called_once_with()
        self.connection.close.assert_called_once_with()
        self.assertRaises(RuntimeError, lambda: running.handle)
        running.stop()

    def test_libvirts_keep_alive_is_answered_meanwhile(self):
        def loops():
            return [
                thread
                for thread in threading.enumerate()
                if thread.name == 'vsched-libvirt-events'
            ]

        before = loops()
        with vm.RunningDomain(self.spec, ready_timeout_s=0):
            self.assertEqual(1, len(loops()))
        self.assertEqual(before, loops())

    def test_an_old_console_counts_for_nothing(self):
        self.serial.write_text('vsched-guest ready 3.2')
        self.handle.isActive.return_value = 0
        running = vm.RunningDomain(self.spec)
        error = self.assertRaises(vm.GuestNotReady, running.start)
        self.assertIn('its console is empty', str(error))

    def test_ended(self):
        self.boots('Kernel panic')
        self.handle.isActive.return_value = 0
        running = vm.RunningDomain(self.spec)
        error = self.assertRaises(vm.GuestNotReady, running.start)
        self.assertIn('Kernel panic', str(error))
        self.connection.close.assert_called_once_with()

    def test_too_late(self):
        self.boots('booting')
        # State, two sizes of memory, vCPUs, CPU time.
        self.handle.info.return_value = [1, 0, 0, 1, 12_300_000_000]
        running = vm.RunningDomain(self.spec, ready_timeout_s=0.01)
        error = self.assertRaises(vm.GuestNotReady, running.start)
        self.assertIn('12.3 s of CPU time: booting', str(error))
        self.handle.destroy.assert_called_once_with()

    def test_cancelled(self):
        self.boots('booting')
        cancel = threading.Event()
        cancel.set()
        running = vm.RunningDomain(self.spec, cancel=cancel)
        self.assertRaises(vm.GuestNotReady, running.start)
        self.handle.destroy.assert_called_once_with()

    def test_not_waited_for(self):
        with vm.RunningDomain(self.spec, ready_timeout_s=0) as running:
            self.assertEqual(b'', running.console())

    def test_can_not_be_started(self):
        self.connection.createXML.side_effect = libvirt.libvirtError('no')
        running = vm.RunningDomain(self.spec)
        self.assertRaises(libvirt.libvirtError, running.start)
        self.connection.close.assert_called_once_with()

    def test_ended_by_itself(self):
        self.boots('vsched-guest ready')
        self.handle.destroy.side_effect = libvirt.libvirtError('gone')
        with vm.RunningDomain(self.spec):
            os.remove(self.serial)
        self.connection.close.assert_called_once_with()

    def test_outlive(self):
        for outlive, flags in (
            (False, libvirt.VIR_DOMAIN_START_AUTODESTROY),
            (True, 0),
        ):
            self.boots('vsched-guest ready')
            running = vm.RunningDomain(self.spec, outlive=outlive)
            self.addCleanup(running.stop)
            running.start()
            self.assertEqual(
                flags, self.connection.createXML.call_args.args[1]
            )
