# SPDX-License-Identifier: Apache-2.0

import os
import pathlib
import subprocess
import threading

import ddt
import fixtures
from oslotest import base

from vsched_agent.privileged import isolated
from vsched_agent.privileged import ownership

_MACHINE = '3:cpu:/machine/qemu-1-vm.libvirt-qemu/emulator\n0::/\n'


class FakeProc(fixtures.Fixture):
    """What the kernel says of processes, by number."""

    def _setUp(self):
        self.files = {}
        self.programs = {}
        for name, new in (
            ('ownership._read', self._read),
            ('ownership._known', {}),
            ('ownership._client', None),
            ('ownership.os.readlink', self._readlink),
        ):
            self.useFixture(
                fixtures.MonkeyPatch('vsched_agent.privileged.' + name, new)
            )

    def add(
        self,
        pid,
        comm,
        *,
        tid=None,
        parent=1,
        uid=1000,
        flags=0,
        started=5,
        cgroup='0::/user.slice\n',
        program=None,
    ):
        stat = '%%d (%%s) S %d 1 1 0 -1 %d 0 0 0 0 0 0 0 0 20 0 1 0 %d 0\n' % (
            parent,
            flags,
            started,
        )
        for number, name in ((pid, comm), (tid or pid, comm)):
            self.files['/proc/%d/stat' % number] = stat % (number, name)
            self.files['/proc/%d/status' % number] = (
                'Name:\t%s\nTgid:\t%d\nUid:\t%s\n'
                % (name, pid, '\t'.join([str(uid)] * 4))
            )
        self.files['/proc/%d/cgroup' % pid] = cgroup
        if program:
            self.programs['/proc/%d/exe' % pid] = program

    def _read(self, path):
        try:
            return self.files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def _readlink(self, path):
        try:
            return self.programs[path]
        except KeyError:
            raise PermissionError(path) from None


