# SPDX-License-Identifier: Apache-2.0

"""The runs that are kept, and whether the code has changed since.

A full run is one file, ``benchmarks/results/NAME/WHEN-COMMIT.json``; nothing
overwrites it. What a benchmark exercises is its own module and the paths that
it declares. A run is stale if these differ from the present tree: by the
digest that the run recorded, or, for runs that recorded none, by the commit.
"""

import ast
from collections.abc import Sequence
import dataclasses
import enum
import hashlib
import pathlib
import subprocess

from benchmarks import frame


class State(enum.Enum):
    """How a run's sources relate to the present ones."""

    CURRENT = 'current'
    STALE = 'stale'
    #: Neither a digest nor the commit is at hand.
    UNKNOWN = 'unknown'


@dataclasses.dataclass(frozen=True)
class Run:
    """One run that is kept.

    :param record: what it said.
    :param sources: digest of what it exercised; None if it is not known.
    :param state: how that relates to the present tree.
    """

    record: frame.Record
    sources: str | None
    state: State

    @property
    def dirty(self) -> bool:
        """Whether its tree had changes that no commit has."""
        return self.record.commit.endswith('-dirty')


def path_of(
    record: frame.Record, folder: pathlib.Path = frame.RESULTS
) -> pathlib.Path:
    """Return where a record is kept."""
    when = record.when.replace('-', '').replace(':', '')
    return folder / record.bench / ('%s-%s.json' % (when, record.commit[:8]))


def keep(
    record: frame.Record, folder: pathlib.Path = frame.RESULTS
) -> pathlib.Path | None:
    """Write the record of a full run.

    :returns: where; None for a quick run, which is not kept.
    :raises FileExistsError: if there is a record of this second.
    """
    if record.quick:
        return None
    path = path_of(record, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('x', encoding='utf-8') as file:
        file.write(record.dump())
    return path


def records(
    name: str, folder: pathlib.Path = frame.RESULTS
) -> list[frame.Record]:
    """Return the full runs of a benchmark, the newest first."""
    found = [
        frame.Record.load(path) for path in (folder / name).glob('*.json')
    ]
    return sorted(found, key=lambda record: record.when, reverse=True)


def runs(
    name: str,
    about: frame.About,
    folder: pathlib.Path = frame.RESULTS,
    root: pathlib.Path = frame.ROOT,
) -> list[Run]:
    """Return the full runs of a benchmark with their state, newest first."""
    present = digest(name, about, root=root)
    found = []
    for record in records(name, folder):
        sources = record.sources
        if sources is None:
            sources = digest(
                name, about, record.commit.removesuffix('-dirty'), root
            )
        if sources is None or present is None:
            state = State.UNKNOWN
        else:
            state = State.CURRENT if sources == present else State.STALE
        found.append(Run(record, sources, state))
    return found


def digest(
    name: str,
    about: frame.About,
    commit: str | None = None,
    root: pathlib.Path = frame.ROOT,
) -> str | None:
    """Return a digest of what a benchmark exercises.

    That is its own module, less what it says about itself, and the files
    under the paths that it declares, less tests below a path outside of
    tests.

    :param commit: the commit to read; None for the working tree
    :returns: None if there is no git, or no such commit
    """
    module = 'benchmarks/%s.py' % name
    try:
        found = (
            _working_tree(about.exercises, root)
            if commit is None
            else _committed(about.exercises, commit, root)
        )
        text = (
            (root / module).read_text('utf-8')
            if commit is None
            else _git(root, 'show', '%s:%s' % (commit, module))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    lines = sorted(
        '%s %s\n' % (file, blob)
        for file, blob in found
        if '/tests/' not in file
        or any(
            '/tests/' in path and file.startswith(path)
            for path in about.exercises
        )
    )
    return hashlib.sha256(
        ''.join([*lines, _without_about(text)]).encode()
    ).hexdigest()[:16]


def _without_about(source: str) -> str:
    """Return the source of a benchmark without its ``ABOUT``."""
    lines = source.splitlines(keepends=True)
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id == 'ABOUT'
            for one in node.targets
        ):
            del lines[node.lineno - 1 : node.end_lineno]
            break
    return ''.join(lines)


def _committed(
    paths: Sequence[str], commit: str, root: pathlib.Path
) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if not paths:
        return found
    for line in _git(root, 'ls-tree', '-r', '-z', commit, '--', *paths).split(
        '\0'
    ):
        if line:
            facts, _, name = line.partition('\t')
            found.append((name, facts.split()[2]))
    return found


def _working_tree(
    paths: Sequence[str], root: pathlib.Path
) -> list[tuple[str, str]]:
    if not paths:
        return []
    names = sorted(
        {
            name
            for name in _git(
                root,
                'ls-files',
                '-z',
                '--cached',
                '--others',
                '--exclude-standard',
                '--',
                *paths,
            ).split('\0')
            if name and (root / name).is_file()
        }
    )
    blobs = _git(
        root,
        'hash-object',
        '--stdin-paths',
        given=''.join(name + '\n' for name in names),
    ).split()
    return list(zip(names, blobs, strict=True))


def _git(root: pathlib.Path, *arguments: str, given: str = '') -> str:
    return subprocess.run(
        ('git', '-C', str(root), *arguments),
        check=True,
        input=given,
        capture_output=True,
        text=True,
    ).stdout
