# SPDX-License-Identifier: Apache-2.0

"""``vsched-agent profile``: measure this host, and show the results."""

import argparse
import json
import os
import sys
import threading
import time
import typing as ty

from oslo_config import cfg

from vsched_agent.cmd import overhead
from vsched_agent.cmd import run_control
from vsched_agent.enforcement import diagnosis
from vsched_agent.host import kernel
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import plan
from vsched_agent.profiling.error import runner
from vsched_agent.profiling import jobs
from vsched_agent.profiling import manager
from vsched_agent.profiling import session
from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error
from vsched_lib.model import reservation


def add_commands(parsers: ty.Any) -> None:
    """Add the commands to an argument parser."""
    profile = parsers.add_parser(
        'profile', help='measure this host, and show the results'
    )
    commands = profile.add_subparsers(dest='profile', required=True)
    run = commands.add_parser(
        'error',
        help='measure the allocation error: the difference between the '
        'reserved and the allocated CPU time (ALERT)',
    )
    run.add_argument(
        '--shares',
        metavar='PCT,...',
        type=_shares,
        help='reserved shares in percent of a CPU, as in 1-9,10,20.5 '
        '(default: 1-9,10,20,...,90)',
    )
    run.add_argument(
        '--backends',
        metavar='NAME,...',
        type=_words,
        help='default: all backends that this host supports',
    )
    run.add_argument(
        '--periods-us',
        metavar='US,...',
        type=_numbers,
        help='default: %d' % plan.PAPER_PERIOD_US,
    )
    run.add_argument(
        '--seconds',
        metavar='N',
        type=int,
        help='samples of a second at each point (default: %d)'
        % error.LONG_WINDOWS,
    )
    run.add_argument(
        '--contend',
        metavar='N',
        type=int,
        default=None,
        help='CPU hogs outside of the reservation in the second half of the '
        'run; 0 omits that half (default: twice the CPUs)',
    )
    run.add_argument(
        '--in-guest',
        action='store_true',
        help='reserve the shares for the vCPU of a calibration VM',
    )
    run.add_argument(
        '--quick',
        action='store_true',
        help='fewer shares and samples, in less than two minutes; the bounds '
        'are wider',
    )
    run_control.add_options(run)
    run.set_defaults(handler=_error)
    overhead.add_run(commands)
    show = commands.add_parser('show', help='print a profile')
    _choose(show)
    show.add_argument(
        '--format', choices=('table', 'json', 'csv'), default='table'
    )
    show.set_defaults(handler=_show)
    plot = commands.add_parser('plot', help='draw a profile')
    _choose(plot)
    plot.add_argument(
        '--figure',
        choices=('error', 'cdf', 'mean', 'all'),
        default='all',
        help='figure of an error profile: errors by share, their '
        'distribution, or their long-term mean',
    )
    plot.add_argument('--format', choices=('svg', 'png'), default='svg')
    plot.add_argument(
        '--output',
        metavar='FOLDER',
        default='.',
        help='directory for the file alert-FIGURE.FORMAT or overhead.FORMAT',
    )
    plot.set_defaults(handler=_plot)


def _choose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--kind',
        choices=('error', 'overhead'),
        default='error',
        help='profile of the allocation error or of the overhead of I/O '
        '(default: error)',
    )
    parser.add_argument(
        '--source',
        choices=[str(one) for one in contract.ProfileSource],
        default=str(contract.ProfileSource.BENCHMARK),
    )
    parser.add_argument('--version', type=int, help='default: the newest')


