# SPDX-License-Identifier: Apache-2.0

"""tools/test.sh and .ci/run count what was done, whatever happens to them.

They run in a small project of their own, with real stestr, workers and
streams.
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
DIE = 'os.kill(os.getpid(), signal.SIGKILL)'
PASS = 'pass'
FAIL_FIRST = """\
path = HERE / 'second'
        self.addCleanup(path.touch)
        self.assertTrue(path.exists())"""

COVERAGE = """\
[tool.coverage.run]
parallel = true
source = ["demo"]
omit = ["*/tests/*"]

[tool.coverage.report]
fail_under = %d
"""
COVERED = """\
import unittest

from demo import code


class SomeTestCase(unittest.TestCase):
    def test_some(self):
        self.assertEqual(1, code.covered())
"""
#: Three of four lines are run by the test.
HALF_COVERED = """\
def covered():
    return 1
def not_covered():
    return 2
"""

#: Services that run already, by name; the guest is there and no package is
#: missing.
SERVICE = """\
answers_%(name)s() {
    true
}
"""
BROKEN_SERVICE = """\
answers_rabbitmq() {
    false
}

start_rabbitmq() {
    spawn rabbitmq root sh -c 'echo the address is in use; exit 1'
    await rabbitmq "$SPAWNED" 3600
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


class ProjectTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.project = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in (
            'tools/test.sh',
            'tools/services.sh',
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


class UnitRunTestCase(ProjectTestCase):
    def folder(self, special):
        return self.add_tests('demo.tests.unit', special)

    def test_complete_and_nothing_runs_twice(self):
        folder = self.folder(PASS)
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertEqual((1, '3 passed, 1 failed'), (code, lines[-1]))
        self.assertEqual(4, len((folder / 'began').read_text().split()))
        # The results are printed as they come, with the failure's text.
        self.assertIn('as it should', '\n'.join(lines))

    def test_dead_worker(self):
        self.folder(DIE)
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('unit tests: 1 did not run', lines)
        self.assertIn(
            'unit tests: did not end: '
            'demo.tests.unit.test_some.SomeTestCase.test_3_special',
            lines,
        )

    def _interrupted(self, number):
        folder = self.folder(HANG)
        process = self.start('tools/test.sh', '--unit')
        worker = self.hanging(folder, process)
        process.send_signal(number)
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('unit tests: 1 did not run', lines)
        self.assert_gone(worker)

    def test_interrupted_by_term(self):
        self._interrupted(signal.SIGTERM)

    def test_interrupted_by_int(self):
        self._interrupted(signal.SIGINT)

    def test_stestr_is_killed(self):
        folder = self.folder(HANG)
        process = self.start('tools/test.sh', '--unit')
        worker = self.hanging(folder, process)
        os.kill(os.getpgid(worker), signal.SIGKILL)
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('unit tests: ended with status 137', lines)
        self.assert_gone(worker)

    def test_hang(self):
        folder = self.folder(HANG)
        process = self.start(
            'tools/test.sh', '--unit', VSCHED_TEST_SILENCE_S='15'
        )
        worker = self.hanging(folder, process)
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        # Where it hangs, by the fault handler.
        self.assertIn('in test_3_special', '\n'.join(lines))
        self.assert_gone(worker)

    def _covered(self, limit):
        self.add_tests('demo.tests.unit', PASS)
        self.write('demo/tests/unit/test_some.py', COVERED)
        self.write('demo/code.py', HALF_COVERED)
        self.write('pyproject.toml', COVERAGE % limit)
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertIn('75.00', lines)
        return code, lines[-1]

    def test_enough_is_covered(self):
        self.assertEqual((0, '1 passed, 0 failed'), self._covered(70))

    def test_too_little_is_covered(self):
        self.assertEqual((1, '1 passed, 1 failed'), self._covered(80))

    def test_no_tests(self):
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('unit tests: none ran', lines)


class FunctionalRunTestCase(ProjectTestCase):
    def test_interrupted_host_tests_count_with_those_before(self):
        self.add_tests('vsched_lib.tests.functional', PASS)
        self.add_tests('nova_filters.tests.functional', PASS)
        folder = self.add_tests('vsched_agent.tests.functional', HANG)
        process = self.start('tools/test.sh', '--functional')
        self.hanging(folder, process)
        process.terminate()
        code, lines = self.ended(process)
        # 3 + 3 + 1 and 1 + 1 + 2.
        self.assertEqual((1, '7 passed, 4 failed'), (code, lines[-1]))

    def test_host_test_that_passes_alone_is_named(self):
        self.add_tests('vsched_lib.tests.functional', PASS)
        self.add_tests('nova_filters.tests.functional', PASS)
        self.add_tests('vsched_agent.tests.functional', FAIL_FIRST)
        code, lines = self.ended(self.start('tools/test.sh', '--functional'))
        # One of each package fails alone as well.
        self.assertEqual((1, '9 passed, 3 failed'), (code, lines[-1]))
        self.assertIn(
            'host tests: FAILED FIRST, and passed alone: '
            'vsched_agent.tests.functional.test_some.SomeTestCase'
            '.test_3_special',
            lines,
        )

    def test_tests_that_measure_wait_for_what_runs_beside(self):
        ended = self.project / 'ended'
        self.script('beside', 'sleep 5; touch %s; exit 3' % ended)
        self.add_tests('vsched_lib.tests.functional', PASS)
        self.add_tests(
            'vsched_agent.tests.functional',
            'self.assertTrue(os.path.exists(%r))' % str(ended),
        )
        results = self.project / 'results'
        results.mkdir()
        code, lines = self.ended(
            self.start(
                'tools/test.sh',
                '--functional',
                '--beside',
                str(self.project / 'beside'),
                VSCHED_TEST_RESULTS=str(results),
            )
        )
        self.assertEqual((1, '6 passed, 2 failed'), (code, lines[-1]))
        self.assertEqual('3\n', (results / 'beside.status').read_text())

    def devstack(self):
        """Make a repository, and return it and its only commit."""
        made = self.project / 'devstack'
        made.mkdir()
        (made / 'functions').touch()
        git = ['git', '-C', str(made), '-c', 'user.name=a', '-c']
        git.append('user.email=a@example.org')
        for words in (['init', '-q'], ['add', '.'], ['commit', '-qm', 'All']):
            subprocess.run([*git, *words], check=True)
        found = subprocess.run(
            [*git, 'rev-parse', 'HEAD'], check=True, stdout=subprocess.PIPE
        )
        return str(made), found.stdout.decode().strip()

    def test_devstack_is_left_out_where_it_cannot_be_fetched(self):
        self.add_tests('vsched_lib.tests.functional', PASS)
        folder = self.add_tests('tools.tests.functional', PASS)
        (folder / 'test_some.py').rename(folder / 'test_devstack.py')
        self.add_tests('vsched_agent.tests.functional', PASS)
        url, commit = self.devstack()
        reason = 'not run here: devstack-smoke.sh, since openstack/devstack'
        for variables, counts, told in (
            ({}, '6 passed, 2 failed', True),
            ({'VSCHED_DEVSTACK': '/checkout'}, '9 passed, 3 failed', False),
            (
                {'VSCHED_DEVSTACK_URL': url, 'VSCHED_DEVSTACK_COMMIT': commit},
                '9 passed, 3 failed',
                False,
            ),
        ):
            code, lines = self.ended(
                self.start('tools/test.sh', '--functional', **variables)
            )
            self.assertEqual((1, counts), (code, lines[-1]))
            self.assertEqual(
                told, any(line.startswith(reason) for line in lines)
            )

    def test_node_is_built_before_its_silence_counts(self):
        self.add_tests('vsched_agent.tests.functional.node', PASS)
        self.script(
            'tools/lab.sh',
            '[ -e image ] || { sleep 4; touch image; }\n'
            'while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done\n'
            '[ $# -eq 0 ] || { shift; exec "$@"; }',
        )
        code, lines = self.ended(
            self.start('tools/test.sh', '--node', VSCHED_TEST_SILENCE_S='2')
        )
        self.assertEqual((1, '3 passed, 1 failed'), (code, lines[-1]))

    def test_node_of_another_kind_runs_its_own_tests(self):
        self.add_tests('vsched_agent.tests.functional.node', PASS)
        self.add_tests('vsched_agent.tests.functional.xen', 'self.fail()')
        self.script(
            'tools/lab.sh',
            '[ "$1" = xen ] || exit 1\n'
            '[ $# -eq 1 ] || { shift 2; exec "$@"; }',
        )
        code, lines = self.ended(self.start('tools/test.sh', '--xen'))
        # The one that always fails, and that.
        self.assertEqual((1, '2 passed, 2 failed'), (code, lines[-1]))

    def test_node_that_is_not_built(self):
        self.script('tools/lab.sh', 'exit 1')
        code, lines = self.ended(self.start('tools/test.sh', '--node'))
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))

    def test_service_that_does_not_start_ends_it_with_its_log(self):
        folder = self.add_tests('vsched_lib.tests.functional', PASS)
        self.write('tools/services/rabbitmq.sh', BROKEN_SERVICE)
        code, lines = self.ended(self.start('tools/test.sh'))
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('the address is in use', lines)
        self.assertIn('rabbitmq: does not start', lines)
        self.assertFalse((folder / 'began').exists())


