# SPDX-License-Identifier: Apache-2.0

"""How much less instances slow each other down when placed by class."""

from collections.abc import Sequence
import dataclasses
import random
import statistics
import typing as ty
from unittest import mock
import uuid

from benchmarks import frame
from benchmarks import nova_hosts
from vsched_lib.model import interference

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'Placement by workload class, where slowdowns are drawn '
    'around our own prior',
    'Instances of five workload classes come one after the other, and now '
    'and then one goes, on simulated hosts until these are three quarters '
    'full. Each is placed by the real weighers of nova-scheduler on its real '
    "``HostState``: once with Nova's default weighers, once with "
    '``VschedInterferenceWeigher`` beside them, with its default '
    'multiplier.\n\n'
    'What neighbours really do to each other is drawn anew for each round '
    'and is not what the weigher takes it for: each cost that paper 002 '
    'found is between half and one and a half times the prior, and pairs '
    'that it did not look at, which the weigher takes for neutral, cost up '
    'to half as much as the dearest. From that follows how much every '
    'instance is slowed down by its neighbours.\n\n'
    '*Measured* is what the weigher would do if it knew: its estimates were '
    'given the slowdowns of the instances of the first round, each 10 % '
    'wrong. Slowdowns are simulated here in all variants.',
    (
        frame.Paper(
            'slowdown_cut_pct',
            'Xu et al., consolidations under Credit',
            'which pairs disturb each other',
            'curves, no figure to compare',
        ),
    ),
    {
        'slowdown_cut_pct': 'percent by which the mean slowdown is smaller '
        "than with Nova's weighers",
        'measured_cut_pct': 'the same once slowdowns were measured',
        'worst_tenth_cut_pct': 'the same of the tenth of the instances that '
        'suffer most',
    },
)

HOSTS = 24
VCPUS = 16
INSTANCES = HOSTS * VCPUS * 3 // 8
LEAVE = 0.25
_NOISE = 0.1


@dataclasses.dataclass
class _Instance:
    """One that runs."""

    uuid: str
    workload: str
    host: int


def run(quick: bool) -> frame.Run:
    """Rounds with costs of their own; all variants have the same."""
    nova_hosts.prepare()
    rounds: dict[str, list[list[float]]] = {
        'nova': [],
        'prior': [],
        'measured': [],
    }
    for seed in range(2 if quick else 20):
        truth = _truth(random.Random(seed))
        first = _place(seed, None)
        rounds['nova'].append(_slowdowns(first, truth))
        rounds['prior'].append(
            _slowdowns(_place(seed, interference.Interference()), truth)
        )
        rounds['measured'].append(
            _slowdowns(
                _place(seed, _learn(first, truth, random.Random(seed))), truth
            )
        )
    for name, found in rounds.items():
        yield frame.Variant(
            name,
            {
                'rounds': len(found),
                'mean_slowdown': round(
                    statistics.mean(map(statistics.mean, found)), 4
                ),
                'worst_tenth': round(statistics.mean(map(_worst, found)), 4),
                'mean_of_rounds': [
                    round(statistics.mean(one), 4) for one in found
                ],
                'slowdowns': [round(value, 3) for value in sorted(found[0])],
            },
        )
    return {
        'slowdown_cut_pct': _cut(rounds, 'prior', statistics.mean),
        'measured_cut_pct': _cut(rounds, 'measured', statistics.mean),
        'worst_tenth_cut_pct': _cut(rounds, 'prior', _worst),
    }


def _cut(
    rounds: dict[str, list[list[float]]],
    name: str,
    figure: ty.Callable[[list[float]], float],
) -> float:
    before = statistics.mean(map(figure, rounds['nova']))
    return round(
        100 * (1 - statistics.mean(map(figure, rounds[name])) / before), 1
    )


