# SPDX-License-Identifier: Apache-2.0

"""What is lost while parts are killed at random; see tests.drill."""

import math
import typing as ty

from benchmarks import frame
from vsched_standalone.tests import drill
from vsched_standalone.tests import drill_scene
from vsched_standalone.tests import private_services

if ty.TYPE_CHECKING:
    from matplotlib import figure as figures

ABOUT = frame.About(
    'What is lost while parts are killed at random',
    'Agent, collector and API run as processes of their own on a RabbitMQ '
    'node, a database server and a libvirtd of their own, beside a VM that '
    'is reserved 60 % of a CPU, one whose reservation is changed by REST '
    'every three seconds between 10 and 20 %, and two that burn what is '
    'left. One of the six parts after the other, and every fourth time two '
    'at once, in random order, is ended by SIGKILL: the agent, the '
    'collector and the API with their children, the database with its own, '
    'libvirtd without its guests. A supervisor starts what has died one '
    'second later, as systemd would; nothing else is done for it. The next '
    'one is killed 2 to 8 s after all work again. Five minutes with '
    'PostgreSQL, and five with MariaDB.\n\n'
    'Every 20 ms a thread of the benchmark reads from the kernel what the '
    'reserved vCPUs hold. A look at which the constant one holds anything '
    'but its 12 ms every 20 ms by SCHED_DEADLINE counts as a gap from the '
    'look before. A sample is lost when time of one of the four VMs is in no '
    'stored sample, between the first and the last that are stored, and '
    'repeated when it is in two. A reservation is doubled when the API lists '
    'it twice, when a look shows the changed VM with neither of its two '
    'values, or when it ends with another value than was ordered last.',
    (),
    {
        'gap_s': 'seconds during which the kernel did not hold the constant '
        'reservation',
        'samples_lost': 'seconds of the four VMs that no sample covers, '
        'rounded up',
        'samples_repeated': 'samples that cover time that another one covers',
        'doubled_promises': 'reservations held or listed twice, or not as '
        'ordered',
        'faults': 'parts killed; all of them came back by themselves',
        'share_min': 'CPUs the constant VM got in its worst second, reserved '
        '0.6',
        'recovery_max_s': 'longest time from a kill until everything worked '
        'again',
    },
    targets=(
        frame.within('gap_s', 0, 0, 's', 'issue 16'),
        frame.within('samples_lost', 0, 0, '', 'issue 16'),
        frame.within('samples_repeated', 0, 0, '', 'issue 16'),
        frame.within('doubled_promises', 0, 0, '', 'issue 16'),
    ),
    exercises=('tools/guest',),
)

_KINDS: dict[str, drill_scene.Database] = {
    'postgresql': private_services.Postgres,
    'mariadb': private_services.MariaDB,
}
_SECONDS = 300.0
_QUICK_S = 30.0


def run(quick: bool) -> frame.Run:
    """One database after the other."""
    found = []
    with frame.alone():
        for seed, (name, kind) in enumerate(_KINDS.items(), 1):
            with drill_scene.Scene(kind) as scene:
                figures_ = drill.run(
                    scene, _QUICK_S if quick else _SECONDS, seed
                )
            found.append(figures_)
            yield frame.Variant(name, figures_)
    return {
        'gap_s': round(sum(one['gap_s'] for one in found), 3),
        'samples_lost': sum(
            math.ceil(one['samples_missing_us'] / 1e6) for one in found
        ),
        'samples_repeated': sum(one['samples_repeated'] for one in found),
        'doubled_promises': sum(one['doubled_promises'] for one in found),
        'faults': sum(one['faults'] for one in found),
        'share_min': min(one['share_min'] for one in found),
        'recovery_max_s': max(
            part['max']
            for one in found
            for part in one['recovered_s'].values()
        ),
    }


def draw(record: frame.Record, figure: 'figures.Figure') -> None:
    """How long each part takes to come back."""
    axes = figure.add_subplot()
    for index, (name, variant) in enumerate(record.variants.items()):
        parts = variant['recovered_s']
        places = [place + 0.4 * index for place in range(len(parts))]
        axes.bar(
            places,
            [one['median'] for one in parts.values()],
            0.35,
            label=name + ', median',
        )
        axes.plot(places, [one['max'] for one in parts.values()], 'k_')
        axes.set_xticks(range(len(parts)), list(parts))
    axes.set_ylabel('seconds until everything works again')
    axes.legend()
