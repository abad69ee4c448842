# SPDX-License-Identifier: Apache-2.0

"""Whether placement, the database and the kernel say the same of a region.

The audit of the API says so; here each is asked by itself as well.
"""

import dataclasses
import typing as ty

from vsched_agent.enforcement import capacity
from vsched_lib.model import reservation
from vsched_standalone.tests.region import region


@dataclasses.dataclass(frozen=True)
class Seen:
    """What each says of one host, in milli-CPU.

    :param claimed: by consumer, of placement.
    :param promised: by instance, of the database; what is in force only.
    :param held: of the kernel: each vCPU's thread under SCHED_DEADLINE.
    """

    claimed: dict[str, int]
    promised: dict[str, int]
    held: list[int]

    @property
    def admitted_mcpu(self) -> int:
        """What the agent has let in."""
        return sum(self.promised.values())

    @property
    def held_mcpu(self) -> int:
        """What the kernel keeps free for the host's instances."""
        return sum(self.held)


def look(cloud: region.Region, host: str) -> Seen:
    """Ask all of them about one host."""
    told = cloud.api.get('/v1/reservations', params={'host': host}).json()[
        'reservations'
    ]
    return Seen(
        cloud.claimed(host),
        {
            one['instance_uuid']: one['enforced']['bandwidth_mcpu']
            for one in told
            if one['present'] and one['enforced']
        },
        held(cloud.processes(host)),
    )


def differences(cloud: region.Region, host: str) -> list[ty.Any]:
    """What differs about one host, according to our API."""
    return list(
        cloud.api.get('/v1/hosts/%s/audit' % host).json()['audit'][
            'differences'
        ]
    )


def held(pids: ty.Container[int]) -> list[int]:
    """What the kernel holds for the vCPUs of some processes.

    What it holds for their I/O threads is lent and no claim.

    :returns: milli-CPU of each vCPU's thread under SCHED_DEADLINE.
    """
    return sorted(
        round(
            one.units
            * reservation.MCPU_PER_CPU
            / (1 << reservation.KERNEL_BW_SHIFT)
        )
        for one in capacity.deadline_threads()
        if one.pid in pids and not _serves_io(one)
    )


def _serves_io(one: capacity.DeadlineThread) -> bool:
    # QEMU's main thread and its iothreads.
    return one.tid == one.pid or one.comm.startswith('IO ')
