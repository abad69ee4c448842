# SPDX-License-Identifier: Apache-2.0

import json
import os
import pathlib
import re
import subprocess
import sys

import ddt
import fixtures
from oslotest import base

import vsched_agent
from vsched_agent.privileged import isolated

_TELL = (
    'import json, os, sys; print(json.dumps({"cwd": os.getcwd(), '
    '"env": dict(os.environ), "path": sys.path, '
    '"files": sorted(map(int, os.listdir("/proc/self/fd"))), '
    '"isolated": sys.flags.isolated}))'
)


@ddt.ddt
class TestIsolated(base.BaseTestCase):
    def child(self):
        with isolated.start(
            isolated.command('-c', _TELL),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            return json.loads(process.stdout.read())

    def test_nothing_of_the_callers_surroundings(self):
        folder = self.useFixture(fixtures.TempDir()).path
        marker = folder + '/ran'
        for name in ('sitecustomize.py', 'usercustomize.py', 'json.py'):
            pathlib.Path(folder, name).write_text(
                'open(%r, "w").close()\n' % marker
            )
        for name, value in (
            ('PYTHONPATH', folder),
            ('PYTHONSTARTUP', folder + '/x.py'),
            ('PYTHONHOME', ''),
            ('LD_LIBRARY_PATH', folder),
            ('PATH', folder),
            ('SECRET', 'x'),
            ('LANG', 'C.UTF-8'),
        ):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        before = os.getcwd()
        os.chdir(folder)
        self.addCleanup(os.chdir, before)
        told = self.child()
        self.assertFalse(os.path.exists(marker))
        self.assertEqual(('/', 1), (told['cwd'], told['isolated']))
        self.assertLessEqual(
            set(told['env']), {'PATH', *isolated.KEPT, *isolated.FIXED}
        )
        self.assertEqual(isolated.PATH, told['env']['PATH'])
        self.assertEqual('C.UTF-8', told['env']['LANG'])
        self.assertNotIn('', told['path'])
        self.assertNotIn(folder, told['path'])

    def test_no_open_files(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        os.set_inheritable(writer, True)
        # The fourth is the listing's own.
        self.assertEqual([0, 1, 2, 3], self.child()['files'])

    @ddt.data('', None, 'python3')
    def test_an_interpreter_of_unknown_place(self, path):
        self.patch(sys, 'executable', path)
        self.assertRaises(RuntimeError, isolated.command, '-V')

    def test_no_other_way_is_used(self):
        """No module of the agent starts Python by itself."""
        root = pathlib.Path(vsched_agent.__file__).parent
        own = re.compile(
            r'sys\.executable|from subprocess import'
            r'|subprocess\.(Popen|run|call|check_\w+|get\w*output)\b'
            r'|os\.(exec|spawn|posix_spawn|system|popen)'
        )
        found = [
            '%s:%d' % (path.relative_to(root), number)
            for path in sorted(root.rglob('*.py'))
            if 'tests' not in path.parts and path.name != 'isolated.py'
            for number, line in enumerate(path.read_text().splitlines(), 1)
            # Annotations name the class, which starts nothing.
            if own.search(line.replace('subprocess.Popen[', ''))
        ]
        self.assertEqual([], found)
