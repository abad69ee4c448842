# SPDX-License-Identifier: Apache-2.0

import os
import pathlib

import fixtures
from oslotest import base

from vsched_agent.profiling import checkpoint


class TestRunFile(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = os.path.join(folder, 'new', 'run.jsonl')

    def open(self, header=None, resume=True):
        found = checkpoint.RunFile(
            self.path, header or {'shares': (1, 2)}, resume
        )
        self.addCleanup(found.close)
        return found

    def test_it_goes_on_where_it_was(self):
        first = self.open()
        first.add('a', [1, -2])
        first.close()
        second = self.open()
        self.assertEqual({'a': (1, -2)}, second.done)
        second.add('b', [3])
        second.close()
        self.assertEqual({'a', 'b'}, self.open().done.keys())

    def test_or_begins_anew(self):
        first = self.open()
        first.add('a', [1])
        first.close()
        self.assertEqual({}, self.open(resume=False).done)

    def test_a_line_that_was_cut_short_counts_for_nothing(self):
        first = self.open()
        first.add('a', [1])
        first.close()
        whole = pathlib.Path(self.path).read_bytes()
        for cut in range(1, 20):
            pathlib.Path(self.path).write_bytes(whole[:-cut])
            again = self.open()
            self.assertEqual({}, again.done)
            again.add('b', [2])
            again.close()
            third = self.open()
            self.assertEqual({'b': (2,)}, third.done)
            third.close()

    def test_another_run_is_not_gone_on_with(self):
        self.open().close()
        problem = self.assertRaises(
            checkpoint.NotTheSame, self.open, {'shares': (1, 3)}
        )
        self.assertIn('another shares', str(problem))
        self.assertEqual({}, self.open({'shares': (1, 3)}, False).done)

    def test_one_process_at_a_time(self):
        self.open()
        self.assertRaises(checkpoint.Busy, self.open)

    def test_discarded(self):
        self.open().discard()
        self.assertFalse(os.path.exists(self.path))
