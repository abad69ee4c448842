# SPDX-License-Identifier: Apache-2.0

"""A small project in which tools/test.sh and .ci/run run its tests.

With real stestr, workers and streams.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import fixtures
from oslotest import base
from testtools import content

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: Only a hang takes as long.
PATIENCE_S = 240

CASES = """\
import os
import pathlib
import signal
import subprocess
import time
import unittest

HERE = pathlib.Path(__file__).parent


class SomeTestCase(unittest.TestCase):
    def setUp(self):
        with open(HERE / 'began', 'a') as began:
            print(self._testMethodName, file=began)

    def test_1_passes(self):
        pass

    def test_2_fails(self):
        self.fail('as it should')

    def test_3_special(self):
        %s

    def test_4_passes(self):
        pass
"""
# The file appears with its content, as it is read while the test runs.
HANG = """\
(HERE / 'new').write_text(str(os.getpid()))
        os.replace(HERE / 'new', HERE / 'pid')
        time.sleep(3600)"""
#: Starts a process that is in no group of the run.
LEAVE = """\
left = subprocess.Popen(
            ['sleep', '3600'],
            start_new_session=True,
            # stestr reads until nobody has its pipe open.
            stdout=subprocess.DEVNULL,
        )
        (HERE / 'left').write_text(str(left.pid))"""
DIE = 'os.kill(os.getpid(), signal.SIGKILL)'
PASS = 'pass'
FAIL_FIRST = """\
path = HERE / 'second'
        self.addCleanup(path.touch)
        self.assertTrue(path.exists())"""

#: Services that run already, by name; the guest is there and no package is
#: missing.
SERVICE = """\
answers_%(name)s() {
    true
}
"""
NOTHING_TO_INSTALL = """\
LIBVIRT_PACKAGES=()
PYTHON_PACKAGES=()
GUEST_PACKAGES=()
ensure_packages() {
    true
}
"""
VENV_IS_THERE = """\
ensure_venv() {
    true
}
"""

#: In the place of tools/lab.sh: why it cannot build the node, and what does.
LAB = """\
if [ "$1" = --why-not ]; then
    %s
    exit
fi
%s
[ $# -eq 1 ] || { shift 2; exec "$@"; }
"""


class ProjectTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.project = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in (
            'tools/test.sh',
            'tools/services.sh',
            'tools/stestr_worker.py',
            'tools/shared-workers.yaml',
            'tools/services/devstack.sh',
            'tools/services/processes.sh',
            'tools/subunit_counts.py',
            '.ci/run',
        ):
            target = self.project / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
        # All tests are one worker's, in their order.
        self.write(
            '.stestr.conf',
            '[DEFAULT]\ntest_path=.\ntop_dir=.\ngroup_regex=^.\n',
        )
        self.write('tools/services/packages.sh', NOTHING_TO_INSTALL)
        self.write('tools/services/venv.sh', VENV_IS_THERE)
        for name in ('libvirtd', 'rabbitmq', 'postgresql', 'mariadb'):
            self.write('tools/services/%s.sh' % name, SERVICE % {'name': name})
        self.script('tools/guest/build.sh', 'true')
        (self.project / '.venv').symlink_to(sys.prefix)

    def write(self, name, text):
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def script(self, name, text):
        self.write(name, '#!/bin/sh\n%s\n' % text).chmod(0o755)

    def add_tests(self, package, special):
        """Add tests in a package of this name; returns their folder."""
        parts = package.split('.')
        for depth in range(len(parts)):
            self.write('/'.join([*parts[: depth + 1], '__init__.py']), '')
        return self.write(
            '%s/test_some.py' % '/'.join(parts), CASES % special
        ).parent

    def start(self, *command, **variables):
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(('OS_', 'VSCHED_', 'PYTHON'))
            },
            'VSCHED_RUN_DIR': str(self.project / 'run'),
            'VSCHED_DATA_DIR': str(self.project / 'data'),
            'TMPDIR': str(self.project / 'tmp'),
            'VSCHED_DEVSTACK_URL': str(self.project / 'none'),
            'VSCHED_TEST_GRACE_S': '30',
            **variables,
        }
        (self.project / 'tmp').mkdir(exist_ok=True)
        self.output = self.project / 'output'
        with self.output.open('wb') as output:
            process = subprocess.Popen(
                (str(self.project / command[0]), *command[1:]),
                cwd=self.project,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                # A job in the background of a shell ignores it.
                preexec_fn=lambda: signal.signal(
                    signal.SIGINT, signal.SIG_DFL
                ),
            )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.terminate()
            process.wait(PATIENCE_S)

    def ended(self, process):
        """Return the exit code and the lines of the output."""
        code = process.wait(PATIENCE_S)
        lines = self.output.read_text(errors='replace').splitlines()
        self.addDetail('output', content.text_content('\n'.join(lines)))
        return code, lines

    def hanging(self, folder, process):
        """Wait until the special test hangs; returns the worker's pid."""
        name = '%s.test_some.SomeTestCase.test_3_special' % '.'.join(
            folder.relative_to(self.project).parts
        )
        path = folder / 'pid'
        deadline = time.monotonic() + PATIENCE_S
        # In the results: listed, and begun.
        while (
            not path.exists()
            or sum(
                result.read_bytes().count(name.encode())
                for result in (self.project / 'tmp').glob('*/*.subunit')
            )
            < 2
        ):
            self.assertIsNone(process.poll(), self.output.read_text())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        return int(path.read_text())

    def assert_gone(self, pid):
        deadline = time.monotonic() + PATIENCE_S
        while pathlib.Path('/proc/%d' % pid).exists():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