def _worst(slowdowns: list[float]) -> float:
    return statistics.mean(sorted(slowdowns)[-max(1, len(slowdowns) // 10) :])


def _truth(draw: random.Random) -> interference.Interference:
    return interference.Interference(
        {
            (victim, neighbour): interference.Estimate(
                draw.uniform(0.5, 1.5) * interference.PRIOR[victim, neighbour]
                if (victim, neighbour) in interference.PRIOR
                else draw.uniform(0.0, interference.MUCH / 2),
                1,
            )
            for victim in interference.CLASSES
            for neighbour in interference.CLASSES
        }
    )


def _counts(running: Sequence[_Instance], one: _Instance) -> dict[str, int]:
    found: dict[str, int] = {}
    for other in running:
        if other.host == one.host and other is not one:
            found[other.workload] = found.get(other.workload, 0) + 1
    return found


def _slowdowns(
    running: Sequence[_Instance], truth: interference.Interference
) -> list[float]:
    return [
        truth.slowdown(one.workload, _counts(running, one)) for one in running
    ]


def _learn(
    running: Sequence[_Instance],
    truth: interference.Interference,
    draw: random.Random,
) -> interference.Interference:
    known = interference.Interference()
    for _ in range(10):
        for one in running:
            neighbours = _counts(running, one)
            known = known.after(
                one.workload,
                neighbours,
                truth.slowdown(one.workload, neighbours)
                * draw.gauss(1.0, _NOISE),
            )
    return known


def _place(
    seed: int, known: interference.Interference | None
) -> list[_Instance]:
    """Let instances come and go.

    :param known: what our weigher knows; None without it.
    """
    from nova.conf import CONF
    from nova.scheduler import weights

    from nova_filters import cache
    from nova_filters import hosts
    from nova_filters import process
    from nova_filters import weighers

    CONF([], project='nova', default_config_files=[])
    handler = weights.HostWeightHandler()
    shared = mock.Mock()
    kinds = [
        kind()
        for kind in handler.get_matching_classes(
            ['nova.scheduler.weights.all_weighers']
        )
    ]
    if known is not None:
        kinds.append(weighers.VschedInterferenceWeigher())
        shared.known.return_value = cache.Known(
            hosts.NOTHING._replace(neighbours=known), 0.0
        )
    draw = random.Random(seed)
    states = nova_hosts.empty(HOSTS, VCPUS)
    running: list[_Instance] = []
    while len(running) < INSTANCES:
        workload = draw.choice(interference.CLASSES)
        spec = nova_hosts.small(workload)
        fitting = [state for state in states if state.vcpus_used < VCPUS]
        # As nova-scheduler does: among equals, any.
        draw.shuffle(fitting)
        with mock.patch.object(
            process, 'shared', autospec=True, return_value=shared
        ):
            chosen = handler.get_weighed_objects(kinds, fitting, spec)[0].obj
        one = _Instance(str(uuid.uuid4()), workload, states.index(chosen))
        chosen.consume_from_request(spec)
        # As when Nova hears of it, before the next request.
        chosen.instances[one.uuid] = nova_hosts.instance(one.uuid, workload)
        for state in states:
            # Nova makes them anew for each request.
            state.__dict__.pop('vsched_before', None)
        running.append(one)
        if draw.random() < LEAVE:
            gone = running.pop(draw.randrange(len(running)))
            nova_hosts.leave(states[gone.host], gone.uuid)
    return running


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """How many instances are slowed down by how much."""
    axes = figure.add_subplot()
    for name, label in (
        ('nova', "Nova's weighers"),
        ('prior', 'and ours'),
        ('measured', 'and ours, once it measured'),
    ):
        values = record.variants[name]['slowdowns']
        axes.step(
            [100 * value for value in values],
            [
                100 * (number + 1) / len(values)
                for number in range(len(values))
            ],
            label=label,
        )
    axes.set_xlabel('slowdown by neighbours, %')
    axes.set_ylabel('% of the instances have no more')
    axes.set_ylim(0, 100)
    axes.legend()
