# SPDX-License-Identifier: Apache-2.0

"""Which trees are measured, and where the record goes."""

import os
import pathlib
import types
from unittest import mock

import fixtures
from oslotest import base

from benchmarks import __main__ as command
from benchmarks import catalogue
from benchmarks import frame
from benchmarks import history


class MainTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.errors = self.useFixture(fixtures.StringStream('stderr')).stream
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', self.errors))
        self.useFixture(
            fixtures.MonkeyPatch(
                'sys.stdout',
                self.useFixture(fixtures.StringStream('stdout')).stream,
            )
        )
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'results'
        )
        # Not that of this machine, which a measurement may hold.
        self.useFixture(fixtures.EnvironmentVariable('VSCHED_HOST_HELD'))
        self.useFixture(
            fixtures.EnvironmentVariable(
                'VSCHED_RUN_DIR', str(self.folder.parent)
            )
        )
        self.ran = []
        self.held = []

        def run(quick):
            self.ran.append(quick)
            self.held.append(os.environ.get('VSCHED_HOST_HELD'))
            yield frame.Variant('one', {'x': 1})
            return {'m': 1.0}

        self.patch(
            catalogue,
            'load',
            lambda name: types.SimpleNamespace(
                ABOUT=frame.About('T', 'text'), run=run
            ),
        )
        keep = history.keep
        self.patch(history, 'keep', lambda record: keep(record, self.folder))
        self.patch(command.signal, 'signal', mock.Mock())

    def tree(self, commit):
        self.patch(frame, 'commit', lambda: commit)

    def said(self):
        self.errors.seek(0)
        return self.errors.read()

    def test_clean_tree(self):
        self.tree('c0ffee00')
        self.assertEqual(0, command.main(['alert']))
        (path,) = self.folder.glob('alert/*.json')
        self.assertIn('record in %s' % path, self.said())
        # One measurement at a time on a machine.
        self.assertEqual(['1'], self.held)

    def test_dirty_tree_is_refused(self):
        self.tree('c0ffee00-dirty')
        self.assertEqual(2, command.main(['alert']))
        self.assertEqual([], self.ran)
        self.assertIn('--dirty', self.said())

    def test_dirty_tree_on_request_is_marked(self):
        self.tree('c0ffee00-dirty')
        self.assertEqual(0, command.main(['alert', '--dirty']))
        (path,) = self.folder.glob('alert/*.json')
        self.assertEqual('c0ffee00-dirty', frame.Record.load(path).commit)

    def test_quick_run_keeps_nothing(self):
        self.tree('c0ffee00-dirty')
        self.assertEqual(0, command.main(['alert', '--quick']))
        self.assertEqual([True], self.ran)
        self.assertEqual([], list(self.folder.glob('*/*.json')))
        self.assertIn('no record is kept', self.said())
