# SPDX-License-Identifier: Apache-2.0

"""Tests with a git repository of their own."""

import pathlib
import subprocess

import fixtures
from oslotest import base


class RepositoryCase(base.BaseTestCase):
    """A repository without commits, in ``root``."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.git('init', '-q')

    def git(self, *arguments):
        """Return what git prints."""
        return subprocess.run(
            (
                'git',
                '-C',
                str(self.root),
                '-c',
                'user.name=a',
                '-c',
                'user.email=a@example.org',
                *arguments,
            ),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    def commit(self):
        """Commit all files; return the commit."""
        self.git('add', '.')
        self.git('commit', '-q', '-m', 'x')
        return self.git('rev-parse', 'HEAD')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
