# SPDX-License-Identifier: Apache-2.0

"""What all commands have in common."""

import configparser
import contextlib
import importlib
import io
import pathlib

from oslotest import base
import pbr.version

_SETUP = pathlib.Path(__file__).parents[3] / 'setup.cfg'


def _commands():
    """By name, the entry point of each command that is installed."""
    setup = configparser.ConfigParser(interpolation=None)
    setup.read(_SETUP, encoding='utf-8')
    found = {}
    for line in setup['options.entry_points']['console_scripts'].split():
        if ':' in line:
            module, function = line.split(':')
            # It installs files, and reads none.
            if module != 'vsched_lib.installation':
                found[module] = getattr(
                    importlib.import_module(module), function
                )
    return found


class TestCommands(base.BaseTestCase):
    def run_command(self, main, *words):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            ended = self.assertRaises(SystemExit, main, list(words))
        return ended.code, out.getvalue(), err.getvalue()

    def test_shell_completion_is_refused_with_a_reason(self):
        commands = _commands()
        self.assertEqual(6, len(commands))
        for name, main in commands.items():
            for words in (
                ('--shell_completion', 'bash'),
                ('--shell_completion=zsh',),
            ):
                code, out, err = self.run_command(main, *words)
                self.assertEqual((2, ''), (code, out), name)
                self.assertIn('--shell_completion is not available', err)
                self.assertEqual(1, len(err.splitlines()), err)

    def test_it_is_not_offered(self):
        for name, main in _commands().items():
            code, out, _ = self.run_command(main, '--help')
            self.assertEqual(0, code, name)
            self.assertIn('--config-file', out, name)
            self.assertNotIn('completion', out, name)

    def test_the_version(self):
        for name, main in _commands().items():
            code, out, _ = self.run_command(main, '--version')
            self.assertEqual(0, code, name)
            self.assertEqual(
                pbr.version.VersionInfo('vsched').version_string(),
                out.strip(),
                name,
            )
