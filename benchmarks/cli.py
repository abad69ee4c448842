# SPDX-License-Identifier: Apache-2.0

"""Every command of ``openstack cpu`` once, and what the plugin costs."""

from collections.abc import Mapping
from collections.abc import Sequence
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time
import typing as ty
import unittest

from benchmarks import frame
from vsched_client.tests import entry_points
from vsched_client.tests import fake_nova
from vsched_client.tests.functional import api
from vsched_client.tests import scenario
from vsched_lib.tests import openstack_services

_COMMANDS = len(entry_points.commands())

ABOUT = frame.About(
    'Commands of ``openstack cpu``, and the time that the plugin adds',
    'Each command runs once, as a process of its own, against a REST service '
    'with collector, SQLite and a bus in memory, whose agent is simulated; '
    'the audit asks a real placement, and flavors are those of a simulated '
    'Nova. A command counts when its exit code is '
    'the one that its answer has to have, and its output is valid JSON, or '
    'CSV, and not empty.\n\n'
    '``openstack --help`` imports every module of commands and makes every '
    'command. It runs in pairs, with the plugin and without it, which of the '
    'two comes first changes from pair to pair; before the first pair each '
    'ran twice, so that what Python and stevedore keep is there. '
    '``import_s`` is the median of the differences in wall time, '
    '``import_cpu_s`` that in CPU time, which other work on the machine '
    'changes less. The figures of each run are wall time and CPU time.',
    units={
        'commands': 'commands that answered as they have to',
        'import_s': 'seconds that the plugin adds to openstack --help, median '
        'of pairs',
        'import_cpu_s': 'seconds of CPU time that it adds, likewise',
    },
    targets=(
        frame.at_least('commands', _COMMANDS, '', 'issue 20'),
        frame.at_most('import_s', 0.15, 's', 'issue 20'),
    ),
    exercises=(
        'vsched_client/osc',
        'vsched_client/pyproject.toml',
        'vsched_client/v1',
    ),
)

_PAIRS = 25
_QUICK_PAIRS = 3


class Times(ty.NamedTuple):
    """What one run took, in seconds.

    :param wall_s: until it had ended.
    :param cpu_s: of its process, which other work beside it changes little.
    """

    wall_s: float
    cpu_s: float


def added(pairs: Sequence[tuple[Times, Times]]) -> Times:
    """Return the medians of the differences.

    :param pairs: with the plugin, and without it.
    """
    return Times(
        *(
            statistics.median(
                more[number] - less[number] for more, less in pairs
            )
            for number in range(len(Times._fields))
        )
    )


def _help(environment: Mapping[str, str]) -> Times:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began_s = time.perf_counter()
    subprocess.run(
        entry_points.command_line('--help'),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    wall_s = time.perf_counter() - began_s
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Times(
        wall_s,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    )


def _pairs(
    count: int, installed: Mapping[str, str], bare: Mapping[str, str]
) -> list[tuple[Times, Times]]:
    # The first run makes a folder, which the second one's cache depends on.
    for environment in (installed, bare) * 2:
        _help(environment)
    found = []
    for number in range(count):
        if number % 2:
            less = _help(bare)
            found.append((_help(installed), less))
        else:
            more = _help(installed)
            found.append((more, _help(bare)))
    return found


def _answered(environment: Mapping[str, str], folder: str) -> list[str]:
    try:
        placement = openstack_services.Placement(unittest.TestCase())
    except unittest.SkipTest as problem:
        raise frame.Unavailable('needs placement: %s' % problem) from None
    with placement:
        api.add_provider(placement)
        options = openstack_services.write(
            os.path.join(folder, 'vsched.conf'),
            {'placement': placement.options},
        )
        nova = fake_nova.FakeNova(
            **{scenario.FLAVOR: dict(scenario.FLAVOR_SPECS)}
        )
        with api.Api(options, compute=nova) as served:

            def execute(words: Sequence[str]) -> scenario.Result:
                done = subprocess.run(
                    entry_points.command_line(
                        *('--os-auth-type', 'none'),
                        *('--os-endpoint', served.url),
                        *words,
                    ),
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    check=False,
                )
                return scenario.Result(
                    done.returncode, done.stdout, done.stderr
                )

            return scenario.run(
                execute, api.RESERVED, api.PLAIN, placement=True
            )


def _installed(folder: str, name: str, plugin: bool) -> Mapping[str, str]:
    path = pathlib.Path(folder, name)
    path.mkdir()
    return entry_points.install(str(path), plugin)


def run(quick: bool) -> frame.Run:
    """Run each command, then pairs of ``openstack --help``."""
    with tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder:
        installed = _installed(folder, 'installed', True)
        bare = _installed(folder, 'bare', False)
        answered = sorted(set(_answered(installed, folder)))
        yield frame.Variant('commands', {'answered': answered})
        pairs = _pairs(_QUICK_PAIRS if quick else _PAIRS, installed, bare)
    yield frame.Variant(
        'help',
        {
            name: [[round(part, 4) for part in one[number]] for one in pairs]
            for number, name in enumerate(('installed', 'bare'))
        },
    )
    plugin = added(pairs)
    return {
        'commands': len(answered),
        'import_s': round(plugin.wall_s, 4),
        'import_cpu_s': round(plugin.cpu_s, 4),
    }
