# SPDX-License-Identifier: Apache-2.0

"""What is kept of a run, and when."""

import dataclasses
import json
import types

from oslotest import base

from benchmarks import frame
from benchmarks.tests import repository


def benchmark(*variants, metrics):
    def run(quick):
        yield from variants
        return {**metrics, 'quick': float(quick)}

    return types.SimpleNamespace(ABOUT=frame.About('T', 'text'), run=run)


class ExecuteTestCase(base.BaseTestCase):
    def test_says_variants_and_the_record(self):
        lines = []
        record = frame.execute(
            'some',
            benchmark(
                frame.Variant('a', {'x': 1}),
                frame.Variant('b', {'x': 2}),
                metrics={'m': 0.5},
            ),
            True,
            lines.append,
        )
        self.assertEqual({'m': 0.5, 'quick': 1.0}, record.metrics)
        said = [json.loads(line) for line in lines]
        self.assertEqual(['a', 'b'], [one['variant'] for one in said[:2]])
        self.assertEqual(dataclasses.asdict(record), said[2])
        self.assertEqual(
            {
                'bench',
                'commit',
                'machine',
                'when',
                'quick',
                'variants',
                'metrics',
                'stolen_pct',
                'sources',
            },
            set(said[2]),
        )

    def test_sources_are_kept(self):
        record = frame.execute('some', benchmark(metrics={}), True, str, 'abc')
        self.assertEqual('abc', record.sources)

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
        twice = benchmark(
            frame.Variant('a', {}), frame.Variant('a', {}), metrics={}
        )
        self.assertRaises(ValueError, frame.execute, 'some', twice, True, str)


class CommitTestCase(repository.RepositoryCase):
    def setUp(self):
        super().setUp()
        (self.root / 'code.py').write_text('1')
        self.commit()

    def test_clean(self):
        self.assertEqual(
            self.git('rev-parse', 'HEAD'), frame.commit(self.root)
        )

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
