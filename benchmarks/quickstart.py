# SPDX-License-Identifier: Apache-2.0

"""The quick start's own figures: what a promised VM gets of busy CPUs."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as ty

from benchmarks import frame

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'A reserved VM among neighbours that take everything',
    'One VM is promised 60 % of a CPU in every 20 ms while two busy VMs '
    'for each CPU run beside it. The same VM is held by ``deadline``, then '
    'by a quota of the same size (``cfs``), then by ``deadline`` again '
    'after the promise was changed to 30 % over REST. What it got is '
    'counted in windows of one second. A quota caps and guarantees '
    'nothing: it shows what the promise is worth.',
    (
        frame.Paper(
            'deadline_abs_error_p99',
            'HPL-2007-25 (SEDF, capped)',
            '0.03 % of 1 s windows beyond 9.9 %, none beyond 9.52 % the '
            'other way',
            'one VM alone, promises of 1 to 90 %, Dom0 beside it',
        ),
        frame.Paper(
            'cfs_got_mean',
            'HPL-2007-25 (Credit, capped)',
            '10 % of 1 s windows beyond 9.9 %, errors of -100 to 370 %',
            'one VM alone: no contention at all',
        ),
    ),
    {
        'deadline_got_mean': 'CPUs got, promised 0.6, backend deadline',
        'deadline_abs_error_p99': '99th percentile of \\|got - promised\\| / '
        'promised',
        'cfs_got_mean': 'CPUs got under a quota of 0.6',
        'patched_got_mean': 'CPUs got, promise changed to 0.3',
        'patched_settle_s': 'seconds from the change to the new share',
    },
    targets=(
        frame.within('deadline_got_mean', 0.6, 0.012, 'CPUs', 'issue 2'),
        frame.at_most('deadline_abs_error_p99', 0.05, '', 'issue 2'),
        frame.within('patched_got_mean', 0.3, 0.006, 'CPUs', 'issue 2'),
        frame.at_most('patched_settle_s', 3, 's', 'issue 2'),
    ),
    exercises=('tools/guest',),
)

GUEST = os.environ.get('VSCHED_GUEST_DIR', '/var/cache/vsched/guest')


def run(quick: bool) -> frame.Run:
    """Let the quick start tell its summary."""
    tools = frame.ROOT / 'tools'
    try:
        subprocess.run(
            [tools / 'guest' / 'build.sh', '--output', GUEST],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        virt_type = subprocess.run(
            [tools / 'kvm-probe.sh', '--guest-dir', GUEST],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
    except subprocess.CalledProcessError as error:
        raise frame.Unavailable('no guest: %s' % error) from error
    with (
        frame.alone(),
        tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder,
    ):
        path = pathlib.Path(folder, 'summary.json')
        done = subprocess.run(
            [
                sys.executable,
                '-m',
                'vsched_standalone.cmd.quickstart',
                '--guest-dir',
                GUEST,
                '--virt-type',
                virt_type,
                '--seconds',
                '45' if quick else '150',
                '--json',
                path,
            ],
            cwd=frame.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode or not path.exists():
            raise frame.Unavailable(
                'the quick start failed (%d): %s'
                % (done.returncode, done.stdout[-2000:])
            )
        summary = json.loads(path.read_text(encoding='utf-8'))
    for name, phase in summary['phases'].items():
        yield frame.Variant(
            name,
            {
                **phase,
                'virt_type': summary['virt_type'],
                'vms': summary['vms'],
            },
        )
    return {name: float(number) for name, number in summary['metrics'].items()}


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Promised and got, side by side."""
    axes = figure.add_subplot()
    names = list(record.variants)
    places = range(len(names))
    axes.bar(
        [place - 0.2 for place in places],
        [record.variants[name]['promised'] for name in names],
        0.4,
        label='promised',
        color='lightgrey',
    )
    axes.bar(
        [place + 0.2 for place in places],
        [record.variants[name]['got_mean'] for name in names],
        0.4,
        label='got (mean)',
        color='tab:blue',
    )
    axes.set_xticks(list(places), names)
    axes.set_ylabel('CPUs')
    axes.legend()
