# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Eight boots at once where there is room for four."""

import importlib.util
import json
import subprocess
import sys
import typing as ty

from benchmarks import frame

ABOUT = frame.About(
    'Boots at the same time',
    'Eight servers are asked for at the same moment, of a flavor that claims '
    'a half CPU, on a host that can promise two: exactly four may become '
    'active. The API, the conductor and the scheduler of a real Nova (native '
    'threads), a real placement on MariaDB, as separate processes but for '
    'Nova\'s; the host\'s provider as the agent keeps it.\n\n'
    'placement repeats a claim that lost a race within the transaction that '
    'could not see who won, so that claims at the same moment may all '
    'succeed. ``allocation_conflict_retry_count = 1`` takes the repetition '
    'away; Nova repeats the claim itself. Whatever placement lets through, '
    'the agent\'s admission refuses: ``overcommitted`` counts promises of '
    'schedulers, not of kernels.',
    units={
        'rounds': 'rounds of eight boots, in each variant',
        'overcommitted': 'rounds with more claims than room, with the option',
        'overcommitted_without_fix': 'likewise, as placement comes',
        'short': 'rounds with fewer than four active, with the option',
    })

#: Of a round, in seconds; only a hang takes longer.
_PATIENCE_S = 300


def run(quick: bool) -> frame.Run:
    """Rounds with the option and without."""
    for name in ('nova', 'placement', 'pymysql'):
        if importlib.util.find_spec(name) is None:
            raise frame.Unavailable('needs %s: the extra "openstack"' % name)
    rounds = 2 if quick else 20
    fixed = _rounds(rounds, 1)
    yield frame.Variant('allocation_conflict_retry_count = 1', _sum(fixed))
    plain = _rounds(rounds, None)
    yield frame.Variant('as placement comes', _sum(plain))
    return {
        'rounds': rounds, 'overcommitted': _over(fixed),
        'overcommitted_without_fix': _over(plain),
        'short': sum(one['active'] < _ROOM for one in fixed)}


_ROOM, _ROOM_MCPU = 4, 2000


def _rounds(count: int, retries: int | None) -> list[dict[str, int]]:
    arguments = [str(count)] + ([] if retries is None else [str(retries)])
    done = subprocess.run(
        [sys.executable, '-m', 'benchmarks.nova_boots', *arguments],
        cwd=frame.ROOT, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=_PATIENCE_S * (count + 1), check=False)
    if done.returncode:
        raise RuntimeError('nova: ' + done.stderr[-2000:])
    found = [json.loads(line) for line in done.stdout.splitlines()
             if line.startswith('{')]
    if len(found) != count:
        raise RuntimeError('%d of %d rounds' % (len(found), count))
    return found


def _over(found: list[dict[str, int]]) -> int:
    return sum(one['claimed_mcpu'] > _ROOM_MCPU or one['active'] > _ROOM
               for one in found)


def _sum(found: list[dict[str, int]]) -> dict[str, ty.Any]:
    return {'rounds': len(found), 'overcommitted': _over(found),
            'active': [one['active'] for one in found],
            'claimed_mcpu': [one['claimed_mcpu'] for one in found]}