class ContinuousIntegrationTestCase(ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.script('tools/lint.sh', 'echo some lint; exit 1')
        for package in ('vsched_lib', 'nova_filters', 'vsched_agent'):
            self.add_tests(package + '.tests.functional', PASS)

    def test_count_is_last_when_lint_fails(self):
        self.add_tests('demo.tests.unit', PASS)
        code, lines = self.ended(self.start('.ci/run'))
        self.assertEqual((1, '12 passed, 4 failed'), (code, lines[-1]))
        self.assertIn('lint: failed', lines)

    def test_interrupted(self):
        folder = self.add_tests('demo.tests.unit', HANG)
        process = self.start('.ci/run')
        worker = self.hanging(folder, process)
        process.terminate()
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertNotIn('some lint', lines)
        self.assert_gone(worker)

    def test_test_script_is_killed(self):
        folder = self.add_tests('demo.tests.unit', HANG)
        process = self.start('.ci/run')
        worker = self.hanging(folder, process)
        self.addCleanup(self.assert_gone, worker)
        self.addCleanup(os.kill, worker, signal.SIGKILL)
        # stestr leads the group of its workers; its parent is the script.
        status = pathlib.Path(
            '/proc/%d/status' % os.getpgid(worker)
        ).read_text()
        parent = next(
            int(line.split()[1])
            for line in status.splitlines()
            if line.startswith('PPid:')
        )
        os.kill(parent, signal.SIGKILL)
        code, lines = self.ended(process)
        # Whether the death of the worker came before or after the count,
        # the test that it was in has failed.
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
