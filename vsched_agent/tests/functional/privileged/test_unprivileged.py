# SPDX-License-Identifier: Apache-2.0

"""The agent as a user without any privilege, with what ``etc`` ships."""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing as ty

from oslotest import base

from vsched_agent import privileged
from vsched_agent.privileged import isolated
from vsched_agent.tests import fixtures as agent_fixtures
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.tests import requirements

_ETC = pathlib.Path(__file__).parents[4] / 'etc' / 'vsched'
#: Only a hang takes longer.
_PATIENCE_S = 120.0


class UnprivilegedSuite:
    """For a class that lets the user have helpers, by :meth:`allow`."""

    TOOLS: ty.ClassVar[tuple[str, ...]] = ()

    def setUp(self):
        super().setUp()
        agent_fixtures.require_libvirt(self)
        for tool in ('useradd', 'userdel', 'setpriv', *self.TOOLS):
            if os.geteuid() or not shutil.which(tool):
                requirements.require(
                    self, 'libvirt', 'not root, or no %s here' % tool
                )
        before = agent_case.HostState.look()
        self.addCleanup(agent_case.assert_as_found, before)
        self.user = 'vsched-t%d' % os.getpid()
        subprocess.run(
            (
                'useradd',
                '--system',
                '--no-create-home',
                '--shell',
                '/usr/sbin/nologin',
                self.user,
            ),
            check=True,
        )
        # By force: a process of a test that failed may be ending still.
        self.addCleanup(
            subprocess.run, ('userdel', '--force', self.user), check=True
        )
        self.uid = pwd.getpwnam(self.user).pw_uid
        # Not below the test's own folder, which only root may enter.
        self.folder = pathlib.Path(tempfile.mkdtemp(dir='/tmp'))
        self.addCleanup(shutil.rmtree, self.folder)
        self.folder.chmod(0o755)
        state = self.folder / 'state'
        state.mkdir(mode=0o750)
        shutil.chown(state, self.user)
        self.config = self.folder / 'vsched.conf'
        lines = [
            '[DEFAULT]',
            'transport_url = fake://',
            '[agent]',
            'state_path = %s' % state,
            'interval = 0.5',
        ]
        for name, option, value in self.allow():
            lines += [
                '[%s]' % privileged.CONTEXTS[name].cfg_section,
                '%s = %s' % (option, value),
            ]
        self.config.write_text('\n'.join(lines) + '\n')
        self.log = self.folder / 'log'

    def words(self, *command):
        return (
            'setpriv',
            '--reuid',
            self.user,
            '--regid',
            self.user,
            '--init-groups',
            '--inh-caps=-all',
            *isolated.command(
                '-W',
                'ignore',
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                str(self.config),
            ),
            *command,
        )

    def run_command(self, *command):
        return subprocess.run(
            self.words(*command),
            stdin=subprocess.DEVNULL,
            cwd='/',
            capture_output=True,
            text=True,
            timeout=300,
        )

    def await_true(self, look, what):
        give_up_s = time.monotonic() + _PATIENCE_S
        while not look():
            if time.monotonic() > give_up_s:
                self.fail('%s: %s' % (what, self.log.read_text()[-3000:]))
            time.sleep(0.1)

    @contextlib.contextmanager
    def agent(self):
        with open(self.log, 'a', encoding='utf-8') as log:
            process = subprocess.Popen(
                self.words('run'),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd='/',
                start_new_session=True,
            )
        try:
            yield process.pid
            process.send_signal(signal.SIGTERM)
            process.wait(_PATIENCE_S)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def test_doctor(self):
        done = self.run_command('doctor', '--json')
        found = {
            one['subject']: one['level'] for one in json.loads(done.stdout)
        }
        self.assertEqual(
            ('ok', 'ok'),
            (found['deadline'], found['hypervisor']),
            done.stdout + done.stderr,
        )

    def test_reservations_are_held_and_given_back(self):
        guests = [
            agent_guests.Vm(str(self.folder), extra_specs=specs)
            for specs in (
                {
                    'vsched:cpu_runtime_us': '4000',
                    'vsched:cpu_period_us': '20000',
                },
                {
                    'vsched:cpu_runtime_us': '6000',
                    'vsched:cpu_period_us': '20000',
                    'vsched:backend': 'cfs',
                },
            )
        ]
        for one in guests:
            self.addCleanup(one.stop)
        agent_guests.start_all(guests)
        deadline, quota = guests
        before = [one.found() for one in guests]
        with self.agent() as pid:
            self.await_true(
                lambda: (
                    deadline.held() == [(4_000, 20_000)]
                    and quota.quota() == (6_000, 20_000)
                ),
                'not held',
            )
            self.assertEqual((self.uid, 0), self.power(pid))
            # One that is just being started has not dropped the rest yet.
            self.await_true(
                lambda: (
                    self.helpers(pid)
                    == {
                        name: sum(
                            1 << one
                            for one in privileged.CONTEXTS[
                                name
                            ].conf.capabilities
                        )
                        for name in ('sched', 'cgroup', *self.helpers(pid))
                    }
                ),
                'helpers: %s' % self.helpers(pid),
            )
        # Stopping changes nothing; restoring does.
        self.assertEqual([(4_000, 20_000)], deadline.held())
        done = self.run_command('restore')
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        self.assertEqual(before, [one.found() for one in guests])

    def power(self, pid):
        """A process's user, and its capabilities as bits."""
        fields = dict(
            line.split(':', 1)
            for line in pathlib.Path('/proc/%d/status' % pid)
            .read_text()
            .splitlines()
        )
        return (
            int(fields['Uid'].split()[1]),
            int(fields['CapEff'], 16) | int(fields['CapPrm'], 16),
        )

    def helpers(self, pid):
        """The capabilities of the agent's helpers, as bits, by name."""
        found = {}
        for path in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b'\0')
                if b'vsched_agent.privileged.helper' in words and (
                    self.serves(int(path.parent.name), pid)
                ):
                    found[words[-2].decode()] = self.power(
                        int(path.parent.name)
                    )[1]
        return found

    def serves(self, helper, pid):
        raise NotImplementedError


