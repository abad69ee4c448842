# SPDX-License-Identifier: Apache-2.0

"""What is counted of the source files."""

import importlib
import inspect
import pathlib

import fixtures
from oslotest import base

from benchmarks import frame
from benchmarks import house
from benchmarks import reservation_stops

MODULE = """\
# SPDX-License-Identifier: Apache-2.0
#
# And more of it.

'''A module.

Its docstring has three lines.
'''

# A comment is a line.
import dataclasses


@dataclasses.dataclass
class Some:
    '''Some.'''

    runtime_us: int
    period_us: int = (
        1)


class Other:
    '''It has no period.'''

    runtime_us = 1
"""


class CountsTestCase(base.BaseTestCase):
    def test_source_lines(self):
        # The docstrings have five lines, the comment one, the code seven and
        # one that only ends a parenthesis.
        self.assertEqual(14, house.source_lines(MODULE))
        self.assertEqual(0, house.source_lines('# Licence\n\n'))
        self.assertEqual(1, house.source_lines('import os\n'))

    def test_statements(self):
        # import, decorator, two classes, three fields.
        self.assertEqual(7, house.statements(MODULE))

    def test_shapes(self):
        self.assertEqual(['Some'], house.shapes(MODULE))

    def test_tree(self):
        root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name, text in (
            ('vsched_agent/__init__.py', ''),
            ('vsched_agent/service.py', MODULE),
            ('vsched_agent/rooms/__init__.py', ''),
            ('vsched_agent/rooms/one.py', MODULE),
            ('vsched_agent/tests/two.py', MODULE),
            ('vsched_api/tests/unit/three.py', MODULE),
            ('benchmarks/four.py', MODULE),
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        self.assertEqual(
            {
                'loose_modules': 1,
                'files': 4,
                'source_lines': 2 * house.source_lines(MODULE),
                'statements': 14,
                'reservation_shapes': 2,
            },
            house.counts(root),
        )

    def test_this_tree(self):
        found = house.counts(frame.ROOT)
        self.assertLess(100, found['files'])
        self.assertLess(found['statements'], found['source_lines'])

    def test_coverage_is_read_from_the_output(self):
        self.assertEqual(
            92.25,
            house.coverage_pct(
                ['some', 'coverage of the unit tests:', '92.25', 'more']
            ),
        )
        self.assertRaises(ValueError, house.coverage_pct, ['some', '92.25'])


class StopsTestCase(base.BaseTestCase):
    def test_each_exists_and_is_public(self):
        for stop in reservation_stops.STOPS:
            module, _, path = stop.partition(':')
            found = importlib.import_module(module)
            owner = None
            for name in path.split('.'):
                self.assertFalse(name.startswith('_'), stop)
                owner, found = found, getattr(found, name)
            self.assertTrue(callable(found), stop)
            # Where it is written, and not where it is imported or inherited.
            if inspect.isclass(owner):
                self.assertIn(path.split('.')[-1], vars(owner), stop)
                self.assertEqual(module, owner.__module__, stop)

    def test_none_is_named_twice(self):
        self.assertEqual(
            len(reservation_stops.STOPS), len(set(reservation_stops.STOPS))
        )
