# SPDX-License-Identifier: Apache-2.0

"""tools/test.sh and .ci/run count what was done, whatever happens to them."""

import os
import pathlib
import signal
import subprocess

from tools.tests.functional import scratch_project

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

BROKEN_SERVICE = """\
answers_rabbitmq() {
    false
}

start_rabbitmq() {
    spawn rabbitmq root sh -c 'echo the address is in use; %(end)s'
    while %(waits)s && [ -e "/proc/$SPAWNED" ]; do
        sleep 0.1
    done
    await rabbitmq "$SPAWNED" 3600
}
"""


class UnitRunTestCase(scratch_project.ProjectTestCase):
    def folder(self, special):
        return self.add_tests('demo.tests.unit', special)

    def test_complete_and_nothing_runs_twice(self):
        folder = self.folder(scratch_project.PASS)
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertEqual((1, '3 passed, 1 failed'), (code, lines[-1]))
        self.assertEqual(4, len((folder / 'began').read_text().split()))
        # The results are printed as they come, with the failure's text.
        self.assertIn('as it should', '\n'.join(lines))

    def test_dead_worker(self):
        self.folder(scratch_project.DIE)
        code, lines = self.ended(self.start('tools/test.sh', '--unit'))
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('unit tests: 1 did not run', lines)
        self.assertIn(
            'unit tests: did not end: '
            'demo.tests.unit.test_some.SomeTestCase.test_3_special',
            lines,
        )

    def _interrupted(self, number):
        folder = self.folder(scratch_project.HANG)
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

    def test_what_an_interrupted_test_has_started_is_ended(self):
        folder = self.folder(
            '%s\n        %s' % (scratch_project.LEAVE, scratch_project.HANG)
        )
        process = self.start('tools/test.sh', '--unit')
        self.hanging(folder, process)
        process.terminate()
        self._ended_what_was_left(folder, process)

    def test_what_a_test_leaves_is_ended(self):
        folder = self.folder(scratch_project.LEAVE)
        self._ended_what_was_left(
            folder, self.start('tools/test.sh', '--unit')
        )

    def _ended_what_was_left(self, folder, process):
        _, lines = self.ended(process)
        left = int((folder / 'left').read_text())
        self.assert_gone(left)
        self.assertIn('%d sleep 3600' % left, [line.strip() for line in lines])

    def test_stestr_is_killed(self):
        folder = self.folder(scratch_project.HANG)
        process = self.start('tools/test.sh', '--unit')
        worker = self.hanging(folder, process)
        os.kill(os.getpgid(worker), signal.SIGKILL)
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('unit tests: ended with status 137', lines)
        self.assert_gone(worker)

    def test_hang(self):
        folder = self.folder(scratch_project.HANG)
        # Longer than a busy machine takes to start the tests.
        process = self.start(
            'tools/test.sh', '--unit', VSCHED_TEST_SILENCE_S='60'
        )
        worker = self.hanging(folder, process)
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        # Where it hangs, by the fault handler.
        self.assertIn('in test_3_special', '\n'.join(lines))
        self.assert_gone(worker)

    def _covered(self, limit):
        self.add_tests('demo.tests.unit', scratch_project.PASS)
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


