# SPDX-License-Identifier: Apache-2.0

"""Every command of ``openstack cpu`` once, and what the plugin costs."""

from collections.abc import Mapping
from collections.abc import Sequence
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
import typing as ty
import unittest

from benchmarks import frame
from vsched_client.tests import entry_points
from vsched_client.tests.functional import api
from vsched_client.tests import scenario
from vsched_lib.tests import openstack_services

_COMMANDS = len(entry_points.commands())

ABOUT = frame.About(
    'Commands of ``openstack cpu``, and the time that the plugin adds',
    'Each command runs once, as a process of its own, against a REST service '
    'with collector, SQLite and a bus in memory, whose agent is simulated; '
    'the audit asks a real placement. A command counts when its exit code is '
    'the one that its answer has to have, and its output is valid JSON, or '
    'CSV, and not empty.\n\n'
    '``openstack --help`` imports every module of commands and makes every '
    'command. It runs in pairs, with the plugin and without it, which of the '
    'two comes first changes from pair to pair; before the first pair each '
    'ran once, so that what Python and stevedore keep is there. '
    '``import_s`` is the median of the differences in wall time.',
    units={
        'commands': 'commands that answered as they have to',
        'import_s': 'seconds that the plugin adds to openstack --help, median '
        'of pairs',
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


def added_s(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the median of the differences.

    :param pairs: seconds with the plugin, and without it.
    """
    return statistics.median(more - less for more, less in pairs)


def _help_s(environment: Mapping[str, str]) -> float:
    began_s = time.perf_counter()
    subprocess.run(
        entry_points.command_line('--help'),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began_s


def _pairs(
    count: int, installed: Mapping[str, str], bare: Mapping[str, str]
) -> list[tuple[float, float]]:
    for environment in (installed, bare):
        _help_s(environment)
    found = []
    for number in range(count):
        if number % 2:
            less_s = _help_s(bare)
            found.append((_help_s(installed), less_s))
        else:
            more_s = _help_s(installed)
            found.append((more_s, _help_s(bare)))
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
        with api.Api(options) as served:

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
    figures: dict[str, ty.Any] = {
        'with_s': round(statistics.median(one for one, _ in pairs), 4),
        'without_s': round(statistics.median(one for _, one in pairs), 4),
        'added_s': [round(more - less, 4) for more, less in pairs],
    }
    yield frame.Variant('help', figures)
    return {'commands': len(answered), 'import_s': round(added_s(pairs), 4)}
