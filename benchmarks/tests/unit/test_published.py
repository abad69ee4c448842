# SPDX-License-Identifier: Apache-2.0

"""What the operators' page shows of the records."""

import json
import pathlib

import fixtures
from oslotest import base

from benchmarks import catalogue
from benchmarks import frame
from benchmarks import published


class PublishedTestCase(base.BaseTestCase):
    about = frame.About(
        'Some title',
        'Some text.',
        units={'m': 'in percent', 'later': 'something new'},
        targets=(
            frame.at_most('m', 2, '%', 'issue 3'),
            frame.at_least('later', 5, '', 'issue 4'),
        ),
    )

    def record(self, m, **changes):
        return frame.Record(
            **{
                'bench': 'some',
                'commit': 'c0ffeec0ffee',
                'machine': 'a machine',
                'when': '2026-01-02T00:00:00Z',
                'quick': False,
                'variants': {},
                'metrics': {'m': m},
                'stolen_pct': 0.25,
                **changes,
            }
        )

    def made(self, *records):
        return published.benchmark('some', self.about, records)

    def test_the_newest_run_decides(self):
        found = self.made(
            self.record(2.123456), self.record(1.5), self.record(3)
        )
        self.assertEqual('Some title', found['title'])
        self.assertEqual(
            {
                'metric': 'm',
                'target': '≤ 2 %',
                'unit': '%',
                'source': 'issue 3',
                'ours': 2.123,
                'missed_by': 0.1235,
                'least': 1.5,
                'most': 3,
                'runs': 3,
                'runs_met': 1,
            },
            found['targets'][0],
        )

    def test_met(self):
        found = self.made(self.record(1.5))['targets'][0]
        self.assertEqual(
            (1.5, 0, 1), (found['ours'], found['missed_by'], found['runs_met'])
        )

    def test_its_run(self):
        self.assertEqual(
            {
                'when': '2026-01-02T00:00:00Z',
                'commit': 'c0ffeec0ffee',
                'dirty': False,
                'machine': 'a machine',
                'stolen_pct': 0.25,
            },
            self.made(self.record(1), self.record(2, commit='older'))['run'],
        )

    def test_a_tree_with_changes(self):
        run = self.made(self.record(1, commit='c0ffee-dirty'))['run']
        self.assertEqual(('c0ffee', True), (run['commit'], run['dirty']))

    def test_what_the_newest_run_lacks_is_not_measured(self):
        found = self.made(self.record(1, metrics={}), self.record(1.5))
        target = found['targets'][0]
        self.assertIsNone(target['ours'])
        self.assertIsNone(target['missed_by'])
        self.assertEqual((1, 1), (target['runs'], target['runs_met']))
        self.assertEqual(0, found['targets'][1]['runs'])

    def test_never_measured(self):
        found = self.made()
        self.assertIsNone(found['run'])
        for target in found['targets']:
            self.assertIsNone(target['ours'])
            self.assertIsNone(target['least'])
            self.assertEqual(0, target['runs'])


class FileTestCase(base.BaseTestCase):
    def test_the_committed_one_is_of_the_committed_records(self):
        self.assertEqual(
            published.text(),
            published.FILE.read_text(encoding='utf-8'),
            'run "python -m benchmarks.published", build vsched_ui and '
            'commit both',
        )

    def test_every_target_of_every_benchmark(self):
        found = json.loads(published.FILE.read_text(encoding='utf-8'))
        self.assertEqual(
            [
                (
                    name,
                    [one.metric for one in catalogue.load(name).ABOUT.targets],
                )
                for name in catalogue.NAMES
            ],
            [
                (one['name'], [target['metric'] for target in one['targets']])
                for one in found['benchmarks']
            ],
        )

    def test_a_new_record_changes_it(self):
        results = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        before = published.text(results)
        record = frame.Record(
            'drill', 'c0ffee', 'm', '2026-01-01T00:00:00Z', False, {}, {}
        )
        (results / 'drill').mkdir()
        (results / 'drill' / 'one.json').write_text(record.dump())
        self.assertNotEqual(before, published.text(results))

    def test_it_is_written(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'file')
        self.assertEqual(0, published.main([str(path)]))
        self.assertEqual(published.text(), path.read_text(encoding='utf-8'))
