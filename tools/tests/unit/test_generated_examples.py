# SPDX-License-Identifier: Apache-2.0

"""What hypothesis does in a run of tools/test.sh, and in one without it."""

import os
import pathlib
import re
import subprocess
import sys

from oslotest import base

ROOT = pathlib.Path(__file__).resolve().parents[3]
PRINT = (
    'import %s; from hypothesis import settings; '
    'print(settings.default.derandomize, settings.default.deadline)'
)


def packages():
    """Return the packages with tests that use hypothesis."""
    return sorted(
        {
            path.relative_to(ROOT).parts[0]
            for path in ROOT.glob('*/tests/**/*.py')
            if re.search(
                '^(import|from) hypothesis', path.read_text(), re.MULTILINE
            )
        }
    )


class GeneratedExamplesTestCase(base.BaseTestCase):
    def _settings(self, package, **variables):
        environment = {
            name: value
            for name, value in os.environ.items()
            # hypothesis knows services of continuous integration by theirs.
            if name in ('PATH', 'PYTHONPATH', 'HOME')
        }
        return subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', PRINT % package],
            cwd=ROOT,
            env={**environment, **variables},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.split()

    def test_a_run_has_the_same_examples_each_time(self):
        found = packages()
        self.assertIn('vsched_lib', found)
        for package in found:
            self.assertEqual(
                ['True', 'None'],
                self._settings(package + '.tests', VSCHED_TEST_RUN='/run'),
                package,
            )

    def test_new_examples_are_tried_without_it(self):
        self.assertEqual(['False', 'None'], self._settings('vsched_lib.tests'))
