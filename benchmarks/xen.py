# SPDX-License-Identifier: Apache-2.0

"""On a host with Xen: what reservations give, and the lane of its tests."""

from collections.abc import Mapping
import typing as ty

from benchmarks import frame
from benchmarks import lab
from benchmarks import xen_inside

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

SCHEDULERS = ('rtds', 'credit2')

ABOUT = frame.About(
    'Reservations on a host with Xen',
    'The lab node (:doc:`/contributor/lab`) runs in software emulation, and '
    'its time goes by the number of emulated instructions (``--steady``), so '
    'that no other work on this machine takes CPU time from it. A guest whose '
    'vCPUs are busy is promised 10, 30 and 60 % of a CPU for each vCPU, by '
    'backend ``rtds`` or ``credit2`` with a cap, beside a guest that is busy '
    'on all CPUs. What it gets is the CPU time of its vCPUs that Xen counts, '
    'by the clock of Xen. The error of a scheduler is the greatest difference '
    'between the mean share and what was promised, relative to the latter.\n\n'
    'A guest with four vCPUs gives three back and takes them again, by '
    'libvirt, until its kernel has done so. This is measured without '
    '``--steady``. Nothing of vsched decides about it: the agent does not '
    'balloon Xen guests yet.\n\n'
    'The lane is ``tools/test.sh --xen``: tests with each of the three '
    'schedulers, the starts of their nodes included.',
    units={
        'rtds_error_pct': 'greatest error of the mean share with RTDS, % of '
        'what was promised',
        'credit2_error_pct': 'the same with Credit2',
        'balloon_s': 'mean seconds that a guest takes to give three of four '
        'vCPUs back, or to take them, the slower of PV and PVH',
        'lane_minutes': 'minutes that the tests of Xen take',
        'suites_passed': 'part of the tests of Xen that passed',
    },
    targets=(
        frame.at_most('rtds_error_pct', 2, '%', 'issue 21'),
        frame.at_most('credit2_error_pct', 2, '%', 'issue 21'),
        frame.at_most('lane_minutes', 15, 'min', 'issue 21'),
        frame.at_least('suites_passed', 1, '', 'issue 21'),
    ),
    exercises=(
        'tools/lab',
        'tools/lab.sh',
        'tools/test.sh',
        'vsched_agent/enforcement/xen',
        'vsched_agent/privileged',
        'vsched_agent/tests/functional/xen',
        'vsched_agent/tests/functional/xen_weights',
    ),
)


def run(quick: bool) -> frame.Run:
    """Measure with both schedulers, then run the tests of all."""
    metrics = {}
    with frame.alone():
        for name in SCHEDULERS:
            found = _inside(name, 'shares', 10 if quick else 60, steady=True)
            yield frame.Variant(name, found)
            metrics[name + '_error_pct'] = error_pct(found)
        found = _inside('rtds', 'balloon', 1 if quick else 10, steady=False)
        yield frame.Variant('balloon', found)
        metrics['balloon_s'] = max(found['pv_s'], found['pvh_s'])
        lane = lab.lane('--xen')
        yield frame.Variant('lane', lane)
    metrics['lane_minutes'] = lane['seconds'] / 60
    metrics['suites_passed'] = lane['passed'] / max(
        1, lane['passed'] + lane['failed']
    )
    return metrics


def error_pct(found: Mapping[str, float]) -> float:
    """Return the greatest error of a share, in percent of what was promised.

    :param found: what ``benchmarks.xen_inside`` has found.
    """
    return max(
        100 * abs(found[xen_inside.key(vcpus, pct)] - pct) / pct
        for vcpus, promised_pct in xen_inside.PROMISED_PCT.items()
        for pct in promised_pct
    )


def _inside(
    scheduler: str, what: str, number: int, steady: bool
) -> dict[str, float]:
    """Measure in a node with one scheduler."""
    return lab.inside(
        'xen',
        ('--scheduler', scheduler, *(['--steady'] if steady else [])),
        'benchmarks.xen_inside',
        what,
        number,
    )


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The shares that vCPUs got, by what they were promised."""
    for place, scheduler in enumerate(SCHEDULERS):
        axes = figure.add_subplot(1, 2, place + 1)
        found = record.variants[scheduler]
        for vcpus, promised_pct in xen_inside.PROMISED_PCT.items():
            axes.errorbar(
                promised_pct,
                [found[xen_inside.key(vcpus, pct)] for pct in promised_pct],
                [
                    found[xen_inside.key(vcpus, pct) + '_sd']
                    for pct in promised_pct
                ],
                marker='o',
                label='%d vCPUs' % vcpus,
            )
        axes.plot([0, 60], [0, 60], linestyle=':', label='promised')
        axes.set_title(scheduler + ', % of a CPU for each vCPU')
        axes.legend()
