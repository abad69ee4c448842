# SPDX-License-Identifier: Apache-2.0

"""Pages from results, and results from the benchmarks that are listed."""

import pathlib
import types

from docutils import core
import fixtures
from oslotest import base

from benchmarks import agent_cost
from benchmarks import catalogue
from benchmarks import evidence
from benchmarks import frame
from benchmarks import history
from benchmarks import sources


class EvidenceTestCase(base.BaseTestCase):
    about = frame.About(
        'Some title',
        'Some text.',
        (frame.Paper('m', 'Paper', '12 %', 'one CPU'),),
        {'m': 'seconds of something', 'later': 'something new'},
        targets=(
            frame.at_most('m', 2, '%', 'issue 3'),
            frame.at_least('later', 5, '', 'issue 4'),
        ),
        former={'other': 'Two outliers decided it.'},
    )

    def run_of(
        self, m=1.5, sources='same', state=history.State.CURRENT, **changes
    ):
        return history.Run(
            frame.Record(
                **{
                    'bench': 'some',
                    'commit': 'c0ffeec0ffee',
                    'machine': 'a machine',
                    'when': '2026-01-01T00:00:00Z',
                    'quick': False,
                    'variants': {
                        'a': {'x': 1.23456, 'top': [['f.py:_g', 1.5]]},
                        'b': {'x': 2},
                        'c': {'x': 3},
                    },
                    'metrics': {'m': m, 'other': 7.0},
                    **changes,
                }
            ),
            sources,
            state,
        )

    def page(self, *runs, picture=False):
        return evidence.page('some', self.about, runs, picture)

    def cells(self, text, title):
        """Return the rows of the table below a title."""
        part = text.split('%s\n%s\n' % (title, '-' * len(title)))[1]
        rows = []
        for line in part.split('list-table::')[1].splitlines():
            if line.startswith('   * - '):
                rows.append([line[7:]])
            elif line.startswith('     -'):
                rows[-1].append(line[7:])
            elif rows and line:
                break
        return rows


class PageTestCase(EvidenceTestCase):
    def test_page_is_clean_rst_with_our_number_beside_the_papers(self):
        for picture in (False, True):
            text = self.page(
                self.run_of(), self.run_of(9.0, 'older'), picture=picture
            )
            tree = core.publish_doctree(
                text, settings_overrides={'report_level': 5}
            )
            self.assertEqual(
                [],
                list(
                    tree.findall(lambda node: node.tagname == 'system_message')
                ),
            )
            for word in (
                '1.5',
                '12 %',
                'c0ffee',
                'a machine',
                'python -m benchmarks some',
            ):
                self.assertIn(word, text)
        self.assertIn('some.svg', text)

    def test_met(self):
        row = self.cells(self.page(self.run_of()), 'Targets')[1]
        self.assertEqual(
            ['``m``', '≤ 2 %', 'issue 3', '1.5 (1 run)', '1.5 (1 run)', 'met'],
            row,
        )

    def test_missed_by_how_much(self):
        row = self.cells(self.page(self.run_of(2.5)), 'Targets')[1]
        self.assertEqual('missed by 0.5 %', row[5])

    def test_median_and_spread_over_runs_of_the_same_sources(self):
        row = self.cells(
            self.page(
                self.run_of(1.0),
                self.run_of(3.0),
                self.run_of(1.5),
                self.run_of(9.0, 'older'),
            ),
            'Targets',
        )[1]
        self.assertEqual(
            [
                '1.5 (1 to 3, 3 runs)',
                '2.25 (1 to 9, 4 runs)',
                'met; 2 of all 4 runs met it',
            ],
            row[3:],
        )

    def test_runs_of_unknown_sources_are_no_siblings(self):
        row = self.cells(
            self.page(self.run_of(16.85, None), self.run_of(5.21, None)),
            'Targets',
        )[1]
        self.assertEqual('16.85 (1 run)', row[3])
        self.assertEqual('11.03 (5.21 to 16.85, 2 runs)', row[4])

    def test_every_run_is_listed(self):
        rows = self.cells(
            self.page(
                self.run_of(1.0),
                self.run_of(
                    9.0,
                    'older',
                    history.State.STALE,
                    commit='abcdef0123-dirty',
                ),
            ),
            'All runs',
        )
        self.assertEqual(
            [
                [
                    '2026-01-01T00:00:00Z',
                    '``c0ffeec0``',
                    'a machine',
                    'current',
                    '1',
                    '',
                ],
                [
                    '2026-01-01T00:00:00Z',
                    '``abcdef01``',
                    'a machine',
                    'stale, dirty',
                    '9',
                    '',
                ],
            ],
            rows[1:],
        )

    def test_new_definition_is_not_measured_yet(self):
        row = self.cells(self.page(self.run_of()), 'Targets')[2]
        self.assertEqual(
            ['``later``', '≥ 5', 'issue 4', '', '', 'not measured'], row
        )

    def test_former_definition_is_marked(self):
        text = self.page(self.run_of())
        rows = self.cells(text, 'Measured no longer')
        self.assertEqual(
            ['``other``', '7 (1 run)', 'Two outliers decided it.'], rows[1]
        )
        self.assertEqual(1, text.count('``other``'))

    def test_warnings(self):
        self.assertNotIn('warning::', self.page(self.run_of()))
        self.assertIn(
            'warning:: Stale',
            self.page(self.run_of(state=history.State.STALE)),
        )
        self.assertIn(
            'warning:: Dirty', self.page(self.run_of(commit='c0ffee-dirty'))
        )
        self.assertIn(
            'warning:: What',
            self.page(self.run_of(state=history.State.UNKNOWN)),
        )

    def test_what_was_stolen(self):
        for stolen_pct, wanted in ((None, False), (0.25, True)):
            text = self.page(self.run_of(stolen_pct=stolen_pct))
            self.assertEqual(wanted, '0.25 % of its CPUs' in text)
            self.assertIn('a machine', text)


