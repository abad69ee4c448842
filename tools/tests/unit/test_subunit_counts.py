# SPDX-License-Identifier: Apache-2.0

"""Counts of complete, cut and empty streams."""

import io
import pathlib
import subprocess
import sys

import fixtures
from oslotest import base
import subunit

from tools import subunit_counts

SCRIPT = pathlib.Path(subunit_counts.__file__)


def stream(*events):
    """Return a stream of (test, status) or (test, status, worker)."""
    output = io.BytesIO()
    result = subunit.StreamResultToBytes(output)
    for test, status, *worker in events:
        result.status(
            test_id=test,
            test_status=status,
            test_tags={'worker-%d' % one for one in worker},
        )
    return output.getvalue()


class ReadTestCase(base.BaseTestCase):
    def read(self, data):
        return subunit_counts.read(io.BytesIO(data))

    def test_outcomes(self):
        read = self.read(
            stream(
                ('a', 'exists'),
                ('a', 'inprogress'),
                ('a', 'success'),
                ('b', 'skip'),
                ('c', 'fail'),
                ('d', 'xfail'),
                ('e', 'uxsuccess'),
            )
        )
        self.assertEqual(
            {'passed': 2, 'skipped': 1, 'failed': 2}, dict(read.counts)
        )
        self.assertEqual([], read.unfinished)
        self.assertEqual(0, read.not_run)

    def test_unfinished_failed_and_listed_did_not_run(self):
        read = self.read(
            stream(
                ('a', 'exists'),
                ('b', 'exists'),
                ('c', 'exists'),
                ('a', 'inprogress'),
                ('a', 'success'),
                ('b', 'inprogress'),
            )
        )
        self.assertEqual({'passed': 1, 'failed': 1}, dict(read.counts))
        self.assertEqual(['b'], read.unfinished)
        self.assertEqual(1, read.not_run)

    def test_dead_worker_counts_as_the_test_it_was_in(self):
        read = self.read(
            stream(('a', 'inprogress', 0), ('process-returncode', 'fail', 0))
        )
        self.assertEqual({'failed': 1}, dict(read.counts))

    def test_dead_worker_between_tests_counts(self):
        read = self.read(
            stream(
                ('a', 'inprogress', 0),
                ('b', 'success', 1),
                ('process-returncode', 'fail', 1),
            )
        )
        self.assertEqual({'passed': 1, 'failed': 2}, dict(read.counts))

    def test_other_output_is_no_result(self):
        read = self.read(b'some text\n' + stream(('a', 'success')))
        self.assertEqual({'passed': 1}, dict(read.counts))

    def test_stream_cut_within_a_packet(self):
        whole = stream(('a', 'success'), ('b', 'success'))
        self.assertLess(0, self.read(whole[:-3]).counts['failed'])


class RepeatableTestCase(base.BaseTestCase):
    def repeatable(self, *events):
        return subunit_counts.read(io.BytesIO(stream(*events))).repeatable()

    def test_tests_and_classes(self):
        self.assertEqual(
            r'^(n\.D\.a$|m\.C\.)',
            self.repeatable(
                ('n.D.a', 'fail'),
                ('setUpClass (m.C)', 'fail'),
                ('n.D.b', 'success'),
            ),
        )

    def test_nothing_failed(self):
        self.assertEqual('', self.repeatable(('a', 'success')))

    def test_too_many_failed(self):
        self.assertEqual(
            '', self.repeatable(('a', 'fail'), ('b', 'fail'), ('c', 'fail'))
        )

    def test_cut(self):
        self.assertEqual(
            '', self.repeatable(('a', 'fail'), ('b', 'inprogress'))
        )
        self.assertEqual('', self.repeatable(('a', 'fail'), ('b', 'exists')))


class CommandTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def add(self, name, status, *events):
        (self.folder / (name + '.subunit')).write_bytes(stream(*events))
        if status is not None:
            (self.folder / (name + '.status')).write_text('%d\n' % status)

    def count(self):
        done = subprocess.run(
            (sys.executable, str(SCRIPT), str(self.folder)),
            capture_output=True,
            text=True,
        )
        self.assertEqual('', done.stderr)
        return done.returncode, done.stdout.splitlines()

    def test_sum_of_runs(self):
        self.add('one', 0, ('a', 'success'))
        self.add('two', 0, ('b', 'success'), ('c', 'skip'))
        self.assertEqual((0, ['2 passed, 0 failed, 1 skipped']), self.count())

    def test_failures_that_are_no_tests(self):
        self.add('one', 0, ('a', 'success'))
        (self.folder / 'failures').write_text('no guest\nno broker\n')
        self.assertEqual(
            (1, ['no guest', 'no broker', '1 passed, 2 failed']), self.count()
        )

    def test_what_cannot_run_here_is_told_and_no_failure(self):
        self.add('one', 0, ('a', 'success'))
        (self.folder / 'omissions').write_text('not run here: b\n')
        self.assertEqual(
            (0, ['not run here: b', '1 passed, 0 failed']), self.count()
        )

    def test_run_without_results(self):
        self.add('one', 0, ('a', 'success'))
        self.add('two', 1)
        code, lines = self.count()
        self.assertEqual((1, '1 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('two tests: none ran', lines)

    def test_empty_run_that_ended_well_has_failed_too(self):
        self.add('one', 0)
        code, lines = self.count()
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))

    def test_ended_between_tests(self):
        self.add(
            'one', None, ('a', 'exists'), ('b', 'exists'), ('a', 'success')
        )
        code, lines = self.count()
        self.assertEqual((1, '1 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('one tests: 1 did not run', lines)

    def test_end_that_a_test_shows_counts_once(self):
        self.add('one', 137, ('a', 'success'), ('b', 'inprogress'))
        code, lines = self.count()
        self.assertEqual((1, '1 passed, 1 failed'), (code, lines[-1]))
        self.assertIn('one tests: did not end: b', lines)

    def test_passed_alone_is_named(self):
        self.add('host', 0, ('a', 'success'), ('b', 'fail'))
        self.add('isolated', 0, ('b', 'success'))
        code, lines = self.count()
        self.assertEqual((0, '2 passed, 0 failed'), (code, lines[-1]))
        self.assertIn('host tests: FAILED FIRST, and passed alone: b', lines)

    def test_failed_alone_as_well(self):
        self.add('host', 0, ('a', 'success'), ('b', 'fail'), ('c', 'fail'))
        self.add('isolated', 0, ('b', 'fail'), ('c', 'success'))
        code, lines = self.count()
        self.assertEqual((1, '2 passed, 1 failed'), (code, lines[-1]))

    def test_class_that_passed_alone(self):
        self.add(
            'host', 0, ('m.C.a', 'success'), ('tearDownClass (m.C)', 'fail')
        )
        self.add('isolated', 0, ('m.C.a', 'success'))
        code, lines = self.count()
        self.assertEqual((0, '1 passed, 0 failed'), (code, lines[-1]))

    def test_repeat_that_was_cut(self):
        self.add('host', 0, ('a', 'success'), ('b', 'fail'))
        self.add('isolated', None, ('b', 'inprogress'))
        code, lines = self.count()
        self.assertEqual((1, '1 passed, 1 failed'), (code, lines[-1]))

    def test_why_a_test_failed_is_shown(self):
        output = io.BytesIO()
        result = subunit.StreamResultToBytes(output)
        result.status(
            test_id='a',
            test_status='fail',
            file_name='traceback',
            file_bytes='\n'.join('line %d' % n for n in range(100)).encode(),
            mime_type='text/plain;charset=utf8',
            eof=True,
        )
        (self.folder / 'one.subunit').write_bytes(output.getvalue())
        (self.folder / 'one.status').write_text('1\n')
        code, lines = self.count()
        self.assertEqual((1, '0 passed, 1 failed'), (code, lines[-1]))
        start = lines.index('one tests: why a failed:')
        self.assertEqual(
            ['    line %d' % n for n in range(70, 100)],
            lines[start + 1 : start + 31],
        )
        self.assertEqual('one tests: failed: a', lines[start + 31])

    def test_nothing(self):
        self.assertEqual((1, ['0 passed, 0 failed']), self.count())
