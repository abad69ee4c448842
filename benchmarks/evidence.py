# SPDX-License-Identifier: Apache-2.0

"""Pages of the documentation, from the records that are kept.

The documentation's build writes them, with pictures, into
``doc/source/evidence``; so does ``python -m benchmarks.evidence [FOLDER]
[--no-pictures]``. They are not committed: whether a record is older than the
code it exercises changes with every commit.
"""

import argparse
from collections.abc import Iterator
from collections.abc import Sequence
import pathlib
import sys
import typing as ty

from benchmarks import catalogue
from benchmarks import frame
from benchmarks import history
from benchmarks import targets

FOLDER = frame.ROOT / 'doc' / 'source' / 'evidence'

_INDEX = """\
========
Evidence
========

.. Written by benchmarks/evidence.py.

What was measured, by which command, on which commit and machine, and every
target that was set before. *Ours* is the median of the newest run and of all
others of the same sources, with the least and the greatest; *All runs* adds
those of other sources. The median of *Ours* decides whether a target is met.
*Record* says what the newest run measured: the present code, or code that has
changed since (stale), a tree with changes that no commit has (dirty). A
benchmark that was never run in full has no page and no record.

``tox -e bench -- NAME`` measures again, and so does ``python -m benchmarks
NAME``; ``python -m benchmarks --targets`` prints this table.

%s
.. toctree::
   :maxdepth: 1

%s
"""
_HEAD = ('Metric', 'Target', 'Source', 'Ours', 'All runs', 'Verdict')
_STATES = {
    history.State.CURRENT: 'current',
    history.State.STALE: 'stale',
    history.State.UNKNOWN: 'unknown',
}


def page(
    name: str, about: frame.About, runs: Sequence[history.Run], picture: bool
) -> str:
    """Return the page of one benchmark.

    :param runs: the newest first
    :param picture: the newest has one
    """
    record = runs[0].record
    title = about.title
    parts = [
        '=' * len(title),
        title,
        '=' * len(title),
        '',
        '.. Written by benchmarks/evidence.py.',
        '',
        about.text,
        '',
    ]
    parts += _title('Targets')
    if about.targets:
        parts += _table(_HEAD, list(_rows(about, runs)))
    else:
        parts += ['None was set.', '']
    parts += _title('The newest run')
    parts += [
        'Measured by ``python -m benchmarks %s``' % name,
        'on %s,' % record.when,
        'commit ``%s``,' % record.commit,
        'on %s%s'
        % (record.machine, '.' if record.stolen_pct is None else ','),
        *(
            ()
            if record.stolen_pct is None
            else (
                "from which %s %% of its CPUs' time was stolen meanwhile."
                % _number(record.stolen_pct),
            )
        ),
        '',
    ]
    parts += _warnings(runs[0])
    if picture:
        parts += ['.. image:: %s.svg' % name, '   :alt: %s' % title, '']
    shown = {
        key: value
        for key, value in record.metrics.items()
        if key not in about.former
    }
    parts += _table(
        ('Metric', 'Ours', 'What it is'),
        [
            ('``%s``' % key, _number(value), about.units.get(key, ''))
            for key, value in shown.items()
        ],
    )
    missing = [key for key in about.units if key not in record.metrics]
    if missing:
        parts += ['Not measured yet:', '']
        parts += _table(
            ('Metric', 'What it is'),
            [('``%s``' % key, about.units[key]) for key in missing],
        )
    if about.papers:
        parts += _title('Beside the papers') + _table(
            ('Metric', 'Ours', 'Paper', 'Its figure', 'Conditions'),
            [
                (
                    '``%s``' % one.metric,
                    _number(record.metrics.get(one.metric)),
                    one.source,
                    one.figure,
                    one.remark,
                )
                for one in about.papers
            ],
        )
    parts += _all_runs(about, runs)
    parts += _former(about, runs)
    parts += _title('Variants of the newest run')
    for kind, rows in _alike(record.variants):
        parts += _table(
            ('Variant', *kind),
            [
                (variant, *map(_number, figures.values()))
                for variant, figures in rows
            ],
        )
    return '\n'.join(parts).rstrip() + '\n'


def _warnings(run: history.Run) -> list[str]:
    texts = []
    if run.state is history.State.STALE:
        texts.append('Stale: what this run exercised has changed since.')
    if run.state is history.State.UNKNOWN:
        texts.append(
            'What this run exercised cannot be compared with the '
            'present code: its commit is not at hand.'
        )
    if run.dirty:
        texts.append('Dirty: the tree had changes that no commit has.')
    return [line for text in texts for line in ('.. warning:: ' + text, '')]


def _state(run: history.Run) -> str:
    return _STATES[run.state] + (', dirty' if run.dirty else '')


def _rows(
    about: frame.About, runs: Sequence[history.Run]
) -> Iterator[tuple[str, ...]]:
    """Return a row for each target.

    :param runs: the newest first; none if it was never measured
    """
    for target in about.targets:
        ours, others = figures(target.metric, runs)
        yield (
            '``%s``' % target.metric,
            target.text(),
            target.source,
            targets.spread(ours),
            targets.spread([*ours, *others]),
            targets.verdict(target, ours, others),
        )


def figures(
    metric: str, runs: Sequence[history.Run]
) -> tuple[list[float], list[float]]:
    """Return a metric of the newest run's sources, and of other ones.

    :param runs: the newest first
    """
    ours: list[float] = []
    others: list[float] = []
    for run in runs:
        if metric in run.record.metrics:
            same = run is runs[0] or (
                run.sources is not None and run.sources == runs[0].sources
            )
            (ours if same else others).append(run.record.metrics[metric])
    return ours, others


