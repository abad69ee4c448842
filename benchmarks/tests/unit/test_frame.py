# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""What is kept of a run, and when."""

import dataclasses
import json
import pathlib
import subprocess
import types

import fixtures
from oslotest import base

from benchmarks import frame


def benchmark(*variants, metrics):
    def run(quick):
        yield from variants
        return {**metrics, 'quick': float(quick)}

    return types.SimpleNamespace(ABOUT=frame.About('T', 'text'), run=run)


class ExecuteTestCase(base.BaseTestCase):
    def test_says_variants_and_the_record(self):
        lines = []
        record = frame.execute(
            'some', benchmark(
                frame.Variant('a', {'x': 1}), frame.Variant('b', {'x': 2}),
                metrics={'m': 0.5}), True, lines.append)
        self.assertEqual({'m': 0.5, 'quick': 1.0}, record.metrics)
        said = [json.loads(line) for line in lines]
        self.assertEqual(['a', 'b'], [one['variant'] for one in said[:2]])
        self.assertEqual(dataclasses.asdict(record), said[2])
        self.assertEqual(
            {'bench', 'commit', 'machine', 'when', 'quick', 'variants',
             'metrics', 'stolen_pct'}, set(said[2]))

    def test_what_was_stolen_meanwhile(self):
        told = iter([(100, 5000), (110, 5400)])
        self.patch(frame, 'cpu_ticks', lambda: next(told))
        record = frame.execute('some', benchmark(metrics={}), True, str)
        self.assertEqual(2.5, record.stolen_pct)

    def test_ticks_grow(self):
        stolen, ticks = frame.cpu_ticks()
        self.assertLessEqual(0, stolen)
        self.assertLess(stolen, ticks)

    def test_variants_are_unique(self):
        twice = benchmark(frame.Variant('a', {}), frame.Variant('a', {}),
                          metrics={})
        self.assertRaises(
            ValueError, frame.execute, 'some', twice, True, str)


class KeepTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'results')

    def record(self, quick, number=1.0):
        return frame.Record('some', 'c', 'm', 'w', quick, {}, {'n': number})

    def kept(self):
        return frame.Record.load(self.folder / 'some.json')

    def test_quick_does_not_replace_full(self):
        self.assertTrue(frame.keep(self.record(True, 1.0), self.folder))
        self.assertTrue(frame.keep(self.record(True, 2.0), self.folder))
        self.assertTrue(frame.keep(self.record(False, 3.0), self.folder))
        self.assertFalse(frame.keep(self.record(True, 4.0), self.folder))
        self.assertEqual(self.record(False, 3.0), self.kept())
        self.assertTrue(frame.keep(
            self.record(True, 5.0), self.folder, force=True))
        self.assertEqual(self.record(True, 5.0), self.kept())


class CommitTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.git('init', '-q')
        (self.root / 'code.py').write_text('1')
        self.commit()

    def git(self, *arguments):
        return subprocess.run(
            ('git', '-C', str(self.root), '-c', 'user.name=a',
             '-c', 'user.email=a@example.org', *arguments),
            check=True, capture_output=True, text=True).stdout.strip()

    def commit(self):
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'x')

    def test_clean(self):
        self.assertEqual(self.git('rev-parse', 'HEAD'),
                         frame.commit(self.root))

    def test_results_do_not_count(self):
        results = self.root / 'benchmarks' / 'results'
        results.mkdir(parents=True)
        (results / 'some.json').write_text('{}')
        self.assertNotIn('dirty', frame.commit(self.root))
        self.commit()
        (results / 'some.json').write_text('{"a": 1}')
        self.assertNotIn('dirty', frame.commit(self.root))

    def test_changed_or_new_code_does(self):
        (self.root / 'new.py').write_text('2')
        self.assertTrue(frame.commit(self.root).endswith('-dirty'))
        self.commit()
        (self.root / 'code.py').write_text('3')
        self.assertTrue(frame.commit(self.root).endswith('-dirty'))
