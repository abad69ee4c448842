# SPDX-License-Identifier: Apache-2.0

"""How large the code is, how many places one change passes, what CI takes.

Everything but the run of CI is counted from the source files, so that anyone
can count it again: ``python -m benchmarks house --quick``.
"""

import ast
from collections.abc import Iterator
from collections.abc import Mapping
import io
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import tokenize

from benchmarks import frame
from benchmarks import reservation_stops

#: The last commit before the agent's modules were laid out by packages.
BEFORE = '06e48f7'
PACKAGES = (
    'nova_filters',
    'vsched_agent',
    'vsched_api',
    'vsched_lib',
    'vsched_standalone',
)

ABOUT = frame.About(
    'Size of the code, and duration of continuous integration',
    'Counted are production modules: Python files of the packages that are '
    'installed, without their tests. ``before`` is commit 06e48f7, the last '
    'one before the agent was divided into packages, counted by the same '
    'rules; ``now`` is the present tree. What was added to vsched since is '
    'in ``now`` too.\n\n'
    '``source_lines`` are the lines that are not blank and not part of the '
    'comment with which a file begins, its licence. ``statements`` are '
    'logical lines of Python, without docstrings: unlike lines they do not '
    'depend on how code is formatted, which changed in between.\n\n'
    '``loose_modules`` are modules of the agent that are in none of its '
    'packages. ``reservation_shapes`` are the classes that declare a runtime '
    'and a period in microseconds of their own; a class that has a '
    '``model.reservation.Reservation`` is not one. ``stops`` are the '
    'functions of ``benchmarks.reservation_stops``, through which a change '
    'of a reservation passes from the request to the stored report of the '
    'agent that applied it; there is no such list of ``before``.\n\n'
    '``ci_minutes`` and ``coverage_pct`` are those of one run of ``.ci/run`` '
    'on this machine, in which no test may fail.',
    units={
        'loose_modules': 'modules of the agent outside of its packages',
        'files': 'production modules',
        'source_lines': 'lines of production modules, without blank lines '
        'and licence',
        'lines_cut_pct': 'percent fewer source lines than before',
        'statements_cut_pct': 'percent fewer statements than before',
        'reservation_shapes': 'classes with a runtime and a period',
        'stops': 'functions from a PATCH to the stored report',
        'ci_minutes': 'minutes that .ci/run takes',
        'coverage_pct': 'percent of lines and branches that the unit tests '
        'run',
    },
    targets=(
        frame.at_most('loose_modules', 1, '', 'issue 17'),
        frame.at_least('lines_cut_pct', 12, '%', 'issue 17'),
        frame.at_most('reservation_shapes', 8, '', 'issue 17'),
        frame.at_most('stops', 35, '', 'issue 17'),
        frame.at_most('ci_minutes', 20, 'min', 'issue 17'),
    ),
    exercises=('.ci', 'tools', *PACKAGES),
)

_NO_CODE = (
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
)


def modules(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the production modules of a tree.

    :param root: of the tree.
    """
    return [
        path
        for package in PACKAGES
        for path in sorted((root / package).rglob('*.py'))
        if 'tests' not in path.relative_to(root).parts
    ]


def source_lines(text: str) -> int:
    """Count the lines of a module, less blank ones and its licence."""
    lines = text.splitlines()
    begin = 0
    while begin < len(lines) and (
        lines[begin].startswith('#') or not lines[begin].strip()
    ):
        begin += 1
    return sum(bool(line.strip()) for line in lines[begin:])


def statements(text: str) -> int:
    """Count the logical lines of a module that are not docstrings."""
    count = 0
    line: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            # A text by itself documents what it is in.
            count += set(line) != {tokenize.STRING}
            line = []
        elif token.type not in _NO_CODE:
            line.append(token.type)
    return count


def shapes(text: str) -> list[str]:
    """Return the names of the classes that declare runtime and period."""
    return [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
        and {'runtime_us', 'period_us'} <= set(_declared(node))
    ]


def _declared(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id


def counts(root: pathlib.Path) -> dict[str, int]:
    """Count a tree.

    :param root: of the tree.
    """
    texts = [path.read_text('utf-8') for path in modules(root)]
    return {
        'loose_modules': sum(
            path.name != '__init__.py'
            for path in (root / 'vsched_agent').glob('*.py')
        ),
        'files': len(texts),
        'source_lines': sum(map(source_lines, texts)),
        'statements': sum(map(statements, texts)),
        'reservation_shapes': sum(len(shapes(text)) for text in texts),
    }


def counts_before() -> dict[str, int]:
    """Count the tree of :data:`BEFORE`.

    :raises frame.Unavailable: without that commit.
    """
    made = subprocess.run(
        ('git', '-C', str(frame.ROOT), 'archive', BEFORE, '--', *PACKAGES),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        raise frame.Unavailable(
            'needs commit %s of the history: %s'
            % (BEFORE, made.stderr.decode(errors='replace').strip())
        )
    with (
        tempfile.TemporaryDirectory() as folder,
        tarfile.open(fileobj=io.BytesIO(made.stdout)) as archive,
    ):
        archive.extractall(folder)
        return counts(pathlib.Path(folder))


def coverage_pct(lines: list[str]) -> float:
    """Return what the unit tests cover, from the output of ``.ci/run``.

    :raises ValueError: when it does not say.
    """
    for before, line in zip(lines, lines[1:], strict=False):
        if before == 'coverage of the unit tests:':
            return float(line)
    raise ValueError('no coverage in the output of .ci/run')


def _ci() -> dict[str, float]:
    began_s = time.monotonic()
    lines = []
    with subprocess.Popen(
        (str(frame.ROOT / '.ci' / 'run'),),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors='replace',
    ) as running:
        assert running.stdout is not None
        for line in running.stdout:
            # It takes an hour: show how far it is.
            sys.stderr.write(line)
            lines.append(line.rstrip('\n'))
    minutes = (time.monotonic() - began_s) / 60
    if running.returncode:
        raise frame.Unavailable(
            'needs tests that pass: %s' % '\n'.join(lines[-20:])
        )
    return {
        'ci_minutes': round(minutes, 1),
        'coverage_pct': coverage_pct(lines),
    }


def _cut_pct(
    name: str, before: Mapping[str, int], now: Mapping[str, int]
) -> float:
    return round(100 * (before[name] - now[name]) / before[name], 1)


def run(quick: bool) -> frame.Run:
    """Count both trees, and run CI unless it is to be quick."""
    before = counts_before()
    yield frame.Variant('before', before)
    now = counts(frame.ROOT)
    yield frame.Variant('now', now)
    ci: dict[str, float] = {}
    if not quick:
        ci = _ci()
        yield frame.Variant('ci', ci)
    return {
        'loose_modules': now['loose_modules'],
        'files': now['files'],
        'source_lines': now['source_lines'],
        'lines_cut_pct': _cut_pct('source_lines', before, now),
        'statements_cut_pct': _cut_pct('statements', before, now),
        'reservation_shapes': now['reservation_shapes'],
        'stops': len(reservation_stops.STOPS),
        **ci,
    }
