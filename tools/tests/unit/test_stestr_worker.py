# SPDX-License-Identifier: Apache-2.0

"""Which modules a process of stestr imports, and which tests it runs."""

import io
import os
import pathlib
import subprocess
import sys

import fixtures
from oslotest import base
import subunit
import testtools

from tools import stestr_worker

SCRIPT = pathlib.Path(stestr_worker.__file__)
#: Says in a file that it was imported.
MODULE = """\
import pathlib
import unittest

with open(pathlib.Path(__file__).with_suffix('.imported'), 'w'):
    pass


class SomeTestCase(unittest.TestCase):
    def test_first(self):
        pass

    def test_second(self):
        pass
"""


class Seen(testtools.StreamResult):
    """Keeps which tests have which status."""

    def __init__(self):
        super().__init__()
        self.tests = {}

    def status(self, test_id=None, test_status=None, **fields):
        if test_id and test_status:
            self.tests.setdefault(test_status, []).append(test_id)


class StestrWorkerTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in (
            'one/tests/unit/test_a.py',
            'one/tests/unit/test_b.py',
            'one/tests/functional/test_c.py',
            'two/tests/unit/deep/test_d.py',
        ):
            self.write(name, MODULE)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(self.folder).parents[:-1]:
            (self.folder / folder / '__init__.py').touch()
        path.write_text(text)

    def work(self, *words, kind='unit', code=0):
        """Return the tests by status, as stestr's worker tells them."""
        done = subprocess.run(
            [
                sys.executable,
                str(SCRIPT),
                kind,
                '-m',
                'stestr.subunit_runner.run',
                'discover',
                '-t',
                '.',
                '.',
                *words,
            ],
            cwd=self.folder,
            capture_output=True,
            check=False,
        )
        self.assertEqual(code, done.returncode, done.stderr)
        seen = Seen()
        subunit.ByteStreamToStreamResult(
            io.BytesIO(done.stdout), non_subunit_name='output'
        ).run(seen)
        return seen.tests

    def imported(self):
        return sorted(path.stem for path in self.folder.glob('**/*.imported'))

    def run_listed(self, *tests):
        (self.folder / 'ids').write_text(''.join(one + '\n' for one in tests))
        return self.work('--load-list', 'ids').get('success', [])

    def test_tests_of_one_kind_are_listed(self):
        found = self.work('--list')['exists']
        self.assertEqual(6, len(found))
        self.assertEqual(['test_a', 'test_b', 'test_d'], self.imported())
        (test, _) = self.work('--list', kind='functional')['exists']
        self.assertEqual(
            'one.tests.functional.test_c.SomeTestCase.test_first', test
        )

    def test_only_modules_of_the_tests_are_imported(self):
        tests = [
            'one.tests.unit.test_b.SomeTestCase.test_second',
            'two.tests.unit.deep.test_d.SomeTestCase.test_first',
        ]
        self.assertEqual(tests, sorted(self.run_listed(*tests)))
        self.assertEqual(['test_b', 'test_d'], self.imported())

    def test_a_name_of_no_module_has_all_imported(self):
        test = 'one.tests.unit.test_b.SomeTestCase.test_second'
        self.assertEqual([test], self.run_listed(test, 'elsewhere.test_some'))
        self.assertEqual(['test_a', 'test_b', 'test_d'], self.imported())

    def test_a_module_that_cannot_be_imported_fails(self):
        self.write('one/tests/unit/test_b.py', 'import no_such_module\n')
        self.work('--list', code=2)

    def test_another_command_is_refused(self):
        self.assertRaises(
            SystemExit, stestr_worker.main, ['x', 'unit', '-m', 'other']
        )

    def test_what_tests_start_has_pythons_own_path(self):
        self.write(
            'one/tests/unit/test_b.py',
            MODULE + '\n    def test_third(self):\n'
            '        import os, sys\n'
            "        self.assertNotIn('PYTHON', os.environ)\n"
            '        self.assertNotIn(%r, sys.path)\n' % str(SCRIPT.parent),
        )
        self.useFixture(fixtures.EnvironmentVariable('PYTHON', 'python'))
        test = 'one.tests.unit.test_b.SomeTestCase.test_third'
        self.assertEqual([test], self.run_listed(test))
        self.assertIn('PYTHON', os.environ)
