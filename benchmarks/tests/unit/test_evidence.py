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

"""Pages from results, and results from the benchmarks that are listed."""

import pathlib

from docutils import core
import fixtures
from oslotest import base

from benchmarks import agent_cost
from benchmarks import catalogue
from benchmarks import evidence
from benchmarks import frame


class PageTestCase(base.BaseTestCase):
    def record(self, **changes):
        return frame.Record(**{
            'bench': 'some', 'commit': 'c0ffee', 'machine': 'a machine',
            'when': '2026-01-01T00:00:00Z', 'quick': False,
            'variants': {'a': {'x': 1.23456, 'top': [['f.py:_g', 1.5]]},
                         'b': {'x': 2}, 'c': {'x': 3}},
            'metrics': {'m': 0.000123456, 'other': 7.0}, **changes})

    about = frame.About(
        'Some title', 'Some text.',
        (frame.Paper('m', 'Paper', '12 %', 'one CPU'),),
        {'m': 'seconds of something'})

    def test_page_is_clean_rst_with_our_number_beside_the_papers(self):
        for picture in (False, True):
            text = evidence.page('some', self.about, self.record(), picture)
            tree = core.publish_doctree(
                text, settings_overrides={'report_level': 5})
            self.assertEqual([], list(tree.findall(
                lambda node: node.tagname == 'system_message')))
            for word in ('0.0001235', '12 %', 'c0ffee', 'a machine',
                         'python -m benchmarks some'):
                self.assertIn(word, text)
        self.assertIn('some.svg', text)

    def test_quick_run_says_so(self):
        text = evidence.page(
            'some', self.about, self.record(quick=True), False)
        self.assertIn('--quick', text)
        self.assertIn('note::', text)


    def test_what_was_stolen(self):
        for stolen_pct, wanted in ((None, False), (0.25, True)):
            text = evidence.page('some', self.about, self.record(
                stolen_pct=stolen_pct), False)
            self.assertEqual(wanted, '0.25 % of its CPUs' in text)
            self.assertIn('a machine', text)


class WriteTestCase(base.BaseTestCase):
    def test_every_kept_result(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        evidence.write(folder, pictures=False)
        index = (folder / 'index.rst').read_text()
        for name in catalogue.NAMES:
            kept = (frame.RESULTS / (name + '.json')).exists()
            self.assertEqual(kept, (folder / (name + '.rst')).exists())
            self.assertEqual(kept, '   %s\n' % name in index)


class CatalogueTestCase(base.BaseTestCase):
    def test_every_benchmark_is_complete(self):
        for name in catalogue.NAMES:
            benchmark = catalogue.load(name)
            self.assertTrue(callable(benchmark.run))
            for paper in benchmark.ABOUT.papers:
                self.assertIn(paper.metric, benchmark.ABOUT.units)

    def test_unknown(self):
        self.assertRaises(KeyError, catalogue.load, 'frame')

    def test_results_are_of_known_metrics(self):
        for path in frame.RESULTS.glob('*.json'):
            record = frame.Record.load(path)
            self.assertEqual(path.stem, record.bench)
            self.assertEqual(
                set(), set(record.metrics) - set(
                    catalogue.load(record.bench).ABOUT.units))


class FitTestCase(base.BaseTestCase):
    def test_line(self):
        slope, intercept, r2 = agent_cost._fit([1, 2, 4], [5, 7, 11])
        self.assertAlmostEqual(2, slope)
        self.assertAlmostEqual(3, intercept)
        self.assertAlmostEqual(1, r2)

    def test_no_line(self):
        self.assertLess(agent_cost._fit([1, 2, 3, 4], [1, 9, 1, 9])[2], 0.5)
