# SPDX-License-Identifier: Apache-2.0

"""tools/test.sh and the lab node, which a script stands for."""

from tools.tests.functional import scratch_project


class NodeRunTestCase(scratch_project.ProjectTestCase):
    def test_node_is_built_before_its_silence_counts(self):
        self.add_tests(
            'vsched_agent.tests.functional.node', scratch_project.PASS
        )
        self.script(
            'tools/lab.sh',
            '[ -e image ] || { sleep 65; touch image; }\n'
            'while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done\n'
            '[ $# -eq 0 ] || { shift; exec "$@"; }',
        )
        code, lines = self.ended(
            # Longer than a busy machine takes to start the tests.
            self.start('tools/test.sh', '--node', VSCHED_TEST_SILENCE_S='60')
        )
        self.assertEqual((1, '3 passed, 1 failed'), (code, lines[-1]))

    def test_node_of_another_kind_runs_its_own_tests(self):
        self.add_tests(
            'vsched_agent.tests.functional.node', scratch_project.PASS
        )
        self.add_tests('vsched_agent.tests.functional.xen', 'self.fail()')
        self.add_tests(
            'vsched_agent.tests.functional.xen_weights', scratch_project.PASS
        )
        self.script(
            'tools/lab.sh',
            '[ "$1 $3" = "--scheduler xen" ] || exit 1\n'
            'echo "$2 $5" >>schedulers\n'
            '[ $# -eq 3 ] || { shift 4; exec "$@"; }',
        )
        code, lines = self.ended(self.start('tools/test.sh', '--xen'))
        # In each run one fails always; with RTDS, that one does too. Those of
        # weights run with each scheduler that has them.
        self.assertEqual((1, '8 passed, 4 failed'), (code, lines[-1]))
        self.assertEqual(
            [
                text
                for name in ('rtds', 'credit2', 'credit')
                for text in (name + ' ', name + ' env')
            ],
            (self.project / 'schedulers').read_text().splitlines(),
        )

    def test_node_of_xen_that_is_not_built(self):
        self.script('tools/lab.sh', 'exit 1')
        code, lines = self.ended(self.start('tools/test.sh', '--xen'))
        # The image of all schedulers is the same: it is tried once.
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))

    def with_node(self, *words, build='true', why_not='exit 1'):
        """Start tests that the node's follow; returns the process.

        :param build: what builds the node.
        :param why_not: what tells why it cannot be built.
        """
        self.script('tools/lab.sh', scratch_project.LAB % (why_not, build))
        self.add_tests(
            'vsched_agent.tests.functional.node', scratch_project.PASS
        )
        return self.start('tools/test.sh', *words, '--with-node')

    def test_node_is_built_before_tests_that_measure_and_run_last(self):
        built = self.project / 'built'
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
        self.add_tests(
            'vsched_agent.tests.functional',
            'self.assertTrue(os.path.exists(%r))' % str(built),
        )
        code, lines = self.ended(
            self.with_node('--functional', build='sleep 5; touch built')
        )
        self.assertEqual((1, '9 passed, 3 failed'), (code, lines[-1]))
        self.assertLess(lines.index('host tests:'), lines.index('node tests:'))

    def test_build_that_does_not_end_is_ended_and_repeated(self):
        self.add_tests('vsched_lib.tests.functional', scratch_project.PASS)
        self.add_tests('vsched_agent.tests.functional', scratch_project.PASS)
        path = self.project / 'tools' / 'test.sh'
        text = path.read_text()
        self.assertIn('\nBESIDE_LIMIT_S=1800\n', text)
        path.write_text(
            text.replace('\nBESIDE_LIMIT_S=1800\n', '\nBESIDE_LIMIT_S=2\n')
        )
        code, lines = self.ended(
            self.with_node(
                '--functional',
                build='[ -e pid ] || { echo $$ >pid; exec sleep 3600; }',
            )
        )
        self.assertEqual((1, '9 passed, 3 failed'), (code, lines[-1]))
        self.assert_gone(int((self.project / 'pid').read_text()))

    def test_interrupted_while_the_node_is_built(self):
        folder = self.add_tests('demo.tests.unit', scratch_project.HANG)
        process = self.with_node(
            '--unit', build='echo $$ >pid; exec sleep 3600'
        )
        self.hanging(folder, process)
        process.terminate()
        code, lines = self.ended(process)
        self.assertEqual((1, '1 passed, 2 failed'), (code, lines[-1]))
        self.assert_gone(int((self.project / 'pid').read_text()))

    def test_node_that_this_machine_cannot_have_is_named(self):
        self.add_tests('demo.tests.unit', scratch_project.PASS)
        _, lines = self.ended(
            self.with_node('--unit', build='exit 1', why_not='echo no archive')
        )
        self.assertEqual(
            [
                'not run here: tests of the lab node (--node): no archive',
                '3 passed, 1 failed',
            ],
            lines[-2:],
        )

    def test_node_that_is_not_built_fails_with_the_others(self):
        self.add_tests('demo.tests.unit', scratch_project.PASS)
        code, lines = self.ended(self.with_node('--unit', build='exit 3'))
        self.assertEqual((1, '3 passed, 2 failed'), (code, lines[-1]))
        self.assertRegex(lines[-2], r'or does not boot \(status 3\)$')

    def test_node_that_dies_fails_with_the_others(self):
        self.add_tests('demo.tests.unit', scratch_project.PASS)
        code, lines = self.ended(
            self.with_node(
                '--unit', build='[ $# -eq 1 ] || exit 255', why_not='echo no'
            )
        )
        self.assertEqual((1, '3 passed, 2 failed'), (code, lines[-1]))
        self.assertIn('node tests: ended with status 255', lines)

    def test_node_that_is_not_built(self):
        self.script('tools/lab.sh', 'exit 1')
        code, lines = self.ended(self.start('tools/test.sh', '--node'))
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))