def order_of(
    command: ty.Any,
    usable: ty.Sequence[reservation.Backend],
    cpus: int,
    threads: int = 1,
) -> plan.Order:
    """Return the run that the options of a command line or a job define.

    :param command: has the options' names as attributes.
    :param usable: backends that this host supports.
    :param threads: see :class:`plan.Order`.
    :raises ValueError: with the invalid value and the valid ones.
    """
    backends = usable
    if command.backends:
        unknown = [name for name in command.backends if name not in usable]
        if unknown:
            raise ValueError(
                'this host cannot use %s; it can use %s'
                % (', '.join(unknown), ', '.join(usable) or 'none')
            )
        backends = [name for name in usable if name in command.backends]
    if command.quick and command.seconds:
        raise ValueError(
            '--quick sets the number of samples; leave --seconds out'
        )
    shares = command.shares or (
        plan.QUICK_SHARES_PPM if command.quick else error.PAPER_SHARES_PPM
    )
    return plan.Order(
        tuple(backends),
        tuple(shares),
        tuple(command.periods_us or (plan.PAPER_PERIOD_US,)),
        plan.QUICK_WINDOWS
        if command.quick
        else command.seconds or error.LONG_WINDOWS,
        2 * cpus if command.contend is None else command.contend,
        command.in_guest,
        command.quick,
        threads=threads,
    )


def _error(conf: cfg.ConfigOpts) -> int:
    scene = session.ErrorMeasurement(conf)
    stopping = threading.Event()
    report = run_control.progress_printer(conf.command.json)
    try:
        order = order_of(
            conf.command,
            scene.usable,
            scene.cpus,
            conf.profiling.reserved_threads,
        )
        if conf.command.dry_run:
            return _dry_run(scene, order)
        kept = run_control.open_file(
            conf,
            'error-run.jsonl',
            {'order': order.to_dict(), **scene.host.facts},
        )
        run = scene.runner(order, kept, stopping, report)
    except (
        ValueError,
        errors.VschedError,
        checkpoint.Busy,
        checkpoint.NotTheSame,
    ) as problem:
        print('vsched-agent profile error: %s' % problem, file=sys.stderr)
        return 2
    run_control.stop_on_request(conf, stopping)
    stored = manager.error_profiles(conf)
    try:
        profile = run.run(
            stored.next_version(contract.ProfileSource.BENCHMARK)
        )
        if not profile.points:
            print(
                'nothing was measured: %s' % '; '.join(profile.notes),
                file=sys.stderr,
            )
            return 1
        stored.keep(profile)
        kept.discard()
    except runner.Cancelled:
        print(
            'stopped with %d of %d points; --resume goes on'
            % (len(kept.done), len(plan.tasks(order))),
            file=sys.stderr,
        )
        return jobs.STOPPED
    finally:
        kept.close()
    for note in profile.notes:
        print(note, file=sys.stderr)
    report(
        error.PPM,
        'profile %d has %d points' % (profile.version, len(profile.points)),
    )
    if not conf.command.json:
        print(table(profile, conf.profiling.confidence))
    return 0


def _dry_run(scene: session.ErrorMeasurement, order: plan.Order) -> int:
    slots, tight = scene.slots(order)
    for slot in slots:
        print('; '.join(task.key for task in slot))
    print(
        '%d points, about %d s; no room for %d'
        % (sum(map(len, slots)), plan.seconds(order, slots), len(tight))
    )
    return 0


def _show(conf: cfg.ConfigOpts) -> int:
    if conf.command.kind == 'overhead':
        return overhead.show(conf)
    profile = overhead.chosen(manager.error_profiles(conf), conf, 'error')
    if profile is None:
        return 1
    if conf.command.format == 'json':
        print(json.dumps(profile.to_dict()))
    elif conf.command.format == 'csv':
        from vsched_lib.presentation import error_csv

        sys.stdout.write(error_csv.render(profile))
    else:
        print(table(profile, conf.profiling.confidence))
    return 0


def _plot(conf: cfg.ConfigOpts) -> int:
    if conf.command.kind == 'overhead':
        return overhead.plot(conf)
    # Compute nodes may lack matplotlib.
    from vsched_lib.presentation import error_plots

    profile = overhead.chosen(manager.error_profiles(conf), conf, 'error')
    if profile is None:
        return 1
    figures = (
        error_plots.FIGURES
        if conf.command.figure == 'all'
        else (conf.command.figure,)
    )
    try:
        for figure in figures:
            path = os.path.join(
                conf.command.output,
                'alert-%s.%s' % (figure, conf.command.format),
            )
            picture = error_plots.render(
                profile, figure, conf.command.format, host=conf.agent.host
            )
            with open(path, 'wb') as file:
                file.write(picture)
            print(path)
    except (error_plots.Unavailable, OSError) as problem:
        print('vsched-agent profile plot: %s' % problem, file=sys.stderr)
        return 1
    return 0