def _all_runs(about: frame.About, runs: Sequence[history.Run]) -> list[str]:
    """Return every run, with the metrics that have a target."""
    names = [target.metric for target in about.targets] or [
        name for name in about.units if name in runs[0].record.metrics
    ]
    return _title('All runs') + _table(
        (
            'When',
            'Commit',
            'Machine',
            'Sources',
            *('``%s``' % name for name in names),
        ),
        [
            (
                run.record.when,
                '``%s``' % run.record.commit[:8],
                run.record.machine,
                _state(run),
                *(_number(run.record.metrics.get(name)) for name in names),
            )
            for run in runs
        ],
    )


def _former(about: frame.About, runs: Sequence[history.Run]) -> list[str]:
    """Return metrics that are measured no longer."""
    rows = []
    for name, reason in about.former.items():
        values = [
            run.record.metrics[name]
            for run in runs
            if name in run.record.metrics
        ]
        if values:
            rows.append(('``%s``' % name, targets.spread(values), reason))
    if not rows:
        return []
    return _title('Measured no longer') + _table(
        ('Metric', 'All runs', 'What was wrong with it'), rows
    )


def _alike(variants: dict[str, dict[str, ty.Any]]) -> list[ty.Any]:
    """Variants with the same figures, together."""
    found: dict[tuple[str, ...], list[ty.Any]] = {}
    for name, figures in variants.items():
        found.setdefault(tuple(figures), []).append((name, figures))
    return list(found.items())


def _title(text: str) -> list[str]:
    return [text, '-' * len(text), '']


def _number(value: ty.Any) -> str:
    if isinstance(value, float):
        return targets.number(value)
    if isinstance(value, list):
        return ', '.join(
            ' '.join(map(_number, one))
            if isinstance(one, list)
            else _number(one)
            for one in value
        ).replace('_', '\\_')
    return '' if value is None else str(value)


def _table(head: tuple[str, ...], rows: ty.Any) -> list[str]:
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for row in [head, *rows]:
        for number, cell in enumerate(row):
            lines.append(
                ('   %s - %s' % (' ' if number else '*', cell)).rstrip()
            )
    return [*lines, '']


def _picture(
    benchmark: ty.Any, record: frame.Record, path: pathlib.Path
) -> bool:
    """Draw a record; returns whether it has what is to be drawn."""
    import matplotlib
    from matplotlib import figure as drawing

    # The same data give the same file.
    with matplotlib.rc_context({'svg.hashsalt': record.bench}):
        figure = drawing.Figure(figsize=(8, 4), layout='constrained')
        try:
            benchmark.draw(record, figure)
        except KeyError:
            # A record that is older than a figure of the picture.
            return False
        figure.savefig(path, metadata={'Date': None})
    return True


def every(
    folder: pathlib.Path = frame.RESULTS,
) -> Iterator[tuple[str, frame.Benchmark, list[history.Run]]]:
    """Return every benchmark with its runs, of which there may be none."""
    for name in catalogue.NAMES:
        benchmark = catalogue.load(name)
        yield name, benchmark, history.runs(name, benchmark.ABOUT, folder)


def write(
    folder: pathlib.Path = FOLDER,
    pictures: bool = True,
    results: pathlib.Path = frame.RESULTS,
) -> None:
    """Write a page for every benchmark that has records, and the index.

    :param pictures: draw them as well
    :param results: where the records are
    """
    folder.mkdir(parents=True, exist_ok=True)
    names, rows = [], []
    for name, benchmark, runs in every(results):
        if not runs:
            rows += [
                ('``%s``' % name, *row, 'none')
                for row in _rows(benchmark.ABOUT, runs)
            ]
            continue
        names.append(name)
        picture = (
            pictures
            and hasattr(benchmark, 'draw')
            and _picture(benchmark, runs[0].record, folder / (name + '.svg'))
        )
        (folder / (name + '.rst')).write_text(
            page(name, benchmark.ABOUT, runs, picture), encoding='utf-8'
        )
        rows += [
            (
                ':doc:`%s`' % name,
                *row,
                '%s, %s' % (runs[0].record.when[:10], _state(runs[0])),
            )
            for row in _rows(benchmark.ABOUT, runs)
        ]
    (folder / 'index.rst').write_text(
        _INDEX
        % (
            '\n'.join(_table(('Benchmark', *_HEAD, 'Record'), rows)),
            '\n'.join('   ' + name for name in names),
        ),
        encoding='utf-8',
    )


def target_lines() -> Iterator[str]:
    """Return every target and whether it is met, as text."""
    for name, benchmark, runs in every():
        for metric, wanted, _, ours, _, verdict in _rows(
            benchmark.ABOUT, runs
        ):
            yield '%s %s: %s; ours %s: %s [%s]' % (
                name,
                metric.strip('`'),
                wanted,
                ours or '-',
                verdict,
                _state(runs[0]) if runs else 'no record',
            )


def stale_lines() -> Iterator[str]:
    """Return the newest records that do not show the present code."""
    for name, _, runs in every():
        if runs and (
            runs[0].dirty or runs[0].state is not history.State.CURRENT
        ):
            yield '%s: %s (%s, commit %s)' % (
                name,
                _state(runs[0]),
                runs[0].record.when,
                runs[0].record.commit,
            )


def main() -> int:
    """Write the pages; returns the exit code."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.evidence')
    parser.add_argument('folder', nargs='?', type=pathlib.Path, default=FOLDER)
    parser.add_argument('--no-pictures', action='store_true')
    options = parser.parse_args()
    write(options.folder, not options.no_pictures)
    return 0


if __name__ == '__main__':
    sys.exit(main())
