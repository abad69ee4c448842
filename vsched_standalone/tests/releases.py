# SPDX-License-Identifier: Apache-2.0

"""Parts of an earlier release, from the history of this repository."""

import os
import subprocess
import sys
import typing as ty

import fixtures

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))

#: The last commit whose agents do not sign and number by their clocks.
BEFORE_EPOCHS = '06e48f7c0d7870cc45599bc84f988ff9e83570c3'


class Release(fixtures.Fixture):
    """The tree of a commit, run with the packages of this one.

    :param commit: which one.
    """

    def __init__(self, commit: str = BEFORE_EPOCHS) -> None:
        self._commit = commit

    def _setUp(self) -> None:
        self.path = self.useFixture(fixtures.TempDir()).path
        archive = os.path.join(self.path, 'tree.tar')
        done = subprocess.run(
            ['git', '-C', ROOT, 'archive', '-o', archive, self._commit],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            # Not skipped: an upgrade that is not tested is not one.
            raise AssertionError(
                'this test needs the history of the repository, with commit '
                '%s; clone it without --depth: %s'
                % (self._commit, done.stderr.strip())
            )
        subprocess.run(['tar', '-xf', archive, '-C', self.path], check=True)
        os.unlink(archive)
        self._process: subprocess.Popen[str] | None = None

    def environment(self) -> dict[str, str]:
        """With which Python imports this release and no other."""
        return os.environ | {
            'PYTHONPATH': self.path,
            'PYTHONWARNINGS': 'ignore',
        }

    def run(self, script: str, *arguments: str) -> str:
        """Run a script in this release.

        :returns: what it wrote to standard output.
        :raises AssertionError: when it fails, with what it wrote.
        """
        check = (
            'import vsched_lib\n'
            'assert vsched_lib.__file__.startswith(%r), vsched_lib\n'
            % (self.path)
        )
        done = subprocess.run(
            [sys.executable, '-c', check + script, *arguments],
            cwd=self.path,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return done.stdout

    def start(self, module: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a module of this release; it ends with the fixture."""
        process = subprocess.Popen(
            [sys.executable, '-m', module, *arguments],
            cwd=self.path,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

        def end() -> None:
            process.terminate()
            process.communicate()

        self.addCleanup(end)
        return process


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Wait until a process has written a word.

    :returns: what it wrote up to there.
    :raises AssertionError: when it ends before.
    """
    lines = []
    for line in ty.cast(ty.TextIO, process.stdout):
        lines.append(line)
        if word in line:
            return ''.join(lines)
    raise AssertionError('it ended: ' + ''.join(lines))
