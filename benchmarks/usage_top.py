# SPDX-License-Identifier: Apache-2.0

"""How soon ``openstack cpu usage top`` answers, over 30 000 instances."""

from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import gc
import json
import statistics
import subprocess
import tempfile
import time
import typing as ty
from urllib import parse

import requests

from benchmarks import frame
from benchmarks import stored_fleet
from vsched_api.tests import database_options
from vsched_client.tests import entry_points
from vsched_ui.tests import serving

ABOUT = frame.About(
    'The instances that use the most CPU time of a large fleet',
    'A service with a database has 1 000 hosts with 30 instances each, all '
    'with a reservation, as for the page. Each host that is up has reported '
    'ten seconds of usage, with a sample of each instance for each second.\n\n'
    '*Command* is ``openstack cpu usage top -f json`` as a process of its '
    'own, from its start to its end: it reads the sums of the newest ten '
    'seconds of each host, page by page, and puts all instances in order. '
    '*Answers* are the same requests from this process, one after the other; '
    'a *request* is the slowest of them. The service runs in this process, '
    'the database is a server of its own on the same machine. A run fails if '
    'an instance of a host that is up is missing, or a part of the window.',
    units={
        'command_s': 'seconds of the command, the median on the slower '
        'database',
        'answers_s': 'seconds of its requests, likewise',
        'request_s': 'seconds of the slowest request',
        'answers_kb': 'kilobytes of all answers',
    },
    targets=(
        frame.at_most(
            'command_s', 10, 's', 'the seconds that it sums up by default'
        ),
    ),
    exercises=(
        'vsched_client/osc',
        'vsched_client/pyproject.toml',
        'vsched_client/v1',
    ),
)

INSTANCES = 30
#: What the command sums up by default, in seconds.
WINDOW_S = 10
REPEATS = 10
_QUICK_HOSTS = 50
_QUICK = 3
#: What the command lists by default.
_LISTED = 20
_DOWN_AFTER_S = 3_600
_TIMEOUT_S = 120


class Answers(ty.NamedTuple):
    """What the requests of the command took.

    :param took_s: each of them, in seconds.
    :param size_kb: of all answers.
    :param instances: how many they are about.
    """

    took_s: Sequence[float]
    size_kb: float
    instances: int


def run(quick: bool) -> frame.Run:
    """One database after the other."""
    found = {}
    with tempfile.TemporaryDirectory(prefix='vsched-bench-') as folder:
        environment = entry_points.install(folder)
        for kind in stored_fleet.SERVERS:
            found[kind.name] = _measure(
                kind,
                _QUICK_HOSTS if quick else stored_fleet.HOSTS,
                _QUICK if quick else REPEATS,
                environment,
            )
            yield frame.Variant(kind.name, found[kind.name])
    return {
        name: max(one[name] for one in found.values())
        for name in ('command_s', 'answers_s', 'request_s', 'answers_kb')
    }


def _measure(
    kind: ty.Any, hosts: int, repeats: int, environment: Mapping[str, str]
) -> dict[str, ty.Any]:
    with (
        stored_fleet.database(kind) as url,
        served(url, hosts, INSTANCES) as root,
    ):
        return measure(root, hosts, INSTANCES, repeats, environment)


@contextlib.contextmanager
def served(url: str, hosts: int, instances: int) -> Iterator[str]:
    """Serve a fleet that has just reported; return the root of the API.

    :param url: of a database that has its tables.
    :param hosts: how many hosts the fleet has.
    :param instances: how many instances each host has.
    """
    conf = database_options.configuration(url)
    # Nobody reports while it is measured.
    conf.set_override('host_down_after_s', _DOWN_AFTER_S, 'api')
    with contextlib.closing(
        serving.Service(conf, hosts, instances, seconds=1, hostile=False)
    ) as service:
        now = time.time()
        for one in service.hosts:
            one.usage(now - WINDOW_S + 1, now)
        # The garbage collector of a real service has no fleet to look
        # through.
        gc.collect()
        gc.freeze()
        try:
            yield service.direct_url
        finally:
            gc.unfreeze()


def measure(
    root: str,
    hosts: int,
    instances: int,
    repeats: int,
    environment: Mapping[str, str],
) -> dict[str, ty.Any]:
    """Return the figures of a fleet.

    :param root: of the API.
    :param hosts: how many hosts the fleet has.
    :param instances: how many instances each host has.
    :param environment: in which the command is installed.
    """
    expected = hosts * instances
    command_s, all_answers = [], []
    # A first one of each, for what is read once.
    for repeat in range(1 + repeats):
        began_s = time.perf_counter()
        listed = _command(root, environment)
        took_s = time.perf_counter() - began_s
        if listed != min(_LISTED, expected):
            raise AssertionError('%d instances are listed' % listed)
        answers = ask(root)
        if answers.instances != expected:
            raise AssertionError(
                '%d of %d instances are summed up'
                % (answers.instances, expected)
            )
        if repeat:
            command_s.append(took_s)
            all_answers.append(answers)
    return {
        'hosts': hosts,
        'instances': expected,
        'requests': len(all_answers[0].took_s),
        'command_s': round(statistics.median(command_s), 3),
        'command_s_max': round(max(command_s), 3),
        'answers_s': round(
            statistics.median(sum(one.took_s) for one in all_answers), 3
        ),
        'request_s': round(max(max(one.took_s) for one in all_answers), 3),
        'answers_kb': round(all_answers[0].size_kb, 1),
    }


def ask(root: str) -> Answers:
    """Send the requests of the command.

    :raises AssertionError: when a host has more samples than are read.
    """
    took_s, size, instances = [], 0, 0
    url = '%s/v1/usage/totals?window_us=%d' % (root, WINDOW_S * 1_000_000)
    with requests.Session() as session:
        while url:
            began_s = time.perf_counter()
            answer = session.get(url, timeout=_TIMEOUT_S)
            took_s.append(time.perf_counter() - began_s)
            answer.raise_for_status()
            size += len(answer.content)
            found = answer.json()
            instances += len(found['totals'])
            for host in found['hosts']:
                if host['covered_us'] is not None:
                    raise AssertionError('%(host)s is cut' % host)
            url = next(
                (
                    parse.urljoin(url, one['href'])
                    for one in found['links']
                    if one['rel'] == 'next'
                ),
                '',
            )
    return Answers(took_s, size / 1000, instances)


def _command(root: str, environment: Mapping[str, str]) -> int:
    """Run the command; return how many instances it lists."""
    done = subprocess.run(
        entry_points.command_line(
            *('--os-auth-type', 'none', '--os-endpoint', root),
            *('cpu', 'usage', 'top', '-f', 'json'),
        ),
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    return len(json.loads(done.stdout))
