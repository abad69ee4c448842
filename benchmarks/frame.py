# SPDX-License-Identifier: Apache-2.0

"""What a benchmark is, and what is kept of a run.

A benchmark is a module::

    ABOUT = frame.About(
        'Title', 'What it measures.', units={'headline': 'in seconds'},
        targets=(frame.at_most('headline', 2, 's', 'issue 1'),),
        exercises=('tools/guest',))

    def run(quick: bool) -> frame.Run:
        yield frame.Variant('name', {'figure': 1.5})
        return {'headline': 1.5}

    def draw(record: frame.Record, figure: matplotlib.figure.Figure): ...

``draw`` is optional. A title says what is measured and never what came out.
"""

from collections.abc import Generator
from collections.abc import Iterator
from collections.abc import Mapping
import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import platform
import subprocess
import time
import typing as ty

from benchmarks import targets

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / 'benchmarks' / 'results'

Target = targets.Target
at_most = targets.at_most
at_least = targets.at_least
within = targets.within


@dataclasses.dataclass(frozen=True, slots=True)
class Paper:
    """A paper's number, to stand beside ours.

    :param metric: the metric of ours that it compares with.
    :param source: the paper, short.
    :param figure: its number with its unit, as text.
    :param remark: what differs in the conditions.
    """

    metric: str
    source: str
    figure: str
    remark: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class About:
    """What a benchmark measures.

    :param title: of its page.
    :param text: paragraphs in reStructuredText.
    :param papers: numbers to compare with.
    :param units: by metric, what it is, with its unit.
    :param targets: what the metrics are to reach.
    :param exercises: files and folders that it exercises and to which no
        import leads, from the root of the project. A change of them, or of
        what it imports (:mod:`benchmarks.sources`), makes its records
        stale.
    :param former: by metric of older records that is measured no longer,
        what was wrong with it.
    """

    title: str
    text: str
    papers: tuple[Paper, ...] = ()
    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    targets: tuple[Target, ...] = ()
    exercises: tuple[str, ...] = ()
    former: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Variant:
    """What one variant of a benchmark gave.

    :param name: unique within the benchmark.
    :param figures: JSON types.
    """

    name: str
    figures: Mapping[str, ty.Any]


#: Variants as they are done, and in the end the headline numbers.
Run = Generator[Variant, None, Mapping[str, float]]


class Benchmark(ty.Protocol):
    """A module as described above."""

    ABOUT: About

    def run(self, quick: bool) -> Run:
        """Measure."""


class Unavailable(Exception):
    """This machine lacks what the benchmark needs; the text says what."""


@dataclasses.dataclass(frozen=True)
class Record:
    """One run, as a file in ``benchmarks/results/NAME`` keeps it.

    :param commit: of the tree that was measured, with ``-dirty`` when it
        had changes outside the results.
    :param machine: model and number of CPUs, and the kernel.
    :param when: UTC.
    :param quick: a short run, good for a look and no more.
    :param stolen_pct: of the CPUs' time that a hypervisor below this machine
        took meanwhile; None of records that were made before it was kept.
    :param sources: digest of what the benchmark exercises, as it was; None
        of records that were made before it was kept.
    """

    bench: str
    commit: str
    machine: str
    when: str
    quick: bool
    variants: dict[str, ty.Any]
    metrics: dict[str, float]
    stolen_pct: float | None = None
    sources: str | None = None

    def dump(self) -> str:
        """The record as JSON."""
        return json.dumps(dataclasses.asdict(self), indent=2) + '\n'

    @classmethod
    def load(cls, path: pathlib.Path) -> 'Record':
        """Read a record."""
        return cls(**json.loads(path.read_text(encoding='utf-8')))


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """One measurement at a time on this machine.

    With the lock of ``hold_host`` in tools/services/processes.sh.
    """
    if os.environ.get('VSCHED_HOST_HELD'):
        yield
        return
    folder = pathlib.Path(os.environ.get('VSCHED_RUN_DIR', '/run/vsched'))
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / 'host.lock', 'a', encoding='ascii') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.environ['VSCHED_HOST_HELD'] = '1'
        try:
            yield
        finally:
            del os.environ['VSCHED_HOST_HELD']


def commit(root: pathlib.Path = ROOT) -> str:
    """The tree that is being measured."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ('git', '-C', str(root), *arguments),
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    head = git('rev-parse', 'HEAD')
    changes = git(
        'status', '--porcelain', '--', '.', ':(exclude)benchmarks/results'
    )
    return head + '-dirty' if changes else head


def machine() -> str:
    """The machine in one line."""
    model = platform.machine()
    with open('/proc/cpuinfo', encoding='utf-8') as lines:
        for line in lines:
            if line.startswith('model name'):
                model = line.partition(':')[2].strip()
                break
    return '%s, %d CPUs, Linux %s' % (
        model,
        os.cpu_count() or 1,
        platform.release(),
    )


def cpu_ticks() -> tuple[int, int]:
    """What was stolen from this machine's CPUs, and all of their time.

    In ticks since it booted; proc_stat(5).
    """
    with open('/proc/stat', encoding='ascii') as lines:
        # Guests' time, which follows, is counted as the user's already.
        fields = [int(text) for text in next(lines).split()[1:9]]
    return fields[-1], sum(fields)


def execute(
    name: str,
    benchmark: Benchmark,
    quick: bool,
    say: ty.Callable[[str], None],
    sources: str | None = None,
) -> Record:
    """Run one benchmark.

    :param say: takes one JSON object a line: each variant as it is done,
        and the record.
    :param sources: digest of what it exercises.
    :raises Unavailable: when this machine can not run it.
    """
    # Before the run: it is this tree that is measured.
    tree = commit()
    when = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
    variants: dict[str, ty.Any] = {}
    stolen, ticks = cpu_ticks()
    steps = benchmark.run(quick)
    while True:
        try:
            variant = next(steps)
        except StopIteration as end:
            metrics = dict(end.value)
            break
        if variant.name in variants:
            raise ValueError('variant %s comes twice' % variant.name)
        variants[variant.name] = dict(variant.figures)
        say(
            json.dumps(
                {'bench': name, 'variant': variant.name, **variant.figures}
            )
        )
    stolen, ticks = (
        later - earlier
        for later, earlier in zip(cpu_ticks(), (stolen, ticks), strict=True)
    )
    record = Record(
        name,
        tree,
        machine(),
        when,
        quick,
        variants,
        metrics,
        round(100 * stolen / max(1, ticks), 3),
        sources,
    )
    say(json.dumps(dataclasses.asdict(record)))
    return record