class TestSudo(UnprivilegedSuite, base.BaseTestCase):
    """As ``etc/vsched/sudoers.d/vsched-agent`` allows."""

    TOOLS = ('sudo', 'visudo')

    def allow(self):
        text = (_ETC / 'sudoers.d' / 'vsched-agent').read_text()
        text = (
            text.replace('/usr/bin/python3', sys.executable)
            .replace('VSCHED_HELPERS', 'VSCHED_TEST_%d' % os.getpid())
            .replace('\nvsched-agent ', '\n%s ' % self.user)
        )
        file = pathlib.Path('/etc/sudoers.d/vsched-test-%d' % os.getpid())
        file.touch(mode=0o440)
        self.addCleanup(file.unlink)
        file.write_text(text)
        subprocess.run(('visudo', '-cqf', file), check=True)
        return []

    def serves(self, helper, pid):
        # All are in the session that the agent leads.
        with contextlib.suppress(ProcessLookupError):
            return os.getsid(helper) == pid
        return False

    def sudo(self, *words, **more):
        return subprocess.run(
            (
                'setpriv',
                '--reuid',
                self.user,
                '--regid',
                self.user,
                '--init-groups',
                'sudo',
                '-n',
                *words,
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            **more,
        )

    def test_nothing_else_is_allowed(self):
        helper = isolated.command(
            '-W', 'ignore', '-m', 'vsched_agent.privileged.helper'
        )
        for words in (
            ('true',),
            (sys.executable, '-c', ''),
            helper,
            (*helper, 'sched', '--help'),
            (*helper, '--foreground', 'sched'),
            (*helper, 'other'),
            (sys.executable, *helper[2:], 'sched'),
            ('PYTHONPATH=/tmp', *helper, 'sched'),
        ):
            refused = self.sudo(*words)
            self.assertEqual(1, refused.returncode, words)
            # In any language, sudo itself says so.
            self.assertIn('sudo:', refused.stderr)
        allowed = self.sudo(*helper, 'sched')
        self.assertIn('standard input is no Unix socket', allowed.stderr)


class TestSockets(UnprivilegedSuite, base.BaseTestCase):
    """As the socket units do, by systemd's own activation of one socket.

    The commands and capabilities are those of the units.
    """

    TOOLS = ('systemd-socket-activate',)

    def allow(self):
        self.activators = {}
        sockets = self.folder / 'sockets'
        sockets.mkdir()
        for name in ('sched', 'cgroup', 'perf', 'turns'):
            unit = dict(
                line.split('=', 1)
                for line in (
                    _ETC / 'systemd' / ('vsched-helper-%s@.service' % name)
                )
                .read_text()
                .splitlines()
                if '=' in line and not line.startswith('#')
            )
            capability = (
                unit['CapabilityBoundingSet'].removeprefix('CAP_').lower()
            )
            user = (
                ()
                if unit.get('User') == 'root'
                else (
                    '--reuid',
                    'nobody',
                    '--regid',
                    'nogroup',
                    '--clear-groups',
                    '--inh-caps',
                    '-all,+' + capability,
                    '--ambient-caps',
                    '-all,+' + capability,
                )
            )
            command = (
                unit['ExecStart']
                .replace('/usr/bin/python3', sys.executable)
                .split()
            )
            path = sockets / (name + '.sock')
            process = subprocess.Popen(
                (
                    'systemd-socket-activate',
                    '--accept',
                    '--inetd',
                    '--listen',
                    str(path),
                    'setpriv',
                    '--bounding-set',
                    '-all,+'
                    + capability
                    + (',+setuid,+setgid,+setpcap' if user else ''),
                    '--no-new-privs',
                    *user,
                    '--',
                    *command,
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd='/',
            )
            self.activators[process.pid] = process
            self.addCleanup(process.wait)
            self.addCleanup(process.terminate)
            while not path.exists():
                time.sleep(0.02)
            shutil.chown(path, self.user)
            path.chmod(0o600)
            yield name, 'helper_socket', str(path)

    def serves(self, helper, pid):
        with contextlib.suppress(OSError):
            stat = pathlib.Path('/proc/%d/stat' % helper).read_text()
            return int(stat.rpartition(')')[2].split()[1]) in self.activators
        return False
