# SPDX-License-Identifier: Apache-2.0

"""An application of two VMs among VMs that compute."""

from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import statistics
import typing as ty

from benchmarks import charging_rig
from benchmarks import frame
from benchmarks import http_client
from benchmarks import http_rig
from benchmarks import needs
from benchmarks import request_rig
from benchmarks import scheduling

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

#: The front VM, the database VM and each of the others, in every 20 ms. They
#: leave capacity unclaimed for the I/O threads of all seven.
FRONT_US, DATABASE_US = 9_600, 6_400
HOGS, HOG_US = 5, 2_400
#: The classes of requests, as tools/guest/servers/shop.c answers them.
CLASSES = ('home', 'product', 'search', 'best', 'order')
#: Requests at a time, and their users' pauses, in seconds.
SESSIONS, PAUSE_S = 3, (0.05, 0.15)
ITEMS = 40
REQUESTS, QUICK_REQUESTS = 500, 120
REPEATS, QUICK_REPEATS = 5, 1
#: Requests before those that count, about 16 s of them: the agent goes by
#: the longest request of 10 s, and an interval before the first one counts.
WARM_UP, SEED = 400, 21
STEADY_S, PATIENCE_S = 2.0, 20.0

UNLOADED, DEFAULT, FIXED, IO_ONLY, VCPU_ONLY, SHAPED = VARIANTS = (
    'unloaded',
    'default',
    'fixed',
    'io_only',
    'vcpu_only',
    'shaped',
)
_WAYS = {
    UNLOADED: scheduling.Way.DEFAULT,
    DEFAULT: scheduling.Way.DEFAULT,
    FIXED: scheduling.Way.FIXED,
    IO_ONLY: scheduling.Way.SHAPED,
    VCPU_ONLY: scheduling.Way.SHAPED,
    SHAPED: scheduling.Way.SHAPED,
}

ABOUT = frame.About(
    'An application of two VMs among VMs that compute',
    'A front VM has an HTTP server (lighttpd) and an application behind it; '
    'each page takes one to three statements to an SQL database (SQLite, '
    'served over TCP) in another VM of the host. Five VMs of one vCPU burn '
    'all the CPU time that they get, on two CPUs. Three users ask for pages '
    'of five classes at random, with pauses. ``unloaded``: the five are '
    'stopped, no VM has a reservation. ``default``: they burn. ``fixed``: '
    'all VMs have reservations of the backend ``deadline``, 9.6 ms, 6.4 ms '
    'and 2.4 ms in every 20 ms, with ``comm_aware`` off. ``shaped``: with '
    '``comm_aware`` on; the agent decides which periods it divides. '
    '``io_only`` and ``vcpu_only``: the same after the agent has been '
    'stopped, and the periods of the vCPUs or of the I/O threads have been '
    'put back: what the paper called only Domain0 and only anticipation. '
    'I/O threads are treated as by default.\n\n'
    'Times are those of the client, a process in a network namespace of its '
    'own with a reservation of 1 ms in every 10 ms in all variants, from '
    'the request to the last byte of the page. All variants come in each '
    'repeat, in a shuffled order, with the same users. Cuts are taken within '
    'a repeat; the median counts.',
    (
        frame.Paper(
            'mean_cut_pct',
            'Govindan et al., figure 7',
            '20 to 35 %',
            'TPC-W under Xen, default scheduler to communication-aware',
        ),
        frame.Paper(
            'worst_cut_pct', 'Govindan et al., figure 7', 'about 50 %'
        ),
        frame.Paper(
            'switches_cut_pct',
            'Govindan et al.',
            '33 %',
            'context switches of Xen between domains; here all of the host',
        ),
        frame.Paper(
            'io_only_mean_cut_pct',
            'Govindan et al., table 1',
            '14.5 minutes to the first gap, 17 with both',
            'only Domain0; a streaming server',
        ),
        frame.Paper(
            'vcpu_only_mean_cut_pct',
            'Govindan et al., table 1',
            '4 minutes to the first gap, 17 with both',
            'only anticipation; a streaming server',
        ),
    ),
    {
        'mean_cut_pct': 'by how much the mean response is shorter with '
        'divided periods than with undivided ones, percent',
        'worst_cut_pct': 'the same of the longest response',
        'least_class_cut_pct': 'the same of the mean of the class of '
        'requests that gains least',
        'io_only_mean_cut_pct': 'the mean, if only the periods of I/O '
        'threads are divided',
        'io_only_worst_cut_pct': 'the longest response then',
        'vcpu_only_mean_cut_pct': 'the mean, if only the periods of vCPUs '
        'are divided',
        'vcpu_only_worst_cut_pct': 'the longest response then',
        'mean_vs_default_pct': 'by how much the mean response is shorter '
        'with divided periods than without reservations, percent',
        'mean_vs_unloaded': 'mean response with divided periods over that of '
        'the unloaded VMs',
        'hog_share_change_pct': "largest change of any other VM's CPU time "
        'between undivided and divided periods, percent of it',
        'switches_cut_pct': 'how much fewer context switches a second with '
        'divided periods than with undivided ones, percent; negative: more',
    },
    targets=(
        frame.at_least('mean_cut_pct', 35, '%', 'issue 19'),
        frame.at_least('worst_cut_pct', 50, '%', 'issue 19'),
    ),
    exercises=('tools/guest',),
)

#: Each class with some items.
PATHS = tuple(
    '/shop/%s?%d' % (name, 7 * item)
    for item in range(ITEMS)
    for name in CLASSES
)


