# SPDX-License-Identifier: Apache-2.0

"""Processes and threads of domains, from files of the kernel."""

import os
import pathlib
import uuid as uuids

import fixtures
from oslotest import base as test_base

from vsched_agent.hypervisor import qemu_process
from vsched_agent.tests import fake_qemu

UUID = str(uuids.UUID(int=7))
NAMES = {
    10: 'qemu-system-x86',
    11: 'call_rcu',
    12: 'IO iothread1',
    13: 'IO mon_iothread',
    14: 'CPU 0/KVM',
    15: 'CPU 10/TCG',
    16: 'CPU x/KVM',
    17: 'worker',
    18: 'ALL CPUs/TCG',
}


class FindTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.uuid = str(uuids.uuid4())
        self.qemu = self.useFixture(fake_qemu.FakeQemu(self.uuid))
        self.run_dir = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def find(self, name='dom', uuid=None):
        return qemu_process.find(uuid or self.uuid, name, self.run_dir)

    def test_by_pid_file(self):
        (self.run_dir / 'dom.pid').write_text('%d\n' % self.qemu.pid)
        found = self.find()
        self.assertEqual(self.qemu.pid, found.pid)
        self.assertTrue(qemu_process.alive(found))

    def test_by_state_file(self):
        (self.run_dir / 'dom.pid').write_text('not a number')
        (self.run_dir / 'dom.xml').write_text(
            "<!-- generated -->\n<domstatus state='running' pid='%d'/>"
            % self.qemu.pid
        )
        self.assertEqual(self.qemu.pid, self.find().pid)

    def test_by_command_line(self):
        self.assertEqual(self.qemu.pid, self.find().pid)
        self.assertEqual(self.qemu.pid, self.find('../../etc/passwd').pid)

    def test_case_of_the_uuid(self):
        self.assertEqual(self.qemu.pid, self.find(uuid=self.uuid.upper()).pid)

    def test_a_stale_pid_file_is_not_believed(self):
        (self.run_dir / 'dom.pid').write_text('%d' % os.getpid())
        (self.run_dir / 'dom.xml').write_text('<domstatus pid=')
        self.assertEqual(self.qemu.pid, self.find().pid)

    def test_nobody(self):
        self.assertIsNone(self.find(uuid=str(uuids.uuid4())))

    def test_ended(self):
        found = self.find()
        self.qemu.stop()
        self.assertFalse(qemu_process.alive(found))
        self.assertIsNone(self.find())
        self.assertEqual({}, qemu_process.comms(found.pid))
        self.assertEqual(frozenset(), qemu_process.tids(found.pid))
        self.assertEqual({}, qemu_process.vcpus_by_cgroup(found.pid))

    def test_threads(self):
        self.assertEqual(
            {0: self.qemu.vcpu_tids[0]},
            qemu_process.vcpus_by_comm(qemu_process.comms(self.qemu.pid)),
        )
        self.assertLessEqual(
            set(self.qemu.vcpu_tids), qemu_process.tids(self.qemu.pid)
        )


class StartTicksTest(test_base.BaseTestCase):
    def test_own(self):
        process = qemu_process.start_ticks(os.getpid())
        self.assertEqual(
            process, qemu_process.start_ticks(os.getpid(), os.getpid())
        )

    def test_gone(self):
        self.assertIsNone(qemu_process.start_ticks(1 << 22))
        self.assertIsNone(qemu_process.start_ticks(os.getpid(), 1 << 22))

    def test_a_name_with_brackets(self):
        proc = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (proc / '5').mkdir()
        (proc / '5' / 'stat').write_text(
            '5 (a) R) (b) S ' + ' '.join(str(n) for n in range(4, 53))
        )
        self.assertEqual(22, qemu_process.start_ticks(5, proc=proc))


class NamesTest(test_base.BaseTestCase):
    def test_vcpus(self):
        self.assertEqual({0: 14, 10: 15}, qemu_process.vcpus_by_comm(NAMES))

    def test_iothreads(self):
        self.assertEqual((12,), qemu_process.iothreads_by_comm(NAMES))

    def test_agreed(self):
        self.assertEqual(
            {0: 14, 2: 15},
            qemu_process.existing_vcpus({0: 14, 1: 14, 2: 15, 3: 99}, NAMES),
        )


class CgroupTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.proc, self.cgroup = root / 'proc', root / 'cgroup'
        (self.proc / '5').mkdir(parents=True)

    def groups(self, where, file):
        for number, tid in (('0', '14'), ('1', '15'), ('x', '16')):
            group = self.cgroup / where / ('vcpu' + number)
            group.mkdir(parents=True)
            (group / file).write_text(tid + '\n')
        (self.cgroup / where / 'vcpu2').mkdir()
        (self.cgroup / where / 'vcpu2' / file).write_text('')

    def found(self):
        return qemu_process.vcpus_by_cgroup(5, self.proc, self.cgroup)

    def test_version_1(self):
        (self.proc / '5' / 'cgroup').write_text(
            '4:memory:/machine/m\n1:cpu:/machine/m/emulator\n0::/\n'
        )
        self.groups('cpu/machine/m', 'tasks')
        self.assertEqual({0: 14, 1: 15}, self.found())

    def test_version_1_joined_controllers(self):
        (self.proc / '5' / 'cgroup').write_text(
            '1:cpu,cpuacct:/machine/m/emulator\n'
        )
        self.groups('cpu,cpuacct/machine/m', 'tasks')
        self.assertEqual({0: 14, 1: 15}, self.found())

    def test_version_2(self):
        (self.proc / '5' / 'cgroup').write_text(
            '0::/machine.slice/machine-qemu.scope/libvirt/emulator\n'
        )
        self.groups(
            'machine.slice/machine-qemu.scope/libvirt', 'cgroup.threads'
        )
        self.assertEqual({0: 14, 1: 15}, self.found())

    def test_a_thread_of_kvm_in_the_group_of_a_vcpu(self):
        """Since Linux 6.12; the order in the group is not its age."""
        where = 'machine.slice/machine-qemu.scope/libvirt'
        (self.proc / '5' / 'cgroup').write_text('0::/%s/emulator\n' % where)
        self.groups(where, 'cgroup.threads')
        (self.cgroup / where / 'vcpu0' / 'cgroup.threads').write_text(
            '13\n14\n'
        )
        for tid, comm in ((13, 'kvm-nx-lpage-re'), (14, 'CPU 0/KVM')):
            folder = self.proc / '5' / 'task' / str(tid)
            folder.mkdir(parents=True)
            (folder / 'comm').write_text(comm + '\n')
        self.assertEqual({0: 14, 1: 15}, self.found())

    def test_none(self):
        (self.proc / '5' / 'cgroup').write_text('0::/user.slice\n')
        self.assertEqual({}, self.found())
