# SPDX-License-Identifier: Apache-2.0

"""Roles of threads, in made-up processes and in one of this kernel."""

import os
from unittest import mock
import uuid as uuids

import fixtures
from oslotest import base as test_base

from vsched_agent.accounting import base as readings
from vsched_agent.accounting import direct
from vsched_agent.accounting import kernel_threads
from vsched_agent.accounting import qemu as processes
from vsched_agent.accounting import readers
from vsched_agent.accounting import vhost
from vsched_agent.hypervisor import base
from vsched_agent.tests import fake_proc
from vsched_agent.tests import fake_qemu

MS = 1_000_000
PID = 500
Role = readings.Role


def domain(**fields):
    return base.Domain(
        **{
            'uuid': 'u',
            'name': 'web',
            'pid': PID,
            'vcpus': (base.Vcpu(0, 501), base.Vcpu(1, 502)),
            'iothread_tids': (503,),
            **fields,
        }
    )


def helpers(reading):
    """All threads but the vCPUs', as if they were one."""
    return reading.total(*(role for role in Role if role is not Role.VCPU))


class ProcessCase(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.proc = self.useFixture(fake_proc.FakeProc())
        self.clocks = {PID: 0}
        self.reader = processes.ProcessReader(
            100, str(self.proc.path), direct.DirectMeter(self.clocks.get)
        )
        self.addCleanup(self.reader.close)
        self.now_s = 1000.0
        self.useFixture(
            fixtures.MockPatchObject(
                processes.time, 'monotonic_ns', lambda: round(self.now_s * 1e9)
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                kernel_threads.time, 'monotonic', lambda: self.now_s
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                self.reader, '_now_ticks', lambda: round(self.now_s * 100)
            )
        )
        self.names = {}
        for tid, comm in (
            (500, 'qemu-system-x86'),
            (501, 'CPU 0/KVM'),
            (502, 'CPU 1/KVM'),
            (503, 'IO iothread1'),
            (504, 'IO mon_iothread'),
            (505, 'worker'),
        ):
            self.start(tid, comm)
        self.domain = domain()

    def start(self, tid, comm, pid=PID, **more):
        self.names[pid, tid] = [comm, 0, 0, 0, more]
        self.proc.set(pid, tid, 0, comm=comm, **more)

    def run_for(self, ms, *tids, pid=PID, waits_ms=0, slices=1):
        """Threads run; their process's clock knows."""
        for tid in tids:
            one = self.names[pid, tid]
            one[1] += ms * MS
            one[2] += waits_ms * MS
            one[3] += slices
            self.proc.set(pid, tid, *one[1:4], comm=one[0], **one[4])
            if pid in self.clocks:
                self.clocks[pid] += ms * MS

    def read(self, seconds=1):
        self.now_s += seconds
        return self.reader.read(self.domain)

    def by_role(self, reading):
        return {
            role: ns // MS for role, ns in reading.by_role_ns().items() if ns
        }


class RolesTest(ProcessCase):
    def test_the_first_reading_is_none(self):
        self.assertIsNone(self.read())

    def test_every_role(self):
        self.start(506, 'vhost-500')
        self.read()
        self.run_for(100, 500, 501, 502, waits_ms=3, slices=7)
        self.run_for(20, 503, 504, 505, 506, waits_ms=1, slices=2)
        found = self.read()
        self.assertEqual(
            {
                500: Role.EMULATOR,
                501: Role.VCPU,
                502: Role.VCPU,
                503: Role.IOTHREAD,
                504: Role.OTHER,
                505: Role.WORKER,
                506: Role.VHOST,
            },
            {use.tid: use.role for use in found.threads},
        )
        self.assertEqual(
            {
                Role.VCPU: 200,
                Role.EMULATOR: 100,
                Role.IOTHREAD: 20,
                Role.WORKER: 20,
                Role.OTHER: 20,
                Role.VHOST: 20,
            },
            self.by_role(found),
        )
        self.assertEqual((200 * MS, 6 * MS, 14), found.guest[2:])
        self.assertEqual((180 * MS, 7 * MS, 15), helpers(found)[2:])
        self.assertEqual(
            (1_000_000_000, 180 * MS), (found.interval_ns, found.direct_ns)
        )
        (one,) = (use for use in found.threads if use.tid == 503)
        self.assertEqual((503, Role.IOTHREAD, 20 * MS, MS, 2), one)

    def test_nothing_happened(self):
        self.read()
        found = self.read()
        self.assertEqual(6, len(found.threads))
        self.assertEqual({}, self.by_role(found))

    def test_the_name_of_an_emulation_by_one_thread(self):
        self.domain = domain(vcpus=(base.Vcpu(0, 501),))
        self.read()
        self.run_for(10, 501, 502)
        # The driver does not know the second one yet; its name tells.
        self.assertEqual({Role.VCPU: 20}, self.by_role(self.read()))

    def test_a_name_that_comes_late(self):
        self.read()
        self.start(507, 'qemu-system-x86')
        self.read()
        self.names[PID, 507][0] = 'vhost-500'
        self.run_for(5, 507)
        self.read()
        self.run_for(5, 507)
        self.assertEqual({Role.VHOST: 5}, self.by_role(self.read()))

    def test_pool_threads_come_and_go(self):
        self.read()
        self.start(510, 'worker', start_ticks=10**9)
        self.run_for(30, 510)
        self.assertEqual({Role.WORKER: 30}, self.by_role(self.read()))
        self.run_for(7, 510)
        self.proc.end(PID, 510)
        # Its counters have ended; the process's clock has not.
        self.assertEqual({Role.OTHER: 7}, self.by_role(self.read()))
        # One goes, another comes: as many as before.
        self.proc.end(PID, 505)
        self.start(511, 'worker', start_ticks=10**9)
        self.run_for(11, 511)
        found = self.read()
        self.assertIn(511, [use.tid for use in found.threads])
        self.assertEqual({Role.WORKER: 11}, self.by_role(found))

    def test_a_process_is_not_listed_without_need(self):
        self.read()
        self.read()
        with mock.patch.object(
            processes.qemu_process, 'tids', autospec=True
        ) as listed:
            for _ in range(3):
                self.run_for(1, 500, 501)
                self.read()
        listed.assert_not_called()

    def test_a_process_that_has_ended(self):
        self.read()
        self.proc.end(PID)
        self.clocks.clear()
        found = self.read()
        self.assertEqual(((), 0), (found.threads, found.direct_ns))
        self.assertEqual(0, self.reader.files.open)

    def test_its_number_given_to_another(self):
        self.clocks[PID] = 90_000 * MS
        self.read()
        self.proc.end(PID)
        self.clocks[PID] = 0
        for tid in (500, 501, 502):
            self.start(tid, 'later', start_ticks=10**9)
        self.run_for(40, 500, 501)
        found = self.read()
        self.assertEqual(
            {Role.EMULATOR: 40, Role.VCPU: 40}, self.by_role(found)
        )


class VhostTest(ProcessCase):
    def open(self):
        self.proc.open_device(PID, 30, '/dev/vhost-net')

    def watch_scans(self):
        return self.useFixture(
            fixtures.MockPatchObject(
                kernel_threads.Scanner,
                '_scan',
                autospec=True,
                side_effect=kernel_threads.Scanner._scan,
            )
        ).mock

    def test_tasks_of_the_process_are_in_its_clock(self):
        self.open()
        self.start(506, 'vhost-500')
        self.read()
        self.run_for(25, 506)
        found = self.read()
        self.assertEqual(
            ({Role.VHOST: 25}, 25 * MS), (self.by_role(found), found.direct_ns)
        )

    def test_threads_of_the_kernel_are_not(self):
        self.open()
        self.start(800, 'vhost-500', pid=800, parent=2)
        self.start(801, 'vhost-500', pid=801, parent=2)
        self.read()
        self.run_for(25, 800, pid=800, slices=4)
        self.run_for(5, 801, pid=801, slices=2)
        self.run_for(2, 500)
        found = self.read()
        self.assertEqual(
            {Role.VHOST: 30, Role.EMULATOR: 2}, self.by_role(found)
        )
        self.assertEqual(
            (32 * MS, 7), (found.direct_ns, helpers(found).timeslices)
        )

    def test_others_are_not_taken_for_them(self):
        self.open()
        self.start(800, 'vhost-77', pid=800, parent=2)
        self.start(801, 'vhost-500', pid=801)
        self.start(802, 'vhost-500x', pid=802, parent=2)
        self.read()
        for pid in (800, 801, 802):
            self.run_for(25, pid, pid=pid)
        self.assertEqual({}, self.by_role(self.read()))

    def test_without_vhost_they_are_searched_twice(self):
        scan = self.watch_scans()
        for _ in range(5):
            self.read(kernel_threads.SCAN_INTERVAL_S)
        self.assertEqual(2, scan.call_count)

    def test_a_process_that_starts_between_two_scans(self):
        """KVM's threads are missing in the scan that others caused."""
        self.read()
        self.domain = domain(uuid='v', pid=600, vcpus=(), iothread_tids=())
        self.start(600, 'qemu-system-x86', pid=600)
        self.start(800, 'kvm-pit/600', pid=800, parent=2)
        self.read(0)
        self.read(kernel_threads.SCAN_INTERVAL_S)
        self.run_for(25, 800, pid=800)
        self.assertEqual({Role.KVM: 25}, self.by_role(self.read()))

    def test_they_are_searched_rarely(self):
        self.open()
        scan = self.watch_scans()
        for _ in range(100):
            self.read()
        self.assertLessEqual(scan.call_count, 5)

    def test_one_that_comes_later(self):
        self.open()
        self.read()
        self.start(800, 'vhost-500', pid=800, parent=2)
        for _ in range(int(kernel_threads.SCAN_INTERVAL_S) + 1):
            self.read()
        self.run_for(25, 800, pid=800)
        self.assertEqual({Role.VHOST: 25}, self.by_role(self.read()))

    def test_one_for_an_interface_that_was_plugged_in(self):
        self.read(100)
        self.open()
        self.start(800, 'vhost-500', pid=800, parent=2, start_ticks=10**9)
        self.run_for(3, 800, pid=800)
        self.domain = domain(interfaces=(base.Interface('tap0'),))
        self.assertEqual({Role.VHOST: 3}, self.by_role(self.read()))

    def test_one_that_ends(self):
        self.open()
        self.start(800, 'vhost-500', pid=800, parent=2)
        self.read()
        self.proc.end(800)
        found = self.read()
        self.assertNotIn(800, [use.tid for use in found.threads])
        self.domain = domain(uuid='other')
        self.reader.keep(())
        self.assertEqual(0, self.reader.files.open)

    def test_what_can_not_be_seen_may_be_there(self):
        with mock.patch.object(
            vhost.os, 'listdir', autospec=True, side_effect=PermissionError
        ):
            self.assertTrue(vhost.opened(PID))


class KvmTest(ProcessCase):
    """The threads of a guest under KVM with a card that vhost serves."""

    def start_all(self, threads):
        self.proc.open_device(PID, 30, '/dev/vhost-net')
        for tid, comm, pid, parent in threads:
            self.start(tid, comm, pid=pid, parent=parent)

    def used(self, *tids):
        self.read()
        for pid, tid in list(self.names):
            if tid in tids:
                self.run_for(10, tid, pid=pid)
        found = self.read()
        self.assertEqual(10 * MS * len(tids), found.direct_ns)
        return self.by_role(found)

    def test_linux_6_1(self):
        """Beside QEMU's process, all of them."""
        self.start_all(
            (
                (510, 'qemu-system-x86', PID, 1),
                (800, 'kvm-nx-lpage-recovery-500', 800, 2),
                (801, 'kvm-pit/500', 801, 2),
                (802, 'vhost-500', 802, 2),
                # Of another guest.
                (900, 'kvm-nx-lpage-recovery-50', 900, 2),
                (901, 'kvm-pit/5000', 901, 2),
                (902, 'vhost-50', 902, 2),
            )
        )
        self.assertEqual(
            {Role.VHOST: 10, Role.KVM: 20, Role.WORKER: 10, Role.OTHER: 10},
            self.used(505, 510, 800, 801, 802),
        )

    def test_linux_6_12(self):
        """In QEMU's process, but for one."""
        self.start_all(
            (
                (510, 'qemu-system-x86', PID, 1),
                (511, 'kvm-nx-lpage-re', PID, 1),
                (512, 'vhost-500', PID, 1),
                (801, 'kvm-pit/500', 801, 2),
            )
        )
        self.assertEqual(
            {Role.VHOST: 10, Role.KVM: 20, Role.WORKER: 10, Role.OTHER: 10},
            self.used(505, 510, 511, 512, 801),
        )

    def test_names_that_a_process_gave_itself(self):
        self.start_all(
            (
                (800, 'kvm-pit/500', 800, 1),
                (801, 'kvm-nx-lpage-recovery-500', 801, 1),
            )
        )
        self.read()
        for pid in (800, 801):
            self.run_for(25, pid, pid=pid)
        self.assertEqual({}, self.by_role(self.read()))


class RealProcessTest(test_base.BaseTestCase):
    """A process of this kernel, with names as QEMU gives them."""

    def test_roles(self):
        uuid = str(uuids.uuid4())
        qemu = self.useFixture(fake_qemu.FakeQemu(uuid, 2))
        iothread = qemu.start_thread('IO iothread1')
        worker = qemu.start_thread('vhost-%d' % qemu.pid)
        reader = processes.ProcessReader()
        self.addCleanup(reader.close)
        one = base.Domain(
            uuid,
            'fake',
            qemu.pid,
            tuple(
                base.Vcpu(index, tid)
                for index, tid in enumerate(qemu.vcpu_tids)
            ),
            iothread_tids=(iothread,),
        )
        reader.read(one)
        late = qemu.start_thread('worker')
        found = reader.read(one)
        self.assertEqual(
            {
                qemu.pid: Role.EMULATOR,
                iothread: Role.IOTHREAD,
                worker: Role.VHOST,
                late: Role.WORKER,
                **dict.fromkeys(qemu.vcpu_tids, Role.VCPU),
            },
            {use.tid: use.role for use in found.threads},
        )
        spent_ns = found.by_role_ns()
        self.assertGreaterEqual(spent_ns[Role.EMULATOR], 0)
        qemu.stop()
        self.assertEqual((), reader.read(one).threads)


class ReadersTest(test_base.BaseTestCase):
    def test_kinds(self):
        self.assertIsInstance(readers.of_kind('qemu'), processes.ProcessReader)
        self.assertIn(
            'not of vz',
            str(self.assertRaises(ValueError, readers.of_kind, 'vz')),
        )

    def test_this_process_has_not_opened_vhost(self):
        self.assertFalse(vhost.opened(os.getpid()))
        self.assertFalse(vhost.opened(1 << 22))
