# SPDX-License-Identifier: Apache-2.0

"""What periods that the agent divides do to response times."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import statistics
import typing as ty

from benchmarks import charging_rig
from benchmarks import frame
from benchmarks import needs
from benchmarks import request_rig
from benchmarks import scheduling

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

#: The VM that answers, and each of the others, in every 20 ms.
RUNTIME_US = 6_000
HOGS, HOG_US = 5, 4_400
#: What the guest's program computes for an answer. Receiving and sending take
#: the vCPU of an emulated guest about 1 ms as well: it works for a bit more
#: than the 1 ms of the target.
WORK_US = 100
REQUESTS, QUICK_REQUESTS = 400, 150
REPEATS, QUICK_REPEATS = 5, 1
#: Requests before those that count, about 16 s of them: the agent goes by
#: the longest request of 10 s, and an interval before the first one counts.
WARM_UP, SEED = 700, 19
#: For how long divisions may not change before requests count, in seconds.
STEADY_S, PATIENCE_S = 2.0, 30.0

UNLOADED, DEFAULT, QUOTA, FIXED, SHAPED = VARIANTS = (
    'unloaded',
    'default',
    'quota',
    'fixed',
    'shaped',
)
_WAYS = {
    UNLOADED: scheduling.Way.DEFAULT,
    DEFAULT: scheduling.Way.DEFAULT,
    QUOTA: scheduling.Way.QUOTA,
    FIXED: scheduling.Way.FIXED,
    SHAPED: scheduling.Way.SHAPED,
}

ABOUT = frame.About(
    'Response times of a VM among VMs that compute',
    'A VM with one vCPU answers requests over the network; for each its vCPU '
    'works for 1 to 1.5 ms (``vcpu_ms``). Five VMs of one vCPU burn all '
    'the CPU time that they get, on two CPUs. Nothing of the agent is '
    'replaced. ``unloaded``: the five are stopped, no VM has a reservation. '
    '``default``: they burn. ``quota``: every VM has a cgroup quota, 6 ms '
    'and 4.4 ms in every 20 ms. ``fixed``: the same as reservations of the '
    'backend ``deadline`` with ``comm_aware`` off. ``shaped``: with '
    '``comm_aware`` on; the agent decides by itself which periods it '
    'divides. I/O threads are treated as by default.\n\n'
    'All variants come in each repeat, in a shuffled order and with the same '
    'times of requests. A time is taken at the network device of the VM, '
    'from the moment at which the kernel passes the request to it until the '
    "answer comes out of it. The client's own figures (``client_``) are of a "
    'process in a network namespace of its own, which has a reservation of '
    '1 ms in every 10 ms in all variants, so that it hardly waits for a '
    'CPU.\n\n'
    'Ratios are taken within a repeat; the median counts.',
    (
        frame.Paper(
            'p99_vs_fixed',
            'Govindan et al., figure 8',
            '2300 ms to 25 ms (0.011)',
            '95th percentile of the transmission time of a streaming server '
            'under Xen, default scheduler of Xen to communication-aware',
        ),
        frame.Paper(
            'switches_cut_pct',
            'Govindan et al.',
            '33 %',
            'context switches of Xen between domains; here all of the host',
        ),
    ),
    {
        'p99_vs_unloaded': '99th percentile of the time to an answer with '
        'divided periods over that of the unloaded VM',
        'p99_vs_fixed': 'the same over that with the undivided period',
        'unloaded_vs_fixed': 'that of the unloaded VM over that with the '
        'undivided period: ``p99_vs_fixed`` of a VM that waits for nothing',
        'p99_vs_default': 'the same over that without reservations',
        'p99_vs_quota': 'the same over that with quotas',
        'hog_share_change_pct': "largest change of any other VM's CPU time "
        'between undivided and divided periods, percent of it',
        'client_p99_vs_unloaded': 'as ``p99_vs_unloaded``, as the client saw '
        'it',
        'client_p99_vs_fixed': 'as ``p99_vs_fixed``, as the client saw it',
        'late_shaped': 'answers that took more than 20 ms with divided '
        'periods, of all repeats',
        'late_fixed': 'the same with undivided periods',
        'switches_cut_pct': 'how much fewer context switches a second with '
        'divided periods than with undivided ones, percent; negative: more',
    },
    targets=(
        frame.at_most('p99_vs_unloaded', 1.2, '', 'issue 19'),
        frame.at_most('p99_vs_fixed', 0.25, '', 'issue 19'),
        frame.at_most('hog_share_change_pct', 1, '%', 'issue 19'),
    ),
    exercises=('tools/guest',),
)


def run(quick: bool) -> frame.Run:
    """All variants in each repeat, in a new order each time."""
    needs.two_cpus()
    needs.guests()
    repeats = QUICK_REPEATS if quick else REPEATS
    requests = QUICK_REQUESTS if quick else REQUESTS
    found: dict[str, list[dict[str, ty.Any]]] = {name: [] for name in VARIANTS}
    with contextlib.ExitStack() as stack:
        hogs = stack.enter_context(scheduling.HogVms(HOGS))
        rig = stack.enter_context(request_rig.Rig(WORK_US))
        stack.enter_context(scheduling.agent(rig.reserved_mcpu()))
        scheduler = scheduling.Scheduler(
            [
                scheduling.Member(rig.vm, RUNTIME_US),
                *(scheduling.Member(one, HOG_US, False) for one in hogs.vms),
            ]
        )
        for repeat, name in scheduling.rounds(VARIANTS, repeats, SEED):
            scheduler.change(_WAYS[name])
            if name == UNLOADED:
                hogs.stop()
            try:
                found[name].append(
                    _measure(rig, scheduler, hogs.tids, requests, repeat)
                )
            finally:
                hogs.go()
    for name, repeated in found.items():
        yield frame.Variant(name, scheduling.figures_of(repeated))
    return metrics(found)


def _measure(
    rig: request_rig.Rig,
    scheduler: scheduling.Scheduler,
    hogs: Sequence[int],
    requests: int,
    repeat: int,
) -> dict[str, ty.Any]:
    rig.measure(WARM_UP, SEED + repeat)
    scheduler.await_steady(lambda: rig.measure(20, SEED), STEADY_S, PATIENCE_S)
    divisions = scheduler.divisions()
    before = charging_rig.clocks(rig.vm)
    measured = rig.measure(requests, repeat, hogs)
    after = charging_rig.clocks(rig.vm)
    return {
        **measured.figures(),
        'vcpu_ms': (after[1] - before[1]) / 1e6 / requests,
        'hog_shares': [round(one, 4) for one in measured.hog_shares],
        'divisions': [divisions, scheduler.divisions()],
    }


def metrics(
    found: Mapping[str, Sequence[Mapping[str, ty.Any]]],
) -> dict[str, float]:
    """Return the headline numbers.

    :param found: figures of each repeat, by variant
    """

    def ratio(figure: str, reference: str, name: str = SHAPED) -> float:
        return round(
            statistics.median(
                scheduling.ratios(found, figure, name, reference)
            ),
            4,
        )

    return {
        'p99_vs_unloaded': ratio('p99_ms', UNLOADED),
        'p99_vs_fixed': ratio('p99_ms', FIXED),
        'unloaded_vs_fixed': ratio('p99_ms', FIXED, UNLOADED),
        'p99_vs_default': ratio('p99_ms', DEFAULT),
        'p99_vs_quota': ratio('p99_ms', QUOTA),
        'hog_share_change_pct': scheduling.hog_share_change_pct(
            found[FIXED], found[SHAPED]
        ),
        'client_p99_vs_unloaded': ratio('client_p99_ms', UNLOADED),
        'client_p99_vs_fixed': ratio('client_p99_ms', FIXED),
        'late_shaped': sum(one['late'] for one in found[SHAPED]),
        'late_fixed': sum(one['late'] for one in found[FIXED]),
        'switches_cut_pct': scheduling.cut_pct(
            scheduling.ratios(found, 'switches_per_s', SHAPED, FIXED)
        ),
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The percentiles of each variant."""
    axes = figure.add_subplot()
    for place, name in enumerate(('mean_ms', 'p95_ms', 'p99_ms', 'max_ms')):
        spread = [record.variants[variant][name] for variant in VARIANTS]
        axes.bar(
            [number + place * 0.2 for number in range(len(VARIANTS))],
            [one['median'] for one in spread],
            0.18,
            yerr=[
                [one['median'] - one['least'] for one in spread],
                [one['most'] - one['median'] for one in spread],
            ],
            label=name.removesuffix('_ms'),
        )
    axes.set_xticks(
        [number + 0.3 for number in range(len(VARIANTS))], VARIANTS
    )
    axes.set_yscale('log')
    axes.set_ylabel('time to an answer, ms')
    axes.legend()
