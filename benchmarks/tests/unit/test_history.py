# SPDX-License-Identifier: Apache-2.0

"""Every run is kept, and those of changed code are stale."""

import pathlib

import fixtures

from benchmarks import frame
from benchmarks import history
from benchmarks.tests import repository

MODULE = """\
import frame
from vsched_lib import used

ABOUT = frame.About(
    '%s',
)


def run(quick):
    return %d
"""


class HistoryTestCase(repository.RepositoryCase):
    about = frame.About('Title', 'text', exercises=('code', 'gone.py'))

    def setUp(self):
        super().setUp()
        self.folder = self.root / 'benchmarks' / 'results'
        self.write('code/some.txt', '1')
        self.write('other.py', '1')
        self.write('vsched_lib/used.py', '1')
        self.write('benchmarks/some.py', MODULE % ('Title', 1))
        self.commit()

    def record(self, when='2026-01-01T00:00:00Z', commit=None, **changes):
        return frame.Record(
            **{
                'bench': 'some',
                'machine': 'm',
                'when': when,
                'quick': False,
                'commit': commit or self.git('rev-parse', 'HEAD'),
                'variants': {},
                'metrics': {'n': 1.0},
                **changes,
            }
        )

    def digest(self, commit=None):
        return history.digest('some', self.about, commit, self.root)

    def states(self):
        return [
            run.state
            for run in history.runs('some', self.about, self.folder, self.root)
        ]

    def test_no_run_overwrites_another(self):
        for when in ('2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z'):
            path = history.keep(self.record(when), self.folder)
            self.assertTrue(path.exists())
        self.assertEqual(
            ['2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z'],
            [one.when for one in history.records('some', self.folder)],
        )
        self.assertRaises(
            FileExistsError,
            history.keep,
            self.record('2026-01-02T00:00:00Z'),
            self.folder,
        )

    def test_quick_runs_are_not_kept(self):
        self.assertIsNone(history.keep(self.record(quick=True), self.folder))
        self.assertEqual([], history.records('some', self.folder))

    def test_digest_of_a_commit_is_that_of_its_tree(self):
        self.assertIsNotNone(self.digest())
        self.assertEqual(self.digest(), self.digest('HEAD'))

    def test_changed_code_makes_it_stale_by_digest_and_by_commit(self):
        history.keep(self.record('2026-01-01T00:00:00Z'), self.folder)
        history.keep(
            self.record('2026-01-02T00:00:00Z', sources=self.digest()),
            self.folder,
        )
        self.assertEqual([history.State.CURRENT] * 2, self.states())
        # What is not committed counts, too.
        self.write('code/new.txt', '2')
        self.assertEqual([history.State.STALE] * 2, self.states())
        self.commit()
        self.assertEqual([history.State.STALE] * 2, self.states())

    def test_changed_import_makes_it_stale(self):
        history.keep(self.record(), self.folder)
        self.write('vsched_lib/used.py', '2')
        self.commit()
        self.assertEqual([history.State.STALE], self.states())

    def test_declaration_that_grew_is_compared_by_the_commit(self):
        history.keep(self.record(sources=self.digest()), self.folder)
        self.about = frame.About('Title', 'text', exercises=('other.py',))
        self.assertEqual([history.State.CURRENT], self.states())
        self.write('other.py', '2')
        self.assertEqual([history.State.STALE], self.states())

    def test_digest_decides_where_the_commit_is_lost(self):
        history.keep(
            self.record(commit='0123456789' * 4, sources=self.digest()),
            self.folder,
        )
        self.assertEqual([history.State.CURRENT], self.states())
        self.write('code/some.txt', '2')
        self.assertEqual([history.State.STALE], self.states())

    def test_other_code_does_not(self):
        history.keep(self.record(sources=self.digest()), self.folder)
        self.write('other.py', '2')
        self.write('vsched_lib/unused.py', '2')
        self.commit()
        self.assertEqual([history.State.CURRENT], self.states())

    def test_module_of_the_benchmark_counts_without_what_it_says(self):
        history.keep(self.record(sources=self.digest()), self.folder)
        self.write('benchmarks/some.py', MODULE % ('Other title', 1))
        self.commit()
        self.assertEqual([history.State.CURRENT], self.states())
        self.write('benchmarks/some.py', MODULE % ('Other title', 2))
        self.assertEqual([history.State.STALE], self.states())

    def test_lost_commit(self):
        history.keep(self.record(commit='0123456789' * 4), self.folder)
        self.assertEqual([history.State.UNKNOWN], self.states())

    def test_dirty(self):
        record = self.record()
        history.keep(self.record(commit=record.commit + '-dirty'), self.folder)
        (run,) = history.runs('some', self.about, self.folder, self.root)
        self.assertTrue(run.dirty)
        self.assertEqual(history.State.CURRENT, run.state)

    def test_no_git(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.assertIsNone(history.digest('some', self.about, None, folder))