class WriteTestCase(base.BaseTestCase):
    def test_every_kept_result(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        evidence.write(folder, pictures=False)
        index = (folder / 'index.rst').read_text()
        for name in catalogue.NAMES:
            kept = bool(history.records(name))
            self.assertEqual(kept, (folder / (name + '.rst')).exists())
            self.assertEqual(kept, '   %s\n' % name in index)
            for target in catalogue.load(name).ABOUT.targets:
                self.assertIn('``%s``' % target.metric, index)

    def test_targets_that_were_never_measured(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        evidence.write(folder / 'pages', False, folder / 'no results')
        self.assertEqual(
            ['index.rst'], [one.name for one in (folder / 'pages').iterdir()]
        )
        index = (folder / 'pages' / 'index.rst').read_text()
        for name in catalogue.NAMES:
            for target in catalogue.load(name).ABOUT.targets:
                self.assertIn(
                    '   * - ``%s``\n'
                    '     - ``%s``\n'
                    '     - %s\n'
                    '     - %s\n'
                    '     -\n'
                    '     -\n'
                    '     - not measured\n'
                    '     - none\n'
                    % (name, target.metric, target.text(), target.source),
                    index,
                )
        self.assertNotIn(':doc:', index)

    def test_lines_say_so_too(self):
        empty = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        everything = list(evidence.every(empty))
        self.useFixture(
            fixtures.MockPatchObject(evidence, 'every', lambda: everything)
        )
        self.assertIn(
            'drill gap_s: = 0 s; ours -: not measured [no record]',
            list(evidence.target_lines()),
        )
        self.assertEqual([], list(evidence.stale_lines()))

    def test_index_is_clean_rst(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        evidence.write(folder, pictures=False)
        # Sphinx's own words, of which docutils knows nothing.
        text = (folder / 'index.rst').read_text().split('.. toctree')[0]
        tree = core.publish_doctree(
            text.replace(':doc:', ''), settings_overrides={'report_level': 5}
        )
        self.assertEqual(
            [],
            list(tree.findall(lambda node: node.tagname == 'system_message')),
        )

    def test_picture_of_a_record_that_is_too_old(self):
        def draw(record, figure):
            record.metrics['new']

        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path, 'picture.svg'
        )
        record = frame.Record('some', 'c', 'm', 'w', False, {}, {})
        self.assertFalse(
            evidence._picture(types.SimpleNamespace(draw=draw), record, path)
        )
        self.assertFalse(path.exists())


class CatalogueTestCase(base.BaseTestCase):
    def test_every_benchmark_is_complete(self):
        for name in catalogue.NAMES:
            benchmark = catalogue.load(name)
            about = benchmark.ABOUT
            self.assertTrue(callable(benchmark.run))
            for metric in (
                *(one.metric for one in about.papers),
                *(one.metric for one in about.targets),
            ):
                self.assertIn(metric, about.units, name)
            self.assertEqual(set(), set(about.units) & set(about.former))

    def test_what_is_declared_exists_and_no_import_leads_there(self):
        tree = sources.Tree(frame.ROOT)
        for name in catalogue.NAMES:
            imported = set(sources.files(name, (), tree))
            for path in catalogue.load(name).ABOUT.exercises:
                self.assertNotEqual(
                    set(),
                    set(tree.below(path)) - imported,
                    '%s: %s' % (name, path),
                )

    def test_unknown(self):
        self.assertRaises(KeyError, catalogue.load, 'frame')

    def test_results_are_full_runs_of_known_metrics(self):
        self.assertEqual([], list(frame.RESULTS.glob('*.json')))
        for path in frame.RESULTS.glob('*/*.json'):
            record = frame.Record.load(path)
            self.assertEqual(path, history.path_of(record))
            self.assertFalse(record.quick)
            about = catalogue.load(record.bench).ABOUT
            self.assertEqual(
                set(),
                set(record.metrics) - set(about.units) - set(about.former),
                path,
            )


class FitTestCase(base.BaseTestCase):
    def test_line(self):
        slope, intercept, r2 = agent_cost._fit([1, 2, 4], [5, 7, 11])
        self.assertAlmostEqual(2, slope)
        self.assertAlmostEqual(3, intercept)
        self.assertAlmostEqual(1, r2)

    def test_no_line(self):
        self.assertLess(agent_cost._fit([1, 2, 3, 4], [1, 9, 1, 9])[2], 0.5)
