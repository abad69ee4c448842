# SPDX-License-Identifier: Apache-2.0

"""Simulated hosts with instances, all of it from a seed."""

from collections.abc import Iterator
import dataclasses
import random
import uuid

from vsched_lib.contract import messages
from vsched_lib.model import reservation
from vsched_standalone.demo import host as hosts
from vsched_standalone.demo import instance as instances

_CPUS = (16, 32, 64)
_VCPUS = (1, 2, 2, 4, 4, 8)
_PERIODS_US = (10_000, 20_000, 100_000)
_SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.75)

#: One host of as many has this state.
_SATURATED_EVERY, _LEAKING_EVERY, _SILENT_EVERY = 5, 9, 11


@dataclasses.dataclass(frozen=True, slots=True)
class Member:
    """A host of the fleet.

    :param silent: its agent reports once and never again.
    """

    host: hosts.Host
    silent: bool


def build(
    seed: int, count: int, instances_each: int, now: float
) -> Iterator[Member]:
    """Yield the hosts of a fleet.

    Equal arguments but ``now`` yield hosts with equal names and equal
    instances, and these with equal UUIDs, names, reservations and loads.

    :param count: how many hosts.
    :param instances_each: how many instances each host has.
    :param now: in seconds since the epoch.
    """
    digits = max(2, len(str(count)))
    for number in range(1, count + 1):
        draw = random.Random('%d/%d' % (seed, number))
        name = 'demo-%0*d' % (digits, number)
        cpus = draw.choice(_CPUS)
        members = [
            _instance(draw, name, index) for index in range(instances_each)
        ]
        if number % _SATURATED_EVERY == 0:
            members.append(_oversized(draw, name, cpus))
        ballooning = [
            one for one in members if one.info.vcpus >= 4 and one.flavor
        ]
        host = hosts.Host(
            name,
            cpus,
            members,
            [one.uuid for one in ballooning],
            draw,
            now,
            leaked_mcpu=600 if number % _LEAKING_EVERY == 0 else 0,
        )
        if ballooning and number % 2 == 0:
            first = ballooning[0]
            host.take_vcpus(first.uuid, first.info.vcpus - 1, now)
        yield Member(host, silent=number % _SILENT_EVERY == 0)


def _instance(
    draw: random.Random, host: str, index: int
) -> instances.Instance:
    kind = draw.choice(sorted(instances.KINDS))
    workload_class = instances.KINDS[kind][0]
    info = messages.InstanceInfo(
        _uuid(draw),
        '%s-%s-%d' % (kind, host, index + 1),
        draw.choice(_VCPUS),
        workload_class,
    )
    return instances.Instance(info, _flavor(draw, index), _load(draw, kind))


def _flavor(draw: random.Random, index: int) -> reservation.Reservation | None:
    # Every fourth instance has none.
    if index % 4 == 3:
        return None
    period_us = draw.choice(_PERIODS_US)
    backend = reservation.Backend.CFS if index % 6 == 4 else None
    return reservation.Reservation(
        round(draw.choice(_SHARES) * period_us),
        period_us,
        reservation.Mode.WORK_CONSERVING
        if index % 5 == 2 and backend is None
        else reservation.Mode.CAPPED,
        backend,
    )


def _oversized(
    draw: random.Random, host: str, cpus: int
) -> instances.Instance:
    """Return an instance whose reservation does not fit on its host."""
    info = messages.InstanceInfo(
        _uuid(draw), 'batch-%s-large' % host, cpus, 'compute'
    )
    return instances.Instance(
        info, reservation.Reservation(9_900, 10_000), _load(draw, 'batch')
    )


def _load(draw: random.Random, kind: str) -> instances.Load:
    _, mean, amplitude, packets_per_s, requests_per_s = instances.KINDS[kind]
    return instances.Load(
        mean=mean * draw.uniform(0.85, 1.1),
        amplitude=amplitude,
        period_s=draw.uniform(60, 420),
        phase=draw.uniform(0, 6.28),
        packets_per_s=round(packets_per_s * draw.uniform(0.5, 1.5)),
        requests_per_s=round(requests_per_s * draw.uniform(0.5, 1.5)),
    )


def _uuid(draw: random.Random) -> str:
    return str(uuid.UUID(int=draw.getrandbits(128), version=4))
