# SPDX-License-Identifier: Apache-2.0

"""Each functional test is run once, by one process or alone."""

import configparser
import pathlib
import re
import subprocess

from oslotest import base
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKERS = ROOT / 'tools' / 'shared-workers.yaml'


def classes():
    """Return names of a test in each class with functional tests."""
    return [
        '%s.%s.test_some'
        % (
            '.'.join(path.relative_to(ROOT).with_suffix('').parts),
            # Some modules get all of their tests by load_tests().
            name,
        )
        for path in ROOT.glob('*/tests/functional/**/test_*.py')
        for name in re.findall(r'^class (\w+)', path.read_text(), re.M)
        or ['AnyTest']
    ]


class GroupsTestCase(base.BaseTestCase):
    """What stestr gives to one process."""

    def setUp(self):
        super().setUp()
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(ROOT / '.stestr.conf')
        self.regex = parser['DEFAULT']['group_regex']

    def group(self, test):
        return re.match(self.regex, test).group()

    def test_a_class(self):
        self.assertEqual('a.b.C.', self.group('a.b.C.test_some'))

    def test_the_requests_of_all_files_on_one_database(self):
        module = 'vsched_api.tests.functional.test_api_%s.'
        names = {
            path.stem
            for path in ROOT.glob('vsched_api/tests/functional/test_*.py')
            if 'build_tests' in path.read_text()
        }
        self.assertEqual(
            {
                'test_api_%s' % one
                for one in ('mariadb', 'postgresql', 'sqlite')
            },
            names,
        )
        for database in ('mariadb', 'sqlite'):
            for request in ('jobs_all', 'usage_a_page'):
                self.assertEqual(
                    module % database,
                    self.group(
                        '%s%s.test_request' % (module % database, request)
                    ),
                )


class SharedWorkersTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.workers = [
            one['worker'] for one in yaml.safe_load(WORKERS.read_text())
        ]
        self.expressions = [one for worker in self.workers for one in worker]

    def test_no_test_runs_twice(self):
        for test in classes():
            found = [one for one in self.expressions if re.search(one, test)]
            self.assertLessEqual(len(found), 1, '%s: %s' % (test, found))

    def test_each_expression_selects_something(self):
        for one in self.expressions:
            self.assertTrue(
                any(re.search(one, test) for test in classes()), one
            )

    def test_the_script_reads_the_same_expressions(self):
        script = (ROOT / 'tools' / 'test.sh').read_text()
        function = re.search(
            r'^shared_tests\(\) \{\n.*?^\}\n', script, re.M | re.S
        )
        text = function.group() + 'WORKERS=$1; shared_tests'
        printed = subprocess.run(
            ['bash', '-c', text, 'bash', str(WORKERS)],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        self.assertEqual('|'.join(self.expressions), printed.strip())
