# SPDX-License-Identifier: Apache-2.0

"""``vsched-agent profile overhead``: measure the cost of instances' I/O."""

import json
import os
import sys
import threading
import typing as ty

from oslo_config import cfg

from vsched_agent.cmd import run_control
from vsched_agent.enforcement import diagnosis
from vsched_agent.host import kernel
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import runner
from vsched_agent.profiling import io_prices
from vsched_agent.profiling import jobs
from vsched_agent.profiling import manager
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling import session
from vsched_agent.profiling import store
from vsched_lib.contract import errors
from vsched_lib.contract import profiles as contract
from vsched_lib.model import overhead


def add_run(commands: ty.Any) -> None:
    """Add the command to the parser of ``profile``."""
    run = commands.add_parser(
        'overhead',
        help='measure the CPU cost of the I/O of instances on this host, '
        'with a calibration VM',
    )
    run.add_argument(
        '--quick',
        action='store_true',
        help='fewer loads and shorter samples, in about a minute',
    )
    run_control.add_options(run)
    run.set_defaults(handler=_run)


def _run(conf: cfg.ConfigOpts) -> int:
    command = conf.command
    try:
        scene = session.OverheadMeasurement(conf, command.quick)
    except errors.VschedError as problem:
        print('vsched-agent profile overhead: %s' % problem, file=sys.stderr)
        return 2
    if command.dry_run:
        wanted = loads.points(scene.plan)
        for _, load in wanted:
            print(load)
        print(
            '%d loads, about %d s' % (len(wanted), loads.seconds(scene.plan))
        )
        return 0
    stopping = threading.Event()
    report = run_control.progress_printer(command.json)
    stored = manager.overhead_profiles(conf)
    kept = None
    try:
        kept = run_control.open_file(
            conf,
            'overhead-run.jsonl',
            {'plan': scene.plan.to_dict(), **scene.facts},
        )
        run_control.stop_on_request(conf, stopping)
        profile = scene.run(kept, stopping, report).run(
            stored.next_version(contract.ProfileSource.BENCHMARK)
        )
        stored.keep(profile)
        kept.discard()
    except runner.Cancelled:
        print(
            'stopped with %d of %d loads; --resume goes on'
            % (len(kept.done) if kept else 0, len(loads.points(scene.plan))),
            file=sys.stderr,
        )
        return jobs.STOPPED
    except (
        errors.VschedError,
        checkpoint.Busy,
        checkpoint.NotTheSame,
    ) as problem:
        print('vsched-agent profile overhead: %s' % problem, file=sys.stderr)
        return 2
    finally:
        if kept is not None:
            kept.close()
        scene.close()
    for note in profile.notes:
        print(note, file=sys.stderr)
    report(
        1_000_000,
        'profile %d explains %.1f %% of what %d loads cost'
        % (profile.version, 100 * profile.r2, profile.n),
    )
    if not command.json:
        print(table(profile))
    return 0


def show(conf: cfg.ConfigOpts) -> int:
    """Print a profile."""
    profile = chosen(manager.overhead_profiles(conf), conf, 'overhead')
    if profile is None:
        return 1
    if conf.command.format == 'json':
        print(json.dumps(profile.to_dict()))
    elif conf.command.format == 'csv':
        from vsched_lib.presentation import overhead_csv

        sys.stdout.write(overhead_csv.render(profile))
    else:
        print(table(profile))
    return 0


def plot(conf: cfg.ConfigOpts) -> int:
    """Draw a profile."""
    from vsched_lib.presentation import error_plots

    profile = chosen(manager.overhead_profiles(conf), conf, 'overhead')
    if profile is None:
        return 1
    form = conf.command.format
    path = os.path.join(conf.command.output, 'overhead.%s' % form)
    try:
        picture = error_plots.render_overhead(
            profile, form, host=conf.agent.host
        )
        with open(path, 'wb') as file:
            file.write(picture)
    except (error_plots.Unavailable, OSError) as problem:
        print('vsched-agent profile plot: %s' % problem, file=sys.stderr)
        return 1
    print(path)
    return 0


def chosen(
    stored: store.Profiles[store.Kind], conf: cfg.ConfigOpts, kind: str
) -> store.Kind | None:
    """Return the profile that the command selects, or say how to make one.

    :param kind: ``error`` or ``overhead``.
    """
    found = manager.chosen(stored, conf.command)
    if found is None:
        print(
            'there is no such profile in %s; "vsched-agent profile %s" makes '
            'one' % (manager.folder(conf), kind),
            file=sys.stderr,
        )
    return found


def finding(conf: cfg.ConfigOpts) -> diagnosis.Finding:
    """Return the doctor's finding on the newest overhead profile."""
    found = manager.overhead_profiles(conf).latest(
        contract.ProfileSource.BENCHMARK
    )
    problem = io_prices.Prices(
        lambda: found, manager.facts(kernel.KernelFacts.read(), conf)
    ).problem()
    if found is None or problem is not None:
        return diagnosis.Finding(
            diagnosis.Level.NOTE,
            'overhead',
            problem or '',
            '"vsched-agent profile overhead" measures it',
        )
    return diagnosis.Finding(
        diagnosis.Level.OK,
        'overhead',
        'profile %d explains %.1f %% of what '
        'I/O costs' % (found.version, 100 * found.r2),
    )


_WORDS = {
    'net_rx': 'packet received',
    'net_tx': 'packet sent',
    'disk_read': 'block read',
    'disk_write': 'block written',
    overhead.WAKEUPS: 'wakeup',
    overhead.IDLE: 'second idle',
}


def table(profile: contract.OverheadProfile) -> str:
    """Return a profile as text for a terminal."""
    lines = [
        'Profile %d of %s: Linux %s, %d CPUs%s%s'
        % (
            profile.version,
            profile.source,
            profile.kernel,
            profile.cpus,
            ', quick' if profile.quick else '',
            '' if profile.good else ', POOR: not used',
        )
    ]
    lines.append('%-16s %12s %12s' % ('a', 'costs us', '+- us'))
    for price in profile.prices:
        lines.append(
            '%-16s %12.2f %12s'
            % (
                _WORDS.get(price.term, price.term),
                price.cost_ns / 1000,
                'unknown'
                if price.error_ns is None
                else '%.2f' % (price.error_ns / 1000),
            )
        )
    lines.append(
        'explains %.1f %% of the variance of %d observations; '
        '%.2f ms are left of one'
        % (100 * profile.r2, profile.n, profile.residual_ns / 1e6)
    )
    return '\n'.join(lines)
