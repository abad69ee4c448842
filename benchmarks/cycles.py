# SPDX-License-Identifier: Apache-2.0

"""Bandwidth and life of a guest over many reservations."""

import dataclasses
import typing as ty


from benchmarks import frame
from benchmarks import needs
from vsched_agent.tests.functional import agent_cycles

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'Bandwidth and standstills over 400 reservations given and taken back',
    'A real VM gets a reservation of 60 % of a CPU (``deadline``), has it '
    'changed to 30 % and loses it again, over and over, through the '
    "agent's overrides; once while it idles and once while it burns its "
    'CPU. A sleeping thread that leaves SCHED_DEADLINE carelessly keeps its '
    'admitted bandwidth for ever on some kernels, and a tiny budget on the '
    'way out can stop a VM for minutes. So the kernel is asked before and '
    'afterwards what it still admits, and the guest, which writes its '
    'uptime to the console ten times a second, tells how long it ever stood '
    'still.',
    (),
    {
        name: text
        for kind in ('idle', 'busy')
        for name, text in (
            (kind + '_cycles', 'reservations given, changed and taken back'),
            (
                kind + '_admissible_before_units',
                'what the kernel admits before, 1/1048576 CPU',
            ),
            (
                kind + '_admissible_after_units',
                'what the kernel admits afterwards, 1/1048576 CPU',
            ),
            (kind + '_leaked_units', 'the difference'),
            (
                kind + '_longest_standstill_s',
                'seconds between two heartbeats of the guest, at the most; it '
                'sends one every 0.1 s',
            ),
        )
    },
    targets=(
        frame.within('idle_leaked_units', 0, 0, '', 'issue 2'),
        frame.within('busy_leaked_units', 0, 0, '', 'issue 2'),
        frame.at_most('idle_longest_standstill_s', 1, 's', 'issue 2'),
        frame.at_most('busy_longest_standstill_s', 1, 's', 'issue 2'),
    ),
    exercises=('tools/guest',),
)

#: By name, what the guest does.
KINDS = {'idle': 'idle', 'busy': 'burn'}
METRICS = (
    'cycles',
    'admissible_before_units',
    'admissible_after_units',
    'leaked_units',
    'longest_standstill_s',
)


def run(quick: bool) -> frame.Run:
    """One guest of each kind, one after the other."""
    needs.guests()
    metrics: dict[str, float] = {}
    for kind, load in KINDS.items():
        found = dataclasses.asdict(
            agent_cycles.measure(load, 10 if quick else 200)
        )
        yield frame.Variant(kind, found)
        metrics.update(
            {'%s_%s' % (kind, name): found[name] for name in METRICS}
        )
    return metrics


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """How long the guests stood still, beside the bound."""
    axes = figure.add_subplot()
    kinds = list(record.variants)
    axes.bar(
        [
            '%s, %d cycles' % (kind, record.variants[kind]['cycles'])
            for kind in kinds
        ],
        [record.variants[kind]['longest_standstill_s'] for kind in kinds],
        color='tab:blue',
    )
    axes.axhline(1.0, color='grey', linestyle='--', label='bound')
    axes.set_ylabel('longest stand-still, s')
    axes.legend()