@ddt.ddt
class TestRules(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.proc = self.useFixture(FakeProc())
        self.pid_files = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.patch(ownership, 'PID_FILES', self.pid_files)
        self.proc.add(50, 'vsched-agent', uid=64)
        ownership.serve(50)

    def allowed(self, tid):
        return not ownership.refusals([tid])

    @ddt.data(
        '0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt/vcpu0\n',
        '3:cpu:/machine/qemu-1-vm.libvirt-qemu/vcpu0\n0::/\n',
        '0::/machine/production.partition/qemu-7-x.libvirt-qemu\n',
        '0::/../../machine.slice/machine-qemu\\x2d1\\x2dvm.scope/libvirt\n',
    )
    def test_an_emulator_in_libvirts_groups(self, cgroup):
        self.proc.add(70, 'qemu-system-x86', tid=71, cgroup=cgroup)
        self.assertTrue(self.allowed(70))
        self.assertTrue(self.allowed(71))

    @ddt.data(
        '0::/user.slice/machine/qemu-1-vm.libvirt-qemu\n',
        '0::/system.slice/machine.slice/machine-qemu\\x2d1.scope\n',
        '0::/machine.slice/other.scope\n',
        '0::/machine.slicex/machine-qemu1',
        '0::/\n',
        '',
    )
    def test_an_emulator_of_anybodys(self, cgroup):
        self.proc.add(70, 'qemu-system-x86', cgroup=cgroup)
        self.assertFalse(self.allowed(70))

    @ddt.data('bash', 'qemu-ga', 'qemu-system-evil-x', 'swtpm', 'xkvm')
    def test_others_in_libvirts_groups(self, comm):
        self.proc.add(70, comm, cgroup=_MACHINE)
        self.assertFalse(self.allowed(70))

    @ddt.data(
        ('/usr/bin/qemu-system-x86_64', True),
        ('/usr/libexec/qemu-kvm (deleted)', True),
        ('/usr/bin/bash', False),
    )
    @ddt.unpack
    def test_the_program_where_it_can_be_seen(self, program, wanted):
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE, program=program)
        self.assertEqual(wanted, self.allowed(70))

    def test_libvirts_pid_files(self):
        self.proc.add(70, 'qemu-system-x86', cgroup='')
        file = self.pid_files / 'vm.pid'
        file.write_text('70')
        if os.geteuid() == 0:
            self.assertTrue(self.allowed(70))
        ownership._known.clear()
        # Anybody could have written it.
        file.chmod(0o666)
        self.assertFalse(self.allowed(70))
        file.chmod(0o644)
        self.pid_files.chmod(0o777)
        self.assertFalse(self.allowed(70))

    def test_the_daemons_own_pid_file(self):
        self.proc.add(70, 'kvm', cgroup='')
        (self.pid_files / 'driver.pid').write_text('70')
        self.assertFalse(self.allowed(70))

    def test_children(self):
        self.proc.add(60, 'python', parent=50, uid=64, tid=61)
        self.assertTrue(self.allowed(60))
        self.assertTrue(self.allowed(61))
        # A child with another user, as of a set-user-id program.
        self.proc.add(62, 'sudo', parent=50, uid=0)
        self.assertFalse(self.allowed(62))
        self.proc.add(63, 'grandchild', parent=60, uid=64)
        self.assertFalse(self.allowed(63))

    def test_a_child_that_executes_a_set_user_id_program(self):
        """It keeps its number and its start."""
        self.proc.add(60, 'python', parent=50, uid=64)
        self.assertTrue(self.allowed(60))
        self.proc.add(60, 'sudo', parent=50, uid=0)
        self.assertFalse(self.allowed(60))

    def test_children_only(self):
        self.proc.add(60, 'python', parent=50, uid=64)
        ownership.check_children([60, 99])
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.assertTrue(self.allowed(70))
        refusal = self.assertRaises(
            PermissionError, ownership.check_children, [60, 70]
        )
        self.assertEqual(
            'process 70 (qemu-system-x86) is refused: it is no child of '
            'process 50',
            str(refusal),
        )

    @ddt.data(0, -1, True, '7', None, 1.5)
    def test_no_process(self, pid):
        self.assertRaises(PermissionError, ownership.check_children, [pid])

    def test_children_of_a_process_of_that_number(self):
        self.proc.add(60, 'python', parent=50, uid=64)
        self.proc.add(50, 'other', uid=64, started=9)
        self.assertFalse(self.allowed(60))

    def test_who_is_served_itself(self):
        self.assertFalse(self.allowed(50))

    def test_vhost_workers(self):
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.proc.add(80, 'vhost-70', parent=2, flags=0x200040)
        self.assertTrue(self.allowed(80))
        # A process that calls itself so, and one of somebody else's.
        self.proc.add(81, 'vhost-70')
        self.proc.add(82, 'vhost-50', parent=2, flags=0x200040)
        self.assertFalse(self.allowed(81))
        self.assertFalse(self.allowed(82))

    def test_vhost_workers_in_the_process(self):
        """Since Linux 6.4."""
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.proc.add(70, 'vhost-70', tid=72)
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.assertTrue(self.allowed(72))

    def test_threads_of_kvm(self):
        """They are counted and never changed."""
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.proc.add(80, 'kvm-pit/70', parent=2, flags=0x200040)
        self.proc.add(81, 'kvm-nx-lpage-recovery-70', parent=2, flags=0x200040)
        self.assertFalse(self.allowed(80))
        self.assertFalse(self.allowed(81))

    def test_a_number_that_was_given_again(self):
        self.proc.add(70, 'qemu-system-x86', cgroup=_MACHINE)
        self.assertTrue(self.allowed(70))
        self.proc.add(70, 'bash', started=6)
        self.assertFalse(self.allowed(70))

    def test_a_thread_that_is_gone(self):
        self.assertTrue(self.allowed(99))

    @ddt.data(0, -1, True, '7', None, 1.5)
    def test_no_thread(self, tid):
        self.assertFalse(self.allowed(tid))

    def test_why(self):
        self.proc.add(1, 'systemd', uid=0)
        refusal = self.assertRaises(PermissionError, ownership.check, [1])
        self.assertEqual(
            'thread 1 (systemd) is refused: it is neither of a QEMU process '
            'that libvirt started nor of a child of process 50',
            str(refusal),
        )

    def test_odd_names(self):
        self.proc.add(70, 'a) S 50 (', parent=1)
        self.assertFalse(self.allowed(70))


class TestInProcess(base.BaseTestCase):
    """Without a helper, with the real /proc."""

    def test_own_threads_and_children(self):
        child = isolated.start(
            isolated.command('-c', 'input()'), stdin=subprocess.PIPE
        )
        self.addCleanup(child.communicate)
        self.assertEqual(os.getpid(), ownership.client())
        self.assertEqual(
            {},
            ownership.refusals(
                [os.getpid(), threading.get_native_id(), child.pid]
            ),
        )
        self.assertIn(1, ownership.refusals([1]))