class FunctionalRunTestCase(scratch_project.ProjectTestCase):
    def test_interrupted_host_tests_count_with_those_before(self):
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
        self.add_tests('nova_filters.tests.functional', scratch_project.PASS)
        folder = self.add_tests(
            'vsched_agent.tests.functional', scratch_project.HANG
        )
        process = self.start('tools/test.sh', '--functional')
        self.hanging(folder, process)
        process.terminate()
        code, lines = self.ended(process)
        # 3 + 3 + 1 and 1 + 1 + 2.
        self.assertEqual((1, '7 passed, 4 failed'), (code, lines[-1]))

    def test_host_test_that_passes_alone_is_named(self):
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
        self.add_tests('nova_filters.tests.functional', scratch_project.PASS)
        self.add_tests(
            'vsched_agent.tests.functional', scratch_project.FAIL_FIRST
        )
        code, lines = self.ended(self.start('tools/test.sh', '--functional'))
        # One of each package fails alone as well.
        self.assertEqual((1, '9 passed, 3 failed'), (code, lines[-1]))
        self.assertIn(
            'host tests: FAILED FIRST, and passed alone: '
            'vsched_agent.tests.functional.test_some.SomeTestCase'
            '.test_3_special',
            lines,
        )

    def test_shared_test_that_passes_alone_is_named(self):
        self.add_tests(
            'vsched_lib.tests.functional', scratch_project.FAIL_FIRST
        )
        self.add_tests('vsched_agent.tests.functional', scratch_project.PASS)
        code, lines = self.ended(self.start('tools/test.sh', '--functional'))
        # One of each package fails alone as well.
        self.assertEqual((1, '6 passed, 2 failed'), (code, lines[-1]))
        self.assertIn(
            'shared tests: FAILED FIRST, and passed alone: '
            'vsched_lib.tests.functional.test_some.SomeTestCase'
            '.test_3_special',
            lines,
        )

    def test_tests_that_measure_wait_for_what_runs_beside(self):
        ended = self.project / 'ended'
        self.script('beside', 'sleep 5; touch %s; exit 3' % ended)
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
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
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
        folder = self.add_tests('tools.tests.functional', scratch_project.PASS)
        (folder / 'test_some.py').rename(folder / 'test_devstack.py')
        self.add_tests('vsched_agent.tests.functional', scratch_project.PASS)
        url, commit = self.devstack()
        reason = 'not run here: devstack-smoke.sh, since openstack/devstack'
        for variables, counts, told in (
            ({}, '6 passed, 2 failed', True),
            ({'VSCHED_DEVSTACK': '/checkout'}, '9 passed, 3 failed', False),
            # Of two servers one answers.
            (
                {
                    'VSCHED_DEVSTACK_URL': '%s.none %s' % (url, url),
                    'VSCHED_DEVSTACK_COMMIT': commit,
                },
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

    def _service_does_not_start(self, end, waits):
        folder = self.add_tests(
            'vsched_lib.tests.functional', scratch_project.PASS
        )
        self.write(
            'tools/services/rabbitmq.sh',
            BROKEN_SERVICE % {'end': end, 'waits': waits},
        )
        code, lines = self.ended(self.start('tools/test.sh'))
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('the address is in use', lines)
        self.assertIn('rabbitmq: does not start', lines)
        self.assertFalse((folder / 'began').exists())

    def test_service_that_does_not_start_ends_it_with_its_log(self):
        # It ends while it is awaited.
        self._service_does_not_start('sleep 3; exit 1', 'false')

    def test_service_that_has_ended_before_it_is_awaited(self):
        self._service_does_not_start('exit 1', 'true')


class ContinuousIntegrationTestCase(scratch_project.ProjectTestCase):
    def setUp(self):
        super().setUp()
        self.script('tools/lint.sh', 'echo some lint; exit 1')
        for package in ('vsched_lib', 'nova_filters', 'vsched_agent'):
            self.add_tests(package + '.tests.functional', scratch_project.PASS)
        self.add_tests(
            'vsched_agent.tests.functional.node', scratch_project.PASS
        )
        self.script('tools/lab.sh', scratch_project.LAB % ('exit 1', ''))

    def test_count_is_last_when_lint_fails(self):
        self.add_tests('demo.tests.unit', scratch_project.PASS)
        code, lines = self.ended(self.start('.ci/run'))
        # Those of the node are not among them.
        self.assertEqual((1, '12 passed, 4 failed'), (code, lines[-1]))
        self.assertIn('lint: failed', lines)

    def test_interrupted(self):
        folder = self.add_tests('demo.tests.unit', scratch_project.HANG)
        process = self.start('.ci/run')
        worker = self.hanging(folder, process)
        process.terminate()
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assertNotIn('some lint', lines)
        self.assert_gone(worker)

    def test_test_script_is_killed(self):
        folder = self.add_tests('demo.tests.unit', scratch_project.HANG)
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
