# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Pages of the documentation, from the results that are kept.

``python -m benchmarks.evidence [FOLDER] [--no-pictures]`` writes one page
and one picture for each result, and an index.
"""

import argparse
import pathlib
import sys
import typing as ty

from benchmarks import catalogue
from benchmarks import frame

FOLDER = frame.ROOT / 'doc' / 'source' / 'evidence'

_INDEX = """\
========
Evidence
========

.. Written by benchmarks/evidence.py.

What was measured, by which command, on which commit and machine. Where a
paper has a number for the same thing it stands beside ours, with what
differs. ``tox -e bench -- NAME`` measures again, and so does
``python -m benchmarks NAME``; ``--quick`` is for a look and no more.

.. toctree::
   :maxdepth: 1

%s
"""


def page(name: str, about: frame.About, record: frame.Record,
         picture: bool) -> str:
    """One result as reStructuredText."""
    parts = [
        '=' * len(about.title), about.title, '=' * len(about.title), '',
        '.. Written by benchmarks/evidence.py.', '', about.text, '',
        'Measured by ``python -m benchmarks %s%s``' % (
            name, ' --quick' if record.quick else ''),
        'on %s,' % record.when,
        'commit ``%s``,' % record.commit,
        'on %s%s' % (
            record.machine, '.' if record.stolen_pct is None else ','),
        *(() if record.stolen_pct is None else (
            'from which %s %% of its CPUs\' time was stolen meanwhile.'
            % _number(record.stolen_pct),)), '']
    if record.quick:
        parts += ['.. note:: A quick run: good for a look and no more.', '']
    if picture:
        parts += ['.. image:: %s.svg' % name,
                  '   :alt: %s' % about.title, '']
    parts += _title('Figures') + _table(
        ('Metric', 'Ours', 'What it is'),
        [('``%s``' % key, _number(value), about.units.get(key, ''))
         for key, value in record.metrics.items()])
    if about.papers:
        parts += _title('Beside the papers') + _table(
            ('Metric', 'Ours', 'Paper', 'Its figure', 'Conditions'),
            [('``%s``' % one.metric,
              _number(record.metrics.get(one.metric)),
              one.source, one.figure, one.remark)
             for one in about.papers])
    parts += _title('Variants')
    for kind, rows in _alike(record.variants):
        parts += _table(
            ('Variant', *kind),
            [(variant, *map(_number, figures.values()))
             for variant, figures in rows])
    return '\n'.join(parts).rstrip() + '\n'


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
        return '%.4g' % value
    if isinstance(value, list):
        return ', '.join(
            ' '.join(map(_number, one)) if isinstance(one, list)
            else _number(one) for one in value).replace('_', '\\_')
    return '' if value is None else str(value)


def _table(head: tuple[str, ...], rows: ty.Any) -> list[str]:
    lines = ['.. list-table::', '   :header-rows: 1', '']
    for row in [head, *rows]:
        for number, cell in enumerate(row):
            lines.append(('   %s - %s' % (
                ' ' if number else '*', cell)).rstrip())
    return [*lines, '']


def _picture(benchmark: ty.Any, record: frame.Record,
             path: pathlib.Path) -> None:
    import matplotlib
    from matplotlib import figure as figures

    # The same data give the same file.
    with matplotlib.rc_context({'svg.hashsalt': record.bench}):
        figure = figures.Figure(figsize=(8, 4), layout='constrained')
        benchmark.draw(record, figure)
        figure.savefig(path, metadata={'Date': None})


def write(folder: pathlib.Path = FOLDER, pictures: bool = True) -> None:
    """Write every page there is a result for.

    :param pictures: draw them as well; the pages are the same without.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name in catalogue.NAMES:
        path = frame.RESULTS / (name + '.json')
        if not path.exists():
            continue
        names.append(name)
        benchmark, record = catalogue.load(name), frame.Record.load(path)
        picture = hasattr(benchmark, 'draw')
        if picture and pictures:
            _picture(benchmark, record, folder / (name + '.svg'))
        (folder / (name + '.rst')).write_text(
            page(name, benchmark.ABOUT, record, picture), encoding='utf-8')
    (folder / 'index.rst').write_text(_INDEX % '\n'.join(
        '   ' + name for name in names), encoding='utf-8')


def main() -> int:
    """Write the pages; returns the exit code."""
    parser = argparse.ArgumentParser(prog='python -m benchmarks.evidence')
    parser.add_argument('folder', nargs='?', type=pathlib.Path,
                        default=FOLDER)
    parser.add_argument('--no-pictures', action='store_true')
    options = parser.parse_args()
    write(options.folder, not options.no_pictures)
    return 0


if __name__ == '__main__':
    sys.exit(main())
