# SPDX-License-Identifier: Apache-2.0

"""ALERT: how far the CPU time that is given is from what was promised."""

from collections.abc import Iterable
import pathlib
import tempfile
import threading
import typing as ty

from oslo_config import cfg

from benchmarks import frame
from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import host_checks
from vsched_agent.host import kernel
from vsched_agent import privileged
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import plan
from vsched_agent.profiling import margins
from vsched_agent.profiling import session
from vsched_agent.tests import profiles as test_profiles
from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.model import reservation

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

CONTEND = 4
PERIOD_US = plan.PAPER_PERIOD_US
BOUND_PPM = 20_000
FROM_PPM = error.JUDGED_FROM_PPM
INFLATE_FROM_PPM = 10_000

ABOUT = frame.About(
    'How wrong the CPU allocation is (ALERT)',
    'A CPU hog is promised a share of a CPU and looked at once a second, '
    "as in the paper's ALERT: the error is what it got less what was "
    'promised, in percent of the promise. Both backends give shares at a '
    'period of 10 ms, first while nobody else wants the CPUs and then among '
    'four hogs outside of the reservation. In the contended half the probes '
    'of ``deadline`` run together, as many as can not make each other '
    'late. A share of 10 %% is then measured once more as the only probe '
    'among the hogs.\n\n'
    'On a kernel without high-resolution preemption a budget ends at a '
    'tick, and a second is wrong by up to a tick or so at each end. There '
    'the agent has what the doctor advises, ``[enforcement] '
    'budget_check_us`` = %d (:ref:`budget-checks`): budgets are looked at '
    'when they end. :doc:`alert_looks` has the same shares with and without. '
    'A look comes a fraction of a millisecond late, which is little of 10 %% '
    'of a CPU and much of 1 %%; ``HRTICK_DL`` among the '
    "scheduler's features mends that as well.\n\n"
    'Then every share from %d %% on whose errors fall short of the promise '
    'by more than 2 %% in one second of a hundred is given the margin that '
    'the agent would grant it for ``max_alloc_error_pct`` = 2, and measured '
    'again: in the end ``inflated_p99_pct`` is by how much the worst of '
    'them still falls short of what was promised. :doc:`alert_margins` does '
    'that with budgets that are left to the tick.'
    % (host_checks.CHECK_US, INFLATE_FROM_PPM // 10_000),
    (
        frame.Paper(
            'deadline_p99_pct',
            'HPL-2007-25, SEDF',
            '0.03 % of points beyond 9.9 %, at most 9.52 % on the other side',
            'Xen 3, two CPUs, shares of 1 to 90 %',
        ),
        frame.Paper(
            'deadline_contended_p99_pct',
            'HPL-2007-25, SEDF',
            'not measured',
            'the paper measures without contention',
        ),
        frame.Paper(
            'cfs_contended_p99_pct',
            'HPL-2007-25, Credit',
            '10 % of points beyond 36.3 %, from -100 to 370 %',
            'the paper measures without contention',
        ),
    ),
    {
        'deadline_p99_pct': 'p99 of the size of the error, the worst share '
        'from 10 % on, nobody else on the CPUs, percent',
        'deadline_contended_p99_pct': 'likewise, among four hogs, several '
        'probes at once',
        'deadline_single_contended_p99_pct': 'p99 of the size of the error of '
        'a share of 10 %, the only probe '
        'among four hogs, percent',
        'deadline_contended_p99_from_20_pct': 'likewise, from 20 % on',
        'deadline_small_p99_pct': 'likewise, the worst share below 10 %',
        'cfs_p99_pct': 'backend cfs, nobody else on the CPUs, from 10 % on',
        'cfs_contended_p99_pct': 'backend cfs, among four hogs, from 10 % on',
        'cfs_certified_2_pct': 'whether cfs is certified for 2 % (1) or not, '
        'at '
        'the confidence of 0.4 that 60 samples allow',
        'raw_p99_pct': 'p99 of what is missing, the worst of the shares that '
        'were then given a margin, percent',
        'inflated_p99_pct': 'likewise, after the margin',
        'inflated_shares': 'how many those were',
    },
    targets=(
        frame.at_most('deadline_p99_pct', 2, '%', 'issue 3'),
        frame.at_most('deadline_contended_p99_pct', 2, '%', 'issue 3'),
        frame.at_most('deadline_single_contended_p99_pct', 2, '%', 'issue 3'),
        frame.within('cfs_certified_2_pct', 0, 0, '', 'issue 3'),
        frame.at_most('inflated_p99_pct', 2, '%', 'issue 3'),
    ),
)


def run(quick: bool) -> frame.Run:
    """Both backends, then the shares that need a margin once more."""
    windows = plan.QUICK_WINDOWS if quick else error.LONG_WINDOWS
    shares = plan.QUICK_SHARES_PPM if quick else error.PAPER_SHARES_PPM
    with tempfile.TemporaryDirectory() as folder:
        scene = scene_of(folder, advised_us())
        deadline = measure(scene, folder, order(shares, windows, quick=quick))
        yield from variants('', deadline.points)
        single = measure(
            scene,
            folder,
            order((FROM_PPM,), windows, quick=quick, alone=False),
        )
        yield from variants('single-', single.points)
        cfs = measure(
            scene,
            folder,
            plan.Order(
                (reservation.Backend.CFS,),
                tuple(share for share in shares if share >= FROM_PPM),
                (PERIOD_US,),
                min(windows, 60),
                CONTEND,
                quick=quick,
            ),
        )
        yield from variants('', cfs.points)
        again, raw, _ = inflated(scene, folder, deadline, windows)
        yield from variants('inflated-', again)
    return {
        'deadline_p99_pct': worst(deadline.points, 0),
        'deadline_contended_p99_pct': worst(deadline.points, CONTEND),
        'deadline_single_contended_p99_pct': worst(single.points, CONTEND),
        'deadline_contended_p99_from_20_pct': worst(
            deadline.points, CONTEND, 200_000
        ),
        'deadline_small_p99_pct': worst(deadline.points, CONTEND, 0, FROM_PPM),
        'cfs_p99_pct': worst(cfs.points, 0),
        'cfs_contended_p99_pct': worst(cfs.points, CONTEND),
        'cfs_certified_2_pct': int(
            error.certified(
                certification.contended(cfs, 'cfs', PERIOD_US), BOUND_PPM, 0.4
            )
        ),
        'raw_p99_pct': short(raw),
        'inflated_p99_pct': short(again),
        'inflated_shares': len(again),
    }


def advised_us() -> int:
    """What the doctor advises for ``[enforcement] budget_check_us``."""
    facts = kernel.KernelFacts.read()
    return (
        0
        if facts.hrtick_dl or facts.tick_us <= host_checks.CHECK_US
        else (host_checks.CHECK_US)
    )


def conf(folder: str, check_us: int = 0) -> cfg.ConfigOpts:
    """An agent's options, with a state folder of its own.

    :param check_us: ``[enforcement] budget_check_us``.
    """
    found = cfg.ConfigOpts()
    agent_conf.register_opts(found)
    found([], default_config_files=[], default_config_dirs=[])
    found.set_override('state_path', folder, 'agent')
    found.set_override('budget_check_us', check_us, 'enforcement')
    privileged.use(found)
    return found


def scene_of(folder: str, check_us: int = 0) -> session.ErrorMeasurement:
    """Return what measures shares under ``deadline``.

    :param check_us: ``[enforcement] budget_check_us``.
    :raises frame.Unavailable: when this host cannot use the backend.
    """
    scene = session.ErrorMeasurement(conf(folder, check_us))
    if reservation.Backend.DEADLINE not in scene.usable:
        raise frame.Unavailable('needs backend deadline')
    return scene


def order(
    shares_ppm: tuple[int, ...], windows: int, **more: bool
) -> plan.Order:
    """Return an order to measure shares under ``deadline``.

    :param more: ``quick`` and ``alone`` of the order.
    """
    return plan.Order(
        (reservation.Backend.DEADLINE,),
        shares_ppm,
        (PERIOD_US,),
        windows,
        CONTEND,
        **more,
    )


def measure(
    scene: session.ErrorMeasurement,
    folder: str,
    order: plan.Order,
    granted: ty.Callable[[plan.Task], reservation.Reservation] = lambda task: (
        task.promise
    ),
) -> profiles.ErrorProfile:
    """Carry out an order.

    :param granted: what is put in force for a task.
    """
    kept = checkpoint.RunFile(
        str(pathlib.Path(folder, 'run.jsonl')), {}, False
    )
    try:
        return scene.runner(
            order,
            kept,
            threading.Event(),
            lambda part_ppm, doing: None,
            granted,
        ).run(1)
    finally:
        kept.discard()


def inflated(
    scene: session.ErrorMeasurement,
    folder: str,
    profile: profiles.ErrorProfile,
    windows: int,
    low_ppm: int = INFLATE_FROM_PPM,
) -> tuple[
    list[profiles.ErrorPoint],
    list[profiles.ErrorPoint],
    dict[int, reservation.Reservation],
]:
    """Measure what misses the bound again, with the margins it is granted.

    :param low_ppm: the least share of a CPU that counts.
    :returns: the points with margins, the same without, and by share in ppm
        what was granted.
    """
    grants = margins.Margins(
        lambda: profile,
        scene.host.facts,
        0.8
        if windows >= error.samples_needed(0.8)
        else 0.9 * (1 - 0.99**windows),
    )
    granted: dict[int, reservation.Reservation] = {}
    raw = []
    for point in certification.contended(profile, 'deadline', PERIOD_US):
        if point.share_ppm < low_ppm or _low_ppm(point) >= -BOUND_PPM:
            continue
        task = plan.Task(
            reservation.Backend.DEADLINE, PERIOD_US, point.share_ppm, CONTEND
        )
        try:
            granted[point.share_ppm] = test_profiles.granted(
                grants,
                task.promise,
                task.backend,
                BOUND_PPM,
                scene.host.facts['cpus'],
            )
        except errors.Refused:
            continue
        raw.append(point)
    if not granted:
        return [], [], {}
    again = measure(
        scene,
        folder,
        order(tuple(granted), windows, alone=False),
        lambda task: granted[task.share_ppm],
    )
    return certification.contended(again, 'deadline', PERIOD_US), raw, granted


def variants(
    prefix: str, points: Iterable[profiles.ErrorPoint]
) -> ty.Iterator[frame.Variant]:
    """Points as variants of a benchmark."""
    for point in points:
        yield frame.Variant(
            '%s%s-%d-%s'
            % (
                prefix,
                point.backend,
                point.share_ppm // 10_000,
                'contended' if point.contenders else 'alone',
            ),
            {
                'share_pct': point.share_ppm / 10_000,
                'hogs': point.contenders,
                'n': point.n,
                'mean_pct': _pct(point.mean_ppm),
                'p50_pct': _pct(point.abs_p50_ppm),
                'p95_pct': _pct(point.abs_p95_ppm),
                'p99_pct': _pct(point.abs_p99_ppm),
                'max_pct': _pct(point.largest_ppm[0]),
                'p1_signed_pct': _pct(_low_ppm(point)),
                'p99_at_80_confidence_pct': _bound(point),
            },
        )


def _pct(ppm: int) -> float:
    return round(ppm / 10_000, 4)


def _bound(point: profiles.ErrorPoint) -> float | None:
    size_ppm = point.statistics.size_ppm(0.8)
    return None if size_ppm is None else _pct(size_ppm)


def _low_ppm(point: profiles.ErrorPoint) -> int:
    return point.quantiles_ppm[0]


def worst(
    points: Iterable[profiles.ErrorPoint],
    contenders: int,
    low_ppm: int = FROM_PPM,
    below_ppm: int = error.PPM,
) -> float:
    """The worst p99 of the size of the error, in percent.

    :param contenders: the hogs of the points that count.
    :param low_ppm: the least share of a CPU that counts.
    :param below_ppm: and what it is below.
    """
    return max(
        (
            _pct(point.abs_p99_ppm)
            for point in points
            if point.contenders == contenders
            and low_ppm <= point.share_ppm < below_ppm
        ),
        default=0.0,
    )


def short(points: Iterable[profiles.ErrorPoint]) -> float:
    """The worst p99 of what is missing, in percent."""
    return max(
        (_pct(max(0, -_low_ppm(point))) for point in points), default=0.0
    )


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The p99 of each share, beside the paper's numbers."""
    axes = figure.add_subplot()
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, found in record.variants.items():
        if not name.startswith(('inflated-', 'single-')):
            kind = name.split('-')[0] + ' ' + name.rsplit('-', 1)[1]
            lines.setdefault(kind, []).append(
                (found['share_pct'], max(0.01, found['p99_pct']))
            )
    for kind, values in lines.items():
        values.sort()
        axes.plot(
            [share for share, _ in values],
            [size for _, size in values],
            marker='o',
            markersize=3,
            linestyle='--' if kind.endswith('alone') else '-',
            color='tab:blue' if kind.startswith('deadline') else 'tab:red',
            label=kind,
        )
    for height, text in (
        (9.52, 'SEDF, paper: largest error'),
        (36.3, 'Credit, paper: 10 % are beyond'),
    ):
        axes.axhline(height, color='grey', linestyle=':')
        axes.text(
            99, height, text, ha='right', va='bottom', fontsize=8, color='grey'
        )
    axes.axhline(2.0, color='tab:green', linestyle=':', label='target')
    axes.set_yscale('log')
    axes.set_xlabel('promised share, % of a CPU')
    axes.set_ylabel('p99 of |error|, %')
    axes.legend(fontsize=8)
