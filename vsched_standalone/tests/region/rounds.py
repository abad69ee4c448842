# SPDX-License-Identifier: Apache-2.0

"""Boots at the same moment, more of them than there is room for."""

import concurrent.futures
import contextlib
import dataclasses
import time

from vsched_standalone.tests.region import agreement
from vsched_standalone.tests.region import glance
from vsched_standalone.tests.region import region
from vsched_standalone.tests.region import servers

BOOTS = 8
EACH_MCPU = 200
HOSTS = {'node1': 2 * EACH_MCPU, 'node2': 2 * EACH_MCPU}

# nova-scheduler looks four times a second at what has changed.
_REFRESH_S = 1


@dataclasses.dataclass(frozen=True)
class Round:
    """What came of one.

    :param active: servers that Nova calls so.
    :param claimed_mcpu: what placement gave, on all hosts together.
    :param overclaimed: hosts of which more is claimed than they have.
    :param admitted_mcpu: what the agents let in.
    :param refused: servers that the agents let have nothing.
    :param held_mcpu: what the kernel keeps for all of them.
    :param overpromised: hosts whose agent has let in more than they have.
    """

    active: int
    claimed_mcpu: int
    overclaimed: int
    admitted_mcpu: int
    refused: int
    held_mcpu: int
    overpromised: int


class Rounds:
    """Rounds on the simulated hosts of one region.

    :param cloud: with the hosts that :data:`HOSTS` says.
    :ivar faults: why those of the last round that failed did so.
    """

    def __init__(self, cloud: region.Region) -> None:
        self.faults: list[str] = []
        self._region = cloud
        self._servers = servers.Servers(cloud)
        self._image = glance.upload(cloud.images, 'empty', b'\0' * 512)
        self._flavor = self._servers.flavor(
            'cpu_runtime_us=%d' % (EACH_MCPU * 20)
        )

    def run(self) -> Round:
        """Boot, look, delete."""
        with concurrent.futures.ThreadPoolExecutor(BOOTS) as pool:
            asked = list(
                pool.map(
                    lambda _: self._servers.boot(
                        self._flavor,
                        self._image,
                        availability_zone=region.SIMULATED,
                    ),
                    range(BOOTS),
                )
            )
            try:
                done = list(pool.map(self._servers.settled, asked))
                self.faults = [
                    one['fault']['message'] for one in done if 'fault' in one
                ]
                return self._look(
                    [one['id'] for one in done if one['status'] == 'ACTIVE']
                )
            finally:
                list(pool.map(self._servers.delete, asked))
                self._empty()

    def _look(self, active: list[str]) -> Round:
        def spoken_of() -> bool:
            told = {
                one['instance_uuid']: one['state']
                for one in self._reservations()
            }
            return all(
                told.get(uuid) in ('applied', 'refused') for uuid in active
            )

        self._region.until(spoken_of)
        seen: dict[str, agreement.Seen] = {}

        def gone() -> bool:
            """Threads of servers that came to nothing may be ending."""
            seen.update(
                (host, agreement.look(self._region, host)) for host in HOSTS
            )
            return all(
                one.held_mcpu == one.admitted_mcpu for one in seen.values()
            )

        # Whether they are is for the caller to judge.
        with contextlib.suppress(RuntimeError):
            self._region.until(gone)
        return Round(
            len(active),
            sum(sum(one.claimed.values()) for one in seen.values()),
            sum(
                sum(seen[host].claimed.values()) > HOSTS[host]
                for host in HOSTS
            ),
            sum(one.admitted_mcpu for one in seen.values()),
            sum(one['state'] == 'refused' for one in self._reservations()),
            sum(one.held_mcpu for one in seen.values()),
            sum(
                max(seen[host].admitted_mcpu, seen[host].held_mcpu)
                > HOSTS[host]
                for host in HOSTS
            ),
        )

    def _reservations(self) -> list[dict[str, str]]:
        return [
            one
            for one in self._region.api.get('/v1/reservations').json()[
                'reservations'
            ]
            if one['present']
        ]

    def _empty(self) -> None:
        """Wait until the schedulers can know that all of it is free."""

        def nothing_there() -> bool:
            told = self._region.api.get('/v1/snapshot').json()['hosts']
            return not any(one['admitted_mcpu'] for one in told) and not any(
                self._region.claimed(host) for host in HOSTS
            )

        self._region.until(nothing_there)
        time.sleep(_REFRESH_S)
