# SPDX-License-Identifier: Apache-2.0

"""Attacks on the real helpers, as root, on this kernel."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import fixtures
from oslotest import base

from vsched_agent.host import cgroup as cgroups
from vsched_agent.privileged import cgroup
from vsched_agent.privileged import cgroup_tree
from vsched_agent.privileged import clocks
from vsched_agent.privileged import sched
from vsched_agent.privileged import switches
from vsched_agent.privileged import syscalls
from vsched_agent.tests import thread_farm
from vsched_lib.tests import requirements

#: Only a hang takes longer, in seconds.
_PATIENCE_S = 240
#: So long does a link flip, in seconds.
_FLIPPING_S = 2.0
#: And so often is the helper asked meanwhile, at least.
_ASKED = 20

_PLANTED = """\
import os
open(%r + '/ran-%%d' %% os.getpid(), 'w').close()
"""


class HelperCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            requirements.require(self, 'libvirt', 'not root')
        for one in (sched.sched_pctxt, cgroup.cgroup_pctxt, clocks.perf_pctxt):
            self.addCleanup(one.stop)
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def detached(self):
        """A shell that is nobody's child any more; its process."""
        started = subprocess.run(
            (
                'setsid',
                '--fork',
                'sh',
                '-c',
                'echo $$; exec >&-; sleep 600; :',
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        pid = int(started.stdout)
        self.addCleanup(self.end_session, pid)
        return pid

    def end_session(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


class TestPlantedModules(HelperCase):
    def test_what_lies_in_the_callers_folder_does_not_run(self):
        planted = self.folder / 'planted'
        marks = self.folder / 'marks'
        marks.mkdir()
        for name in (
            'oslo_privsep/__init__.py',
            'oslo_privsep/daemon.py',
            'oslo_config/__init__.py',
            'vsched_agent/__init__.py',
            'vsched_agent/privileged/__init__.py',
            'sitecustomize.py',
            'usercustomize.py',
            'startup.py',
            'warnings.py',
            'json.py',
        ):
            path = planted / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_PLANTED % str(marks))
        config = self.folder / 'vsched.conf'
        config.write_text(
            '[DEFAULT]\ntransport_url = fake://\n[agent]\nstate_path = %s\n'
            % (self.folder / 'state')
        )
        done = subprocess.run(
            (
                sys.executable,
                '-I',
                '-W',
                'ignore',
                '-m',
                'vsched_agent.cmd.agent',
                '--config-file',
                str(config),
                'doctor',
                '--json',
            ),
            cwd=planted,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env={
                **os.environ,
                'PYTHONPATH': str(planted),
                'PYTHONSTARTUP': str(planted / 'startup.py'),
                'PYTHONUSERBASE': str(planted),
            },
        )
        self.assertEqual([], list(marks.iterdir()), done.stderr)
        # The helper was started: the doctor tried the class by it.
        self.assertIn(
            'deadline', {one['subject'] for one in json.loads(done.stdout)}
        )
        self.assertNotIn('does not answer', done.stdout)


class TestControlGroups(HelperCase):
    def setUp(self):
        super().setUp()
        mount = cgroups.Cgroups().mount('cpu')
        if mount is None:
            requirements.require(self, 'libvirt', 'no cpu controller')
        self.version = mount.version
        self.name = 'cpu.max' if mount.version == 2 else 'cpu.cfs_quota_us'
        self.text = '5000 100000' if mount.version == 2 else '5000'
        self.group = os.path.join(
            mount.point, 'vsched-test-helpers-%d' % os.getpid()
        )
        os.mkdir(self.group)
        self.addCleanup(self.remove, self.group)
        self.farm = thread_farm.ThreadFarm()
        self.addCleanup(self.farm.close)
        self.before = cgroups.read_text(self.file)
        self.outside = self.folder / 'outside'
        self.outside.mkdir()
        for name, text in (
            (self.name, 'untouched'),
            ('tasks', str(self.farm.pid)),
            ('cgroup.threads', str(self.farm.pid)),
        ):
            (self.outside / name).write_text(text)

    @property
    def file(self):
        return os.path.join(self.group, self.name)

    def remove(self, path):
        give_up_s = time.monotonic() + _PATIENCE_S
        while True:
            try:
                os.rmdir(path)
            except OSError:
                if time.monotonic() > give_up_s:
                    raise
                time.sleep(0.01)
            else:
                return

    def enter(self, pid):
        pathlib.Path(self.group, 'cgroup.procs').write_text(str(pid))

    @contextlib.contextmanager
    def flipping(self, link):
        """A link that leads to the group, and outside, in turn."""
        ending = threading.Event()
        new = link.with_name(link.name + '-new')
        link.symlink_to(self.group)

        def flip():
            while not ending.is_set():
                for target in (self.outside, self.group):
                    new.symlink_to(target)
                    os.rename(new, link)

        thread = threading.Thread(target=flip)
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join()
            link.unlink()

    def race(self, link):
        """Have the helper write by the link for a while: always refused."""
        self.enter(self.farm.pid)
        asked = refused = 0
        with self.flipping(link):
            until_s = time.monotonic() + _FLIPPING_S
            while time.monotonic() < until_s or asked < _ASKED:
                asked += 1
                try:
                    cgroup.write([(str(link / self.name), self.text)])
                except PermissionError:
                    refused += 1
        self.assertEqual('untouched', (self.outside / self.name).read_text())
        self.assertEqual(asked, refused)

    def test_a_link_that_flips(self):
        self.race(self.folder / 'link')

    def test_a_link_that_flips_below_the_mounts(self):
        if self.version == 2:
            self.skipTest('no link can be made there')
        self.race(
            pathlib.Path(cgroup_tree.ROOT)
            / ('vsched-test-link-%d' % os.getpid())
        )

    def test_groups_of_others(self):
        pid = self.detached()
        self.enter(pid)
        refusal = self.assertRaises(
            PermissionError, cgroup.write, [(self.file, self.text)]
        )
        self.assertIn('thread %d (sh) is refused' % pid, str(refusal))
        self.assertEqual(self.before, cgroups.read_text(self.file))
        self.end_session(pid)

    def test_the_groups_of_our_own(self):
        self.enter(self.farm.pid)
        self.assertEqual({}, cgroup.write([(self.file, self.text)]))
        self.assertEqual(self.text, cgroups.read_text(self.file))


class TestForeignThreads(HelperCase):
    def setUp(self):
        super().setUp()
        self.foreign = (1, os.getpid(), os.getppid(), self.detached())
        self.before = [self.state(tid) for tid in self.foreign]

    def state(self, tid):
        return syscalls.get_attr(tid), os.sched_getaffinity(tid)

    def test_they_are_refused(self):
        for tid in self.foreign:
            failure = sched.set_deadline([(tid, 1_000_000, 20_000_000, 0)])
            self.assertEqual(('owner', 1), (failure['step'], failure['errno']))
            self.assertIn('thread %d (' % tid, failure['why'])
            self.assertEqual(
                ((tid, 1),), sched.leave_deadline([(tid, 0, 0, 5, 0)])
            )
            self.assertRaises(
                PermissionError, sched.set_affinity, [(tid, [0])]
            )
            self.assertEqual({tid: 1}, clocks.open_clocks([tid]))
            self.assertEqual({tid: 1}, switches.open_switches([tid]))
        self.assertEqual(
            self.before, [self.state(tid) for tid in self.foreign]
        )

    def test_one_among_our_own(self):
        """All or none."""
        farm = thread_farm.ThreadFarm()
        self.addCleanup(farm.close)
        (tid,) = farm.add(1)
        self.assertEqual(
            'owner',
            sched.set_deadline(
                [
                    (tid, 1_000_000, 20_000_000, 0),
                    (1, 1_000_000, 20_000_000, 0),
                ]
            )['step'],
        )
        self.assertEqual(syscalls.SCHED_OTHER, syscalls.get_attr(tid).policy)
        self.assertEqual(
            {}, sched.set_deadline([(tid, 1_000_000, 20_000_000, 0)])
        )
        self.assertEqual((), sched.leave_deadline([(tid, 0, 0, 0, 0)]))

    def test_what_is_not_an_entrypoint(self):
        self.assertEqual(0, sched.try_deadline())
        for name in (
            'os.system',
            'vsched_agent.privileged.cgroup.write',
            'vsched_agent.privileged.syscalls.set_attr',
        ):
            self.assertRaises(
                NameError,
                sched.sched_pctxt.channel.remote_call,
                name,
                ('true',),
                {},
                10,
            )
