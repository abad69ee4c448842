# SPDX-License-Identifier: Apache-2.0

"""The runs that are kept, and whether the code has changed since.

A full run is one file, ``benchmarks/results/NAME/WHEN-COMMIT.json``; nothing
overwrites it. A run is stale if what its benchmark exercises
(:mod:`benchmarks.sources`) differs between its commit and the present tree.
Where the commit is not at hand, or the run's tree had other changes, the
digest that the run recorded decides.
"""

import dataclasses
import enum
import pathlib

from benchmarks import frame
from benchmarks import sources


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
        run = digest(name, about, record.commit.removesuffix('-dirty'), root)
        if record.sources and (
            run is None or record.commit.endswith('-dirty')
        ):
            run = record.sources
        if run is None or present is None:
            state = State.UNKNOWN
        else:
            state = State.CURRENT if run == present else State.STALE
        found.append(Run(record, run, state))
    return found


def digest(
    name: str,
    about: frame.About,
    commit: str | None = None,
    root: pathlib.Path = frame.ROOT,
) -> str | None:
    """Return a digest of what a benchmark exercises.

    :param commit: the commit to read; None for the working tree
    :returns: None if it cannot be read
    """
    return sources.digest(name, about.exercises, root, commit)
