# SPDX-License-Identifier: Apache-2.0

"""CPUs and bandwidth of two VMs, one of which has twice the weight.

A stage of ``balloon``. Weights divide whole CPUs: on two of them 2:1 is
rounded to one each, which is what weights alone give. With reservations of
2:1 as well, the vCPUs that are left have to hold all of these.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import os
import statistics

from vsched_agent.tests.functional import agent_fixture
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors

WEIGHTS = (200, 100)
#: Of each vCPU in 20 ms, by VM: 2:1, and more than half of the host.
RUNTIMES_US = (4000, 2000)
PERIOD_US = 20_000
VCPUS = 4
WEIGHTS_CASE = 'weights alone'
RESERVED_CASE = 'weights and reservations'
#: By case, what the VMs' flavors say beside the weight.
CASES: Mapping[str, tuple[Mapping[str, str], ...]] = {
    WEIGHTS_CASE: ({}, {}),
    RESERVED_CASE: tuple(
        {
            'vsched:cpu_runtime_us': str(runtime_us),
            'vsched:cpu_period_us': str(PERIOD_US),
        }
        for runtime_us in RUNTIMES_US
    ),
}
_WINDOW_S = 8.0
#: It is measured while it is on trial: what a balloon brings is not the
#: question here, and nobody shall end it meanwhile.
_OPTIONS = {
    'interval': 1.0,
    'restore_on_stop': True,
    'ballooning__trial': 3600.0,
}


@dataclasses.dataclass(frozen=True)
class Divided:
    """What two VMs got, the heavier one first.

    :param quotas: W·T/ΣW, before anything is rounded.
    :param vcpus: how many each was left with.
    :param cpus: CPU time of all vCPU threads of each, by window.
    :param stolen: CPUs that the machine under this one took meanwhile, by
        window.
    """

    quotas: tuple[float, ...]
    vcpus: tuple[int, ...]
    cpus: tuple[tuple[float, ...], ...]
    stolen: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The heavier one's CPU time over the other's."""
        heavy, light = (
            statistics.mean(column) for column in zip(*self.cpus, strict=True)
        )
        return float(heavy / light)

    def figures(self) -> dict[str, object]:
        """For the record."""
        return {
            'cpus_by_weight': [round(one, 3) for one in self.quotas],
            'vcpus': list(self.vcpus),
            'heavy_cpus': [round(one, 4) for one, _ in self.cpus],
            'light_cpus': [round(one, 4) for _, one in self.cpus],
            'stolen_cpus': [round(one, 3) for one in self.stolen],
            'ratio': round(self.ratio, 4),
        }


def measure(folder: str, case: str, windows: int) -> Divided:
    """Let two VMs burn all they get, and balloon them.

    :param folder: for their consoles.
    :param case: one of :data:`CASES`.
    :param windows: how many times it is looked at what they get.
    """
    guests = [
        agent_guests.Vm(
            folder,
            'burn',
            vcpus=VCPUS,
            memory_mib=128,
            extra_specs={
                'vsched:balloon': 'auto',
                'vsched:weight': str(weight),
                **specs,
            },
        )
        for weight, specs in zip(WEIGHTS, CASES[case], strict=True)
    ]
    try:
        agent_guests.start_in_turn(guests)
        with agent_fixture.RunningAgent(**_OPTIONS) as agent:
            for one in guests:
                agent.await_event(errors.Code.BALLOON_TAKEN, one.uuid)
            return _watch(agent.collector, guests, windows)
    finally:
        agent_guests.stop_all(guests)


def _watch(
    collector: agent_fixture.Collector,
    guests: Sequence[agent_guests.Vm],
    windows: int,
) -> Divided:
    tids = [one.vcpu_tids for one in guests]
    found = [
        agent_guests.measure([*tids[0], *tids[1]], _WINDOW_S)
        for _ in range(windows)
    ]
    cpus = os.cpu_count() or 1
    return Divided(
        tuple(weight * cpus / sum(WEIGHTS) for weight in WEIGHTS),
        tuple(
            int(collector.events(uuid=one.uuid)[-1].figures['vcpus'])
            for one in guests
        ),
        tuple(
            (sum(got.shares[:VCPUS]), sum(got.shares[VCPUS:])) for got in found
        ),
        tuple(got.stolen for got in found),
    )
