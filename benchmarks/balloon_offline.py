# SPDX-License-Identifier: Apache-2.0

"""How long busy guests take to do without vCPUs."""

from collections.abc import Mapping
from collections.abc import Sequence
from concurrent import futures
import itertools
import statistics
import tempfile
import time
import typing as ty

from benchmarks import balloon
from benchmarks import frame
from benchmarks import needs
from vsched_agent.ballooning import preemption
from vsched_agent.conf import ballooning
from vsched_agent.hypervisor.libvirt import guest_agent
from vsched_agent.hypervisor import vcpu_channel as channels
from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_guests

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

VCPUS = 4
#: The option's default.
TURN_US = int(
    {one.name: one.default for one in ballooning.ballooning_opts}['turn_us']
)

ABOUT = frame.About(
    'Taking vCPUs offline',
    'Two emulated VMs of four vCPUs each work on two CPUs, all threads busy, '
    "one kind of work after the other as in ``balloon``. By the agent's own "
    'way to its guests one of them, or both at the same time, are left with '
    'one vCPU, from the question which they use to the answer that it is one; '
    'then they get the others back. In turns, the threads on their CPUs take '
    "turns at the kernel's tick meanwhile, and each %d µs." % TURN_US,
    (frame.Paper('one_s', 'FlexCore', '3.5 s for 6 vCPUs'),),
    {
        'one_s': 'seconds for one guest, median over all kinds of work',
        'two_s': 'seconds for each of two guests at the same time',
        'two_to_one': 'the latter over the former',
        'one_at_the_tick_s': 'the first without shorter turns',
        'two_at_the_tick_s': 'the second without shorter turns',
    },
    targets=(
        frame.at_most('one_s', 0.5, 's', 'issue 6'),
        frame.at_most('two_to_one', 1, '', 'issue 6'),
    ),
    exercises=('tools/guest',),
)

_ENDLESS = 1_000_000_000
_THREADS = 4
_ANSWER_S = 30.0
_WARM_S = 3.0
_REST_S = 0.5

#: How long turns are (0: to the tick) and guests at a time.
_CASES = tuple(itertools.product((0, TURN_US), (1, 2)))
#: Seconds, by kind of work and case.
Found = dict[tuple[str, int, int], list[float]]


def run(quick: bool) -> frame.Run:
    """All of it for one kind of work after the other."""
    needs.two_cpus()
    needs.guests()
    found: Found = {}
    channel = guest_agent.GuestAgentChannel(fixtures.URI)
    with frame.alone(), tempfile.TemporaryDirectory() as folder:
        guests = [
            agent_guests.Vm(folder, vcpus=VCPUS, memory_mib=192)
            for _ in range(2)
        ]
        channel.start()
        try:
            agent_guests.start_all(guests)
            agent_guests.require_clock_source(guests)
            ways = {
                turn_us: preemption.ForcedPreemption(turn_us)
                for turn_us in (0, TURN_US)
            }
            ways[TURN_US].prepare()
            for kind in balloon.KINDS:
                _work(guests, kind)
                for turn_us, count in _CASES * (2 if quick else 8):
                    found.setdefault((kind, turn_us, count), []).extend(
                        _take(channel, ways[turn_us], guests[:count])
                    )
                _rest(guests)
        finally:
            channel.stop()
            agent_guests.stop_all(guests)
    for kind in balloon.KINDS:
        yield frame.Variant(
            kind,
            {
                _name(*case): [round(one, 3) for one in found[kind, *case]]
                for case in _CASES
            },
        )
    return _metrics(found)


def _name(turn_us: int, count: int) -> str:
    return '%s%s_s' % (
        ('one', 'two')[count - 1],
        '' if turn_us else '_at_the_tick',
    )


def _metrics(
    found: Mapping[tuple[str, int, int], Sequence[float]],
) -> dict[str, float]:
    metrics = {
        _name(*case): statistics.median(
            took_s for kind in balloon.KINDS for took_s in found[kind, *case]
        )
        for case in _CASES
    }
    metrics['two_to_one'] = metrics['two_s'] / metrics['one_s']
    return {name: round(value, 3) for name, value in metrics.items()}


def _work(guests: Sequence[agent_guests.Vm], kind: str) -> None:
    for one in guests:
        one.execute(
            '/bin/sh',
            '-c',
            'exec vsched-work %s %d %d >/dev/null '
            '2>&1' % (kind, _THREADS, _ENDLESS),
        )
    agent_guests.pause(_WARM_S)


def _rest(guests: Sequence[agent_guests.Vm]) -> None:
    for one in guests:
        one.execute('/bin/sh', '-c', 'killall vsched-work')
    agent_guests.pause(_REST_S)


def _take(
    channel: channels.VcpuChannel,
    how: preemption.ForcedPreemption,
    guests: Sequence[agent_guests.Vm],
) -> list[float]:
    """Leave guests with one vCPU at the same time, and undo that.

    :returns: seconds for each.
    """
    tids = {one.uuid: one.vcpu_tids for one in guests}

    def shrink(one: agent_guests.Vm) -> float:
        began_s = time.monotonic()
        seen = channel.get_vcpus(one.uuid, _ANSWER_S)
        if len(seen.online) != VCPUS:
            raise RuntimeError('a guest uses %s' % sorted(seen.online))
        with how.enabled(tids[one.uuid], _ANSWER_S):
            channel.set_online(one.uuid, frozenset({0}), _ANSWER_S, seen)
        return time.monotonic() - began_s

    def grow(one: agent_guests.Vm) -> None:
        channel.set_online(one.uuid, frozenset(range(VCPUS)), _ANSWER_S)

    with futures.ThreadPoolExecutor(len(guests)) as pool:
        took_s = list(pool.map(shrink, guests))
        list(pool.map(grow, guests))
    agent_guests.pause(_REST_S)
    return took_s


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """Each guest's time, by kind of work."""
    axes = figure.add_subplot()
    width = 0.8 / len(_CASES)
    for place, case in enumerate(_CASES):
        name = _name(*case)
        axes.bar(
            [number + place * width for number in range(len(record.variants))],
            [
                statistics.median(found[name])
                for found in record.variants.values()
            ],
            width=width * 0.9,
            label=name,
        )
    axes.set_xticks(
        [number + 1.5 * width for number in range(len(record.variants))],
        list(record.variants),
    )
    axes.axhline(0.5, color='grey', linestyle='--', linewidth=0.5)
    axes.set_ylabel('s, median')
    axes.legend()
