# SPDX-License-Identifier: Apache-2.0

"""On a node as operators have it: systemd, cgroup v2, vhost and KVM."""

import typing as ty

from benchmarks import frame
from benchmarks import lab

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

#: By the end of a metric's name, the beginning of the kernel's release.
KERNELS = {'612': '6.12', '61': '6.1'}
#: Seconds for which accounts are compared, and all else lasts.
LOAD_S = {'612': 3600, '61': 600}
_SECONDS, _QUICK_S = 120, 15

ABOUT = frame.About(
    'Reservations on a node with systemd, cgroup v2 and KVM',
    'The lab node (:doc:`/contributor/lab`) runs in software emulation, with '
    'nested KVM and two CPUs. A guest is promised 60 % of a CPU by backend '
    '``deadline``, beside two busy guests, one of which sends packets by '
    'vhost. Its share is counted by the host, and its steal time is read '
    'inside of it. The accounts of all guests, and of all that is busy, are '
    'compared with the CPU time of their control groups, for an hour with '
    'Linux 6.12 and ten minutes with 6.1 (``load_s``): the guest that sends '
    'also reads a disk, and the other busy one is suspended every five '
    'seconds, so that a part of the time is idle (``idle_pct``). '
    'Idle time and all accounts add up to CPUs times time by construction, '
    'hence the comparison; the group of guests counts the run time of '
    'threads, the root group by ticks.\n\n'
    'A guest with two vCPUs whose kernel interrupts both all the time runs '
    'alone and beside a guest with two busy vCPUs; KVM counts how often it '
    'asks for a directed yield. KVM counts no pause-loop exits, and the '
    'emulated CPU has none.\n\n'
    'A thread with 1 ms '
    'in 20 ms is watched in '
    'windows of one second, with budgets that expire at the tick and by a '
    'timer (``HRTICK_DL``). The gaps are the greater of both kernels; the '
    'errors at small shares are those of Linux 6.12.\n\n'
    'The lane is ``tools/test.sh --node``: tests in the node, its start '
    'included.',
    units={
        'share_kvm_612': 'CPUs got, promised 0.6, Linux 6.12',
        'share_kvm_61': 'CPUs got, promised 0.6, Linux 6.1',
        'steal_gap_pct': "difference between the guest's steal time and "
        "what it did not get by the host's account, % of the time",
        'conservation_gap_pct': 'difference between the accounts and the '
        'CPU time of control groups, % of CPUs times time',
        'yields_alone': 'directed yields per time slice of a vCPU, alone',
        'yields_contended': 'the same beside as many busy vCPUs as CPUs',
        'tick_p99_pct': '99th percentile of the error of a share of 5 %, '
        'budgets expire at the tick',
        'hrtick_p99_pct': '99th percentile of the error of a share of 5 %, '
        'budgets expire by a timer',
        'lane_minutes': "minutes that the node's tests take",
        'suites_passed': "part of the node's tests that passed",
    },
    targets=(
        frame.within('share_kvm_612', 0.6, 0.012, 'CPUs', 'issue 18'),
        frame.within('share_kvm_61', 0.6, 0.012, 'CPUs', 'issue 18'),
        frame.at_most('steal_gap_pct', 2, '%', 'issue 18'),
        frame.at_most('conservation_gap_pct', 1, '%', 'issue 18'),
        frame.at_most('lane_minutes', 15, 'min', 'issue 18'),
        frame.at_least('suites_passed', 1, '', 'issue 18'),
    ),
    exercises=(
        'tools/lab',
        'tools/lab.sh',
        'tools/test.sh',
        'vsched_agent/enforcement',
        'vsched_agent/host',
        'vsched_agent/privileged',
        'vsched_agent/tests/functional/node',
    ),
)


def run(quick: bool) -> frame.Run:
    """Measure in both nodes, then run the tests of the default one."""
    found = {}
    with frame.alone():
        for name, release in KERNELS.items():
            found[name] = _inside(
                release,
                _QUICK_S if quick else _SECONDS,
                _QUICK_S if quick else LOAD_S[name],
            )
            yield frame.Variant('linux-' + release, found[name])
        lane = lab.lane('--node')
        yield frame.Variant('lane', lane)
    metrics = {
        'share_kvm_' + name: figures['share']
        for name, figures in found.items()
    }
    for name in ('steal_gap_pct', 'conservation_gap_pct'):
        metrics[name] = max(figures[name] for figures in found.values())
    metrics['yields_alone'] = max(
        figures['yields_alone'] for figures in found.values()
    )
    metrics['yields_contended'] = min(
        figures['yields_contended'] for figures in found.values()
    )
    for name in ('tick_p99_pct', 'hrtick_p99_pct'):
        metrics[name] = found['612'][name]
    metrics['lane_minutes'] = lane['seconds'] / 60
    metrics['suites_passed'] = lane['passed'] / max(
        1, lane['passed'] + lane['failed']
    )
    return metrics


def _inside(release: str, seconds: int, load_s: int) -> dict[str, float]:
    """Measure in a node with one kernel.

    :param seconds: what each measurement lasts.
    :param load_s: the same of the comparison of accounts.
    """
    return lab.inside(
        'kvm', ('--kernel', release), 'benchmarks.node_inside', seconds, load_s
    )


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The share and the error at a small one, by kernel."""
    names = [name for name in record.variants if name != 'lane']
    for place, (metrics, title) in enumerate(
        (
            (('share', 'steal'), 'of one CPU, promised 0.6'),
            (('tick_p99_pct', 'hrtick_p99_pct'), 'p99 error at 5 %, in %'),
        )
    ):
        axes = figure.add_subplot(1, 2, place + 1)
        for index, metric in enumerate(metrics):
            axes.bar(
                [at + 0.4 * index for at in range(len(names))],
                [record.variants[name][metric] for name in names],
                0.4,
                label=metric,
            )
        axes.set_xticks([at + 0.2 for at in range(len(names))], names)
        axes.set_title(title)
        axes.legend()
