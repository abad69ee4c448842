# SPDX-License-Identifier: Apache-2.0

"""What is lost while a part is away; see vsched_standalone.tests.outages."""

import typing as ty

from benchmarks import frame
from vsched_standalone.tests import outages

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'Shares and samples while the agent, the broker or the database is away',
    'Agent, collector and API run as processes of their own on a RabbitMQ '
    'node and a PostgreSQL server of their own, beside a VM that is '
    'promised 60 % of a CPU and neighbours that burn every CPU. Then the '
    'agent is killed (SIGKILL) and started again, the broker is stopped '
    'for a minute, and the database for half a minute. The share is read '
    'from the kernel once a second all the while; afterwards the samples '
    'in the database are counted.',
    (),
    {
        'killed_share': 'CPUs got while the agent is dead, promised 0.6',
        'killed_worst_second': 'largest \\|got - 0.6\\| of one second while '
        'the agent is dead and after its return',
        'applied_again': 'reservations applied again by the new agent',
        'broker_share': 'CPUs got while the broker is away, promised 0.6',
        'broker_samples_missing_us': 'time no sample covers after the '
        "broker's return",
        'broker_samples_repeated': 'samples stored twice',
        'database_status': 'HTTP status while the database is away',
        'database_samples_missing_us': 'time no sample covers after the '
        "database's return",
        'database_samples_repeated': 'samples stored twice',
    },
    targets=(
        frame.within('killed_share', 0.6, 0.012, 'CPUs', 'issue 2'),
        frame.within('applied_again', 0, 0, '', 'issue 2'),
        frame.within('broker_share', 0.6, 0.012, 'CPUs', 'issue 2'),
        frame.within('broker_samples_missing_us', 0, 0, 'µs', 'issue 2'),
        frame.within('broker_samples_repeated', 0, 0, '', 'issue 2'),
        frame.within('database_status', 503, 0, '', 'issue 2'),
        frame.within('database_samples_missing_us', 0, 0, 'µs', 'issue 2'),
        frame.within('database_samples_repeated', 0, 0, '', 'issue 2'),
    ),
    exercises=('tools/guest',),
)


def run(quick: bool) -> frame.Run:
    """One deployment, one outage after the other."""
    with outages.Scene() as scene:
        killed = outages.agent_killed(scene, 5 if quick else 20)
        yield frame.Variant('agent_killed', killed)
        # Nobody samples while the agent is dead; that gap is not theirs.
        gap_us = scene.samples().missing_us
        broker = outages.broker_stopped(scene, 10 if quick else 60)
        yield frame.Variant('broker_stopped', broker)
        database = outages.database_stopped(scene, 10 if quick else 30)
        yield frame.Variant('database_stopped', database)
    return {
        'killed_share': killed['share_while_dead'],
        'killed_worst_second': killed['worst_second'],
        'applied_again': killed['applied_again'],
        'broker_share': broker['share_while_away'],
        'broker_samples_missing_us': broker['samples']['missing_us'] - gap_us,
        'broker_samples_repeated': broker['samples']['repeated'],
        'database_status': database['status'],
        'database_samples_missing_us': database['samples']['missing_us']
        - gap_us,
        'database_samples_repeated': database['samples']['repeated'],
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """The share through every outage."""
    axes = figure.add_subplot()
    shares = {
        'agent dead': record.variants['agent_killed']['share_while_dead'],
        'agent back': record.variants['agent_killed']['share_after'],
        'broker away': record.variants['broker_stopped']['share_while_away'],
        'database away': record.variants['database_stopped'][
            'share_while_away'
        ],
    }
    axes.bar(list(shares), list(shares.values()), color='tab:blue')
    axes.axhline(0.6, color='grey', linestyle='--', label='promised')
    axes.set_ylabel('CPUs')
    axes.legend()
