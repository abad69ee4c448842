# SPDX-License-Identifier: Apache-2.0

"""What a benchmark exercises follows from what it imports."""

import json
import subprocess
import sys

from oslotest import base

from benchmarks import catalogue
from benchmarks import frame
from benchmarks import sources
from benchmarks.tests import repository

# The files of this project that importing a module loads.
_LOADED = """
import importlib, json, pathlib, sys
importlib.import_module('benchmarks.' + sys.argv[1])
root = pathlib.Path(sys.argv[2])
print(json.dumps([
    str(pathlib.Path(one.__file__).relative_to(root))
    for one in list(sys.modules.values())
    if getattr(one, '__file__', None)
    and pathlib.Path(one.__file__).is_relative_to(root)
    and '.venv' not in one.__file__]))
"""


class SourcesTestCase(repository.RepositoryCase):
    """A repository with a benchmark."""

    def setUp(self):
        super().setUp()
        self.write('vsched_lib/__init__.py', '')
        self.write('vsched_lib/other.py', '')

    def files(self, text, *declared):
        """What a benchmark with this text exercises beside itself."""
        self.write('benchmarks/some.py', text)
        found = sources.files('some', declared, sources.Tree(self.root))
        return set(found) - {'benchmarks/some.py'}

    def digest(self, *declared, commit=None):
        return sources.digest('some', declared, self.root, commit)

    def test_imports_of_imports(self):
        self.write('vsched_agent/__init__.py', '')
        self.write('vsched_agent/a.py', 'import vsched_agent.b as b')
        self.write('vsched_agent/b.py', 'def f():\n  from vsched_lib import c')
        self.write('vsched_lib/c.py', 'from vsched_agent.a import name')
        self.assertEqual(
            {
                'vsched_agent/__init__.py',
                'vsched_agent/a.py',
                'vsched_agent/b.py',
                'vsched_lib/__init__.py',
                'vsched_lib/c.py',
            },
            self.files('from vsched_agent import a\nimport os'),
        )

    def test_imports_for_types_do_not_count(self):
        self.assertEqual(
            {'vsched_lib/__init__.py'},
            self.files(
                'import vsched_lib\n'
                'if ty.TYPE_CHECKING:\n  from vsched_lib import other'
            ),
        )

    def test_processes_that_are_started(self):
        for text in ("'vsched_lib.other'", "'vsched_lib.other:application'"):
            self.assertEqual(
                {'vsched_lib/__init__.py', 'vsched_lib/other.py'},
                self.files('start(%s)' % text),
            )
        self.assertEqual(set(), self.files("say('vsched_lib.other starts')"))

    def test_declared_paths_and_what_they_import(self):
        self.write('tools/guest/init', 'import vsched_lib')
        self.write('tools/start.py', 'import vsched_lib.other')
        self.assertEqual(
            {
                'tools/guest/init',
                'tools/start.py',
                'vsched_lib/__init__.py',
                'vsched_lib/other.py',
            },
            self.files('', 'tools', 'gone'),
        )

    def test_imports_by_name(self):
        self.write('vsched_api/db/migration.py', '')
        self.write('vsched_api/db/migrations/versions/0001.py', '')
        self.assertIn(
            'vsched_api/db/migrations/versions/0001.py',
            self.files('from vsched_api.db import migration'),
        )

    def test_digest(self):
        module = '"""%s."""\n\nABOUT = %d\nfrom vsched_lib import other\n'
        code = 'def f():\n    """%s."""\n    return %d  # %s\n'
        self.write('benchmarks/some.py', module % ('Title', 1))
        self.write('vsched_lib/other.py', code % ('Text', 1, 'why'))
        before = self.digest()
        self.write('benchmarks/some.py', module % ('Other title', 2))
        self.write('vsched_lib/other.py', code % ('Words', 1, 'reason'))
        self.assertEqual(before, self.digest())
        self.write('vsched_lib/other.py', code % ('Words', 2, 'reason'))
        self.assertNotEqual(before, self.digest())

    def test_commits(self):
        self.write('benchmarks/some.py', 'import vsched_lib.other')
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'x')
        self.assertEqual(self.digest(), self.digest(commit='HEAD'))
        before = self.digest()
        self.write('vsched_lib/other.py', '2')
        self.assertNotEqual(before, self.digest())
        self.git('commit', '-q', '-a', '-m', 'y')
        self.assertEqual(before, self.digest(commit='HEAD~1'))
        self.assertEqual(self.digest(), self.digest(commit='HEAD~0'))
        self.assertIsNone(self.digest(commit='0123456789' * 4))

    def test_benchmark_that_a_commit_does_not_have(self):
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'x')
        self.assertIsNone(self.digest(commit='HEAD'))


class ProjectTestCase(base.BaseTestCase):
    """The benchmarks of this project."""

    def test_what_python_loads_is_exercised(self):
        # It imports agent, collector and API.
        done = subprocess.run(
            [
                sys.executable,
                '-W',
                'ignore',
                '-c',
                _LOADED,
                'drill',
                str(frame.ROOT),
            ],
            cwd=frame.ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
        loaded = set(json.loads(done.stdout))
        self.assertIn('vsched_standalone/tests/drill.py', loaded)
        self.assertEqual(
            set(sources._SHARED),
            loaded
            - set(
                sources.files(
                    'drill',
                    catalogue.load('drill').ABOUT.exercises,
                    sources.Tree(frame.ROOT),
                )
            ),
        )

    def test_processes_of_benchmarks(self):
        tree = sources.Tree(frame.ROOT)
        for name, files in (
            ('agent_cost', ['benchmarks/agent_process.py']),
            (
                'fleet',
                [
                    'benchmarks/fleet_agents.py',
                    'vsched_api/cmd/collector.py',
                    'vsched_api/operations/reports.py',
                    'vsched_api/rest/snapshot.py',
                    'vsched_api/wsgi/api.py',
                ],
            ),
            (
                'drill',
                [
                    'tools/guest/init',
                    'vsched_agent/cmd/agent.py',
                    'vsched_agent/privileged/helper.py',
                ],
            ),
            ('filters', ['nova_filters/filters.py']),
        ):
            found = sources.files(
                name, catalogue.load(name).ABOUT.exercises, tree
            )
            self.assertEqual(set(), set(files) - set(found), name)
