# SPDX-License-Identifier: Apache-2.0

"""The records in short, as the operators' page shows them.

``python -m benchmarks.published [FILE]`` writes them to a file of JSON, which
is committed and becomes a part of the page's build. It depends on records and
targets only: whether a record is stale depends on every later commit, and is
not in it. For the same reason the newest run decides by itself here; the
documentation's pages (:mod:`benchmarks.evidence`) have the median of all runs
of the same sources.
"""

import argparse
from collections.abc import Sequence
import json
import pathlib
import sys
import typing as ty

from benchmarks import catalogue
from benchmarks import frame
from benchmarks import history
from benchmarks import targets

FILE = frame.ROOT / 'vsched_ui' / 'src' / 'published.json'

_DIRTY = '-dirty'


def benchmark(
    name: str, about: frame.About, records: Sequence[frame.Record]
) -> dict[str, ty.Any]:
    """Return a benchmark with its newest run and its targets.

    :param records: of full runs, the newest first; none if it was never
        measured
    """
    return {
        'name': name,
        'title': about.title,
        'run': _run(records[0]) if records else None,
        'targets': [_target(target, records) for target in about.targets],
    }


def _run(record: frame.Record) -> dict[str, ty.Any]:
    return {
        'when': record.when,
        'commit': record.commit.removesuffix(_DIRTY),
        'dirty': record.commit.endswith(_DIRTY),
        'machine': record.machine,
        'stolen_pct': record.stolen_pct,
    }


def _target(
    target: frame.Target, records: Sequence[frame.Record]
) -> dict[str, ty.Any]:
    values = [
        record.metrics[target.metric]
        for record in records
        if target.metric in record.metrics
    ]
    ours = records[0].metrics.get(target.metric) if records else None
    return {
        'metric': target.metric,
        'target': target.text(),
        'unit': target.unit,
        'source': target.source,
        'ours': _short(ours),
        'missed_by': None if ours is None else _short(target.missed_by(ours)),
        'least': _short(min(values, default=None)),
        'most': _short(max(values, default=None)),
        'runs': len(values),
        'runs_met': sum(not target.missed_by(value) for value in values),
    }


def _short(value: float | None) -> float | None:
    """Return a figure with as many digits as the documentation shows."""
    return float(targets.number(value)) if isinstance(value, float) else value


def text(results: pathlib.Path = frame.RESULTS) -> str:
    """Return the content of the file.

    :param results: where the records are
    """
    found = [
        benchmark(
            name, catalogue.load(name).ABOUT, history.records(name, results)
        )
        for name in catalogue.NAMES
    ]
    return (
        json.dumps({'benchmarks': found}, indent=1, ensure_ascii=False) + '\n'
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write the file; returns the exit code."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.published')
    parser.add_argument('file', nargs='?', type=pathlib.Path, default=FILE)
    options = parser.parse_args(argv)
    options.file.write_text(text(), encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
