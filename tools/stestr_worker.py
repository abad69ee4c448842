#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""List or run tests for stestr, and import only the modules that have them.

    PYTHON="python tools/stestr_worker.py KIND" stestr run ...

KIND is ``unit`` or ``functional``: the folder below ``tests`` whose modules
are listed. stestr starts each of its processes with ``-m
stestr.subunit_runner.run discover`` and the names of its tests in a file; that
command imports all test modules of the repository, and all that they import,
to run a few of them. Here discovery is the same, but passes over the modules
that have none of the tests.
"""

from collections.abc import Iterable
import fnmatch
import functools
import os
import sys
import unittest

from stestr.subunit_runner import program
from stestr.subunit_runner import run

#: What stestr begins the command with, after the interpreter.
COMMAND = ['-m', 'stestr.subunit_runner.run']
_IDS = '--load-list'


class Loader(unittest.TestLoader):
    """Loads test modules of one kind, or only some of them.

    :param kind: name of their folder below ``tests``.
    :param paths: the modules to load; all of the kind if None.
    """

    def __init__(self, kind: str, paths: frozenset[str] | None = None) -> None:
        super().__init__()
        self._folder = os.path.join(os.sep, 'tests', kind, '')
        self._paths = paths

    def _match_path(self, path: str, full_path: str, pattern: str) -> bool:
        """Return whether discovery loads a module; unittest calls this."""
        if not fnmatch.fnmatch(path, pattern):
            return False
        full_path = os.path.abspath(full_path)
        if self._paths is not None:
            return full_path in self._paths
        return self._folder in full_path


def modules(tests: Iterable[str]) -> frozenset[str] | None:
    """Return the paths of the modules that have tests.

    :param tests: their names, which begin with those of their modules, as
        seen from the current directory.
    :returns: None if a name begins with that of no module.
    """
    found = {}
    for test in tests:
        name = ''
        for part in test.split('.'):
            name = os.path.join(name, part)
            if name in found or os.path.isfile(name + '.py'):
                found[name] = os.path.abspath(name + '.py')
                break
        else:
            return None
    return frozenset(found.values())


def main(argv: list[str]) -> None:
    """Do what stestr asks of its worker.

    :param argv: the program, the kind, and what stestr has after the
        interpreter.
    """
    kind, command, words = argv[1], argv[2:4], argv[4:]
    if command != COMMAND:
        raise SystemExit('stestr_worker: stestr runs %s' % argv[2:])
    paths = None
    if _IDS in words:
        with open(words[words.index(_IDS) + 1], encoding='utf-8') as file:
            paths = modules(line.strip() for line in file)
    # The folder of this script: no module is imported from there. Discovery
    # adds the one of the tests.
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        sys.path.pop(0)
    # It is for stestr, and not for what tests start.
    os.environ.pop('PYTHON', None)
    program.TestProgram(
        module=None,
        argv=[argv[0], *words],
        testRunner=functools.partial(run.SubunitTestRunner, stdout=sys.stdout),
        testLoader=Loader(kind, paths),
    )


if __name__ == '__main__':
    main(sys.argv)
