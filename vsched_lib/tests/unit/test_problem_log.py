# SPDX-License-Identifier: Apache-2.0
"""A problem that repeats is logged once in full."""

import logging

from oslotest import base as test_base

from vsched_lib import problem_log


class _Log:
    def __init__(self):
        self.lines = []

    def log(self, level, msg, *args, exc_info=None):
        self.lines.append((level, msg % args, exc_info))


class ProblemLogTest(test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.now_s = 0.0
        self.log = _Log()
        self.problems = problem_log.ProblemLog(
            self.log, 300.0, lambda: self.now_s
        )

    def fail(self, subject='one', kind=ValueError, elsewhere=False):
        try:
            if elsewhere:
                raise kind('no')
            raise kind('no')
        except kind as error:
            self.problems.failed(subject, error, '%s failed', subject)

    def test_once_in_full(self):
        for _ in range(200):
            self.fail()
            self.now_s += 1
        ((level, line, error),) = self.log.lines
        self.assertEqual((logging.ERROR, 'one failed'), (level, line))
        self.assertIsInstance(error, ValueError)

    def test_reminders_have_a_count_and_no_traceback(self):
        for _ in range(901):
            self.fail()
            self.now_s += 1
        self.assertEqual(4, len(self.log.lines))
        for _, line, error in self.log.lines[1:]:
            self.assertEqual(
                "one failed: ValueError('no'), 300 more times", line
            )
            self.assertIsNone(error)

    def test_other_problems_are_others(self):
        self.fail()
        self.fail('two')
        self.fail(kind=KeyError)
        self.fail(elsewhere=True)
        self.assertEqual(
            [True] * 4, [error is not None for _, _, error in self.log.lines]
        )

    def test_in_full_again_after_a_while(self):
        self.fail()
        self.now_s += 299
        self.fail()
        self.now_s += 301
        self.fail()
        self.assertEqual(
            [True, True], [error is not None for _, _, error in self.log.lines]
        )

    def test_memory_is_bounded(self):
        for number in range(3 * problem_log.MOST_PROBLEMS):
            self.fail('instance %d' % number)
        self.assertEqual(
            problem_log.MOST_PROBLEMS, len(self.problems._problems)
        )

    def test_an_error_that_was_never_raised(self):
        self.problems.failed('one', ValueError('x'), 'failed')
        self.assertEqual(1, len(self.log.lines))