def run(quick: bool) -> frame.Run:
    """All variants in each repeat, in a new order each time."""
    needs.two_cpus()
    needs.servers()
    repeats = QUICK_REPEATS if quick else REPEATS
    requests = QUICK_REQUESTS if quick else REQUESTS
    found: dict[str, list[dict[str, ty.Any]]] = {name: [] for name in VARIANTS}
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        hogs = enter(scheduling.HogVms(HOGS))
        # Booting takes time among hogs that nothing limits.
        hogs.stop()
        bridge = enter(charging_rig.bridge())
        database = enter(
            http_rig.server(bridge, http_rig.SECOND, ('database',))
        )
        front = enter(
            http_rig.server(bridge, http_rig.FIRST, ('shop', http_rig.SECOND))
        )
        client = enter(http_rig.Client(bridge))
        client.await_page(http_rig.FIRST, PATHS[0])
        hogs.go()
        # It is stopped at times, and what it applied has to stay then.
        agent = enter(
            scheduling.agent(
                request_rig.Rig.reserved_mcpu(), restore_on_stop=False
            )
        )
        scheduler = scheduling.Scheduler(
            [
                scheduling.Member(front, FRONT_US),
                scheduling.Member(database, DATABASE_US),
                *(scheduling.Member(one, HOG_US, False) for one in hogs.vms),
            ]
        )
        for repeat, name in scheduling.rounds(VARIANTS, repeats, SEED):
            scheduler.change(_WAYS[name])
            with contextlib.ExitStack() as meanwhile:
                if name == UNLOADED:
                    hogs.stop()
                    meanwhile.callback(hogs.go)
                _warm_up(client, scheduler, repeat)
                if name in (IO_ONLY, VCPU_ONLY):
                    meanwhile.enter_context(scheduling.stopped(agent))
                    scheduler.undivide(vcpus=name == IO_ONLY)
                found[name].append(
                    _measure(client, scheduler, hogs.tids, requests, repeat)
                )
    for name, repeated in found.items():
        yield frame.Variant(name, scheduling.figures_of(repeated))
    return metrics(found)


def _task(requests: int, seed: int) -> http_client.Task:
    return http_client.Task(
        http_rig.FIRST,
        PATHS,
        requests,
        sessions=SESSIONS,
        pause_s=PAUSE_S,
        seed=seed,
    )


def _warm_up(
    client: http_rig.Client, scheduler: scheduling.Scheduler, repeat: int
) -> None:
    client.run(_task(WARM_UP, SEED + repeat))
    scheduler.await_steady(
        lambda: client.run(_task(SESSIONS, SEED)), STEADY_S, PATIENCE_S
    )


def _measure(
    client: http_rig.Client,
    scheduler: scheduling.Scheduler,
    hogs: Sequence[int],
    requests: int,
    repeat: int,
) -> dict[str, ty.Any]:
    divisions = scheduler.divisions()
    watch = scheduling.HostWatch(hogs)
    answers = client.run(_task(requests, repeat))
    seen = watch.read()
    return {
        **times(answers),
        'switches_per_s': round(seen.switches_per_s, 1),
        'hog_share': statistics.mean(seen.shares),
        'hog_shares': [round(one, 4) for one in seen.shares],
        'divisions': [divisions, scheduler.divisions()],
    }


def times(answers: Sequence[http_rig.Answer]) -> dict[str, float]:
    """Return the figures of responses, of all and by class."""
    whole = [ms for _, ms, _ in answers]
    figures: dict[str, float] = {
        **{
            name: figure
            for name, figure in request_rig.times(whole).items()
            if name != 'lost'
        },
        'failed': sum(status != 200 for _, _, status in answers),
    }
    for place, name in enumerate(CLASSES):
        mine = [ms for path, ms, _ in answers if path % len(CLASSES) == place]
        if mine:
            figures[name + '_mean_ms'] = round(statistics.mean(mine), 3)
            figures[name + '_max_ms'] = round(max(mine), 3)
    return figures


def metrics(
    found: Mapping[str, Sequence[Mapping[str, ty.Any]]],
) -> dict[str, float]:
    """Return the headline numbers.

    :param found: figures of each repeat, by variant
    """

    def cut(figure: str, name: str = SHAPED, reference: str = FIXED) -> float:
        return scheduling.cut_pct(
            scheduling.ratios(found, figure, name, reference)
        )

    return {
        'mean_cut_pct': cut('mean_ms'),
        'worst_cut_pct': cut('max_ms'),
        'least_class_cut_pct': min(cut(name + '_mean_ms') for name in CLASSES),
        'io_only_mean_cut_pct': cut('mean_ms', IO_ONLY),
        'io_only_worst_cut_pct': cut('max_ms', IO_ONLY),
        'vcpu_only_mean_cut_pct': cut('mean_ms', VCPU_ONLY),
        'vcpu_only_worst_cut_pct': cut('max_ms', VCPU_ONLY),
        'mean_vs_default_pct': cut('mean_ms', reference=DEFAULT),
        'mean_vs_unloaded': round(
            statistics.median(
                scheduling.ratios(found, 'mean_ms', SHAPED, UNLOADED)
            ),
            3,
        ),
        'hog_share_change_pct': scheduling.hog_share_change_pct(
            found[FIXED], found[SHAPED]
        ),
        'switches_cut_pct': cut('switches_per_s'),
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The mean response of each class, by variant."""
    axes = figure.add_subplot()
    for place, name in enumerate(VARIANTS):
        spread = [record.variants[name][one + '_mean_ms'] for one in CLASSES]
        axes.bar(
            [number + place * 0.14 for number in range(len(CLASSES))],
            [one['median'] for one in spread],
            0.13,
            yerr=[
                [one['median'] - one['least'] for one in spread],
                [one['most'] - one['median'] for one in spread],
            ],
            label=name,
        )
    axes.set_xticks([number + 0.35 for number in range(len(CLASSES))], CLASSES)
    axes.set_ylabel('mean response, ms')
    axes.legend()