def finding(conf: cfg.ConfigOpts) -> diagnosis.Finding:
    """Return the doctor's finding on the newest error profile."""
    found = manager.error_profiles(conf).latest(
        contract.ProfileSource.BENCHMARK
    )
    remedy = '"vsched-agent profile error" measures it'
    if found is None:
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'alloc-error',
            'this host was never measured: it cannot guarantee the '
            'max_alloc_error_pct of a flavor',
            remedy,
        )
    differ = certification.differences(
        found, manager.facts(kernel.KernelFacts.read(), conf)
    )
    if differ:
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'alloc-error',
            'profile %d was measured with '
            'another %s' % (found.version, ', '.join(differ)),
            remedy,
        )
    worst: dict[str, int] = {}
    for point in found.points:
        if point.contenders and point.share_ppm >= error.JUDGED_FROM_PPM:
            worst[point.backend] = max(
                worst.get(point.backend, 0), point.abs_p99_ppm
            )
    return diagnosis.Finding(
        diagnosis.Level.OK,
        'alloc-error',
        'profile %d of %s: %s'
        % (
            found.version,
            time.strftime('%Y-%m-%d', time.gmtime(found.finished_at)),
            '; '.join(
                '%s errs by up to %.2f %% in 99 of 100 seconds'
                % (backend, size_ppm / 10_000)
                for backend, size_ppm in worst.items()
            )
            or 'no share from 10 % on was measured among contenders',
        ),
    )


def table(profile: contract.ErrorProfile, confidence: float) -> str:
    """Return a profile as text for a terminal.

    :param confidence: of the bound in the last column.
    """
    lines = [
        'Profile %d of %s: Linux %s, %d CPUs, tick %d us%s'
        % (
            profile.version,
            profile.source,
            profile.kernel,
            profile.cpus,
            profile.tick_us,
            ', quick: wide bounds' if profile.quick else '',
        )
    ]
    lines.append(
        '%-9s %9s %6s %5s %5s %8s %8s %8s %8s %8s  %s'
        % (
            'backend',
            'period_us',
            'share',
            'hogs',
            'n',
            'mean',
            'p50',
            'p95',
            'p99',
            'max',
            'p99 at confidence %g' % confidence,
        )
    )
    for point in profile.points:
        size_ppm = point.statistics.size_ppm(confidence)
        lines.append(
            '%-9s %9d %5g%% %5d %5d %+7.2f%% %7.2f%% %7.2f%% %7.2f%% '
            '%7.2f%%  %s'
            % (
                point.backend,
                point.period_us,
                point.share_ppm / 10_000,
                point.contenders,
                point.n,
                point.mean_ppm / 10_000,
                point.abs_p50_ppm / 10_000,
                point.abs_p95_ppm / 10_000,
                point.abs_p99_ppm / 10_000,
                point.largest_ppm[0] / 10_000,
                'unknown: %d samples, it takes %d'
                % (point.n, error.samples_needed(confidence))
                if size_ppm is None
                else '%.2f%%' % (size_ppm / 10_000),
            )
        )
    return '\n'.join(lines)


def _shares(text: str) -> tuple[int, ...]:
    found: list[int] = []
    try:
        for part in text.split(','):
            first, dash, last = part.partition('-')
            if dash:
                found.extend(
                    share * 10_000
                    for share in range(int(first), int(last) + 1)
                )
            else:
                found.append(round(float(first) * 10_000))
    except ValueError:
        raise argparse.ArgumentTypeError(
            '%r is no list of percentages; accepted is e.g. 1-9,10,20.5' % text
        ) from None
    return tuple(found)


def _words(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(',') if part)


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(','))
    except ValueError:
        raise argparse.ArgumentTypeError(
            '%r is no list of whole numbers; accepted is e.g. 10000,20000'
            % text
        ) from None
