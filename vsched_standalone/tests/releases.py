# SPDX-License-Identifier: Apache-2.0

"""Parts of an earlier release, from the history of this repository."""

import functools
import glob
import os
import subprocess
import sys
import sysconfig
import tempfile
import typing as ty

import fixtures

#: Only a script that hangs takes as long, in seconds.
_LIMIT_S = 240
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), '..', '..'))

#: The last commit that has landed: what operators upgrade from. Each landing
#: replaces it here, and nowhere else.
LANDED = 'e472355a64528f80f1c43239a48a279d58cdfdca'
#: The last commit whose agents do not sign and number by their clocks.
BEFORE_EPOCHS = '06e48f7c0d7870cc45599bc84f988ff9e83570c3'

#: The last commit whose collectors do not know executions.
BEFORE_EXECUTIONS = '9b131aa21f9c99d79ef5f92d8cef13cd9e844f92'


class Tree:
    """The programs of a release.

    :param path: of its source.
    :param python: the interpreter that imports it.
    """

    path: str
    python: str

    def run(self, script: str, *arguments: str) -> str:
        """Run a script in this release.

        :returns: what it wrote to standard output.
        :raises AssertionError: when it fails, with what it wrote.
        """
        return result(self.begin(script, *arguments))

    def begin(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a script in this release; see :func:`result`."""
        check = (
            'import vsched_lib\n'
            'assert vsched_lib.__file__.startswith(%r), vsched_lib\n'
            % (self.path + os.sep)
        )
        return subprocess.Popen(
            [self.python, '-W', 'ignore', '-c', check + script, *arguments],
            cwd=self.path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


class Present(Tree):
    """The tree of this test."""

    path = ROOT
    python = sys.executable


class _Copy:
    """The tree of a commit, in a folder that lasts as long as this process.

    :ivar path: of the tree, whose modules are compiled: the processes of a
        test write no bytecode, and each would compile them again.
    :ivar home: of a virtual environment that imports it.
    """

    def __init__(self, commit: str) -> None:
        # Removed when this process ends; not below a test's own temporary
        # folder, which is removed after it.
        self._folder = tempfile.TemporaryDirectory(
            prefix='vsched-release-', dir='/var/tmp'
        )
        folder = self._folder.name
        self.path = os.path.join(folder, 'tree')
        os.mkdir(self.path)
        archive = os.path.join(folder, 'tree.tar')
        done = subprocess.run(
            ['git', '-C', ROOT, 'archive', '-o', archive, commit],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            # Not skipped: an upgrade that is not tested is not one.
            raise AssertionError(
                'this test needs the history of the repository, with commit '
                '%s; clone it without --depth: %s'
                % (commit, done.stderr.strip())
            )
        subprocess.run(['tar', '-xf', archive, '-C', self.path], check=True)
        os.unlink(archive)
        # One that cannot be compiled fails where it is imported.
        subprocess.run(
            [
                sys.executable,
                '-m',
                'compileall',
                '-q',
                '-q',
                *glob.glob(self.path + '/vsched_*'),
            ],
            check=False,
        )
        self.home = os.path.join(folder, 'venv')
        subprocess.run(
            [sys.executable, '-m', 'venv', '--without-pip', self.home],
            check=True,
        )
        # The packages' own .pth files, which name this tree, are not read.
        with open(
            sysconfig.get_path('purelib', vars={'base': self.home})
            + '/release.pth',
            'w',
            encoding='utf-8',
        ) as file:
            file.write('%s\n%s\n' % (self.path, sysconfig.get_path('purelib')))

    @classmethod
    @functools.cache
    def of(cls, commit: str) -> ty.Self:
        """Return the copy of a commit, made at the first call."""
        return cls(commit)


class Release(fixtures.Fixture, Tree):
    """The tree of a commit, run with the packages of this one.

    Its interpreter is that of a virtual environment: processes that are
    isolated from the caller's environment import the commit as well.

    :param commit: which one.
    """

    def __init__(self, commit: str = BEFORE_EPOCHS) -> None:
        self._commit = commit

    def _setUp(self) -> None:
        copy = _Copy.of(self._commit)
        self.path, self.home = copy.path, copy.home
        self.python = os.path.join(self.home, 'bin', 'python')

    def start(self, module: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a module of this release; it ends with the fixture."""
        process = subprocess.Popen(
            [self.python, '-W', 'ignore', '-m', module, *arguments],
            cwd=self.path,
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


def result(process: subprocess.Popen[str]) -> str:
    """Wait for a script.

    :returns: what it wrote to standard output.
    :raises AssertionError: when it fails, with what it wrote, or takes more
        than four minutes.
    """
    try:
        output, problem = process.communicate(timeout=_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, problem = process.communicate()
        raise AssertionError('it hangs: ' + output + problem) from None
    if process.returncode:
        raise AssertionError(output + problem)
    return output


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
