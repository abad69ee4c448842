# SPDX-License-Identifier: Apache-2.0

"""Scores of hosts, which Nova normalises.

More is better; see :mod:`vsched_lib.model.score`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters import judging
from vsched_lib.contract import spec_values
from vsched_lib.model import interference
from vsched_lib.model import score

#: Maximum number of instances whose class is cached.
MAX_INSTANCES = 200_000

_CLASS = spec_values.PREFIX + 'workload_class'


def headroom(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> float | None:
    """Return the share of the capacity that would be left."""
    return score.headroom(
        host.need(request),
        host.free_mcpu,
        host.capacity_mcpu,
        judging.taken(state),
    )


def allocation_error(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> float | None:
    """Return the shortfall of one second of a hundred, below 0."""
    return score.allocation_error(host.need(request))


def io_overhead(
    request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
) -> float | None:
    """Return what the flavor's I/O would cost, below 0."""
    return score.io_overhead(host.need(request))


class Neighbours:
    """The workload classes on a host. Safe from any thread.

    The class of an instance does not change while it runs, so it is cached.
    """

    def __init__(self) -> None:
        self._classes: dict[str, str | None] = {}

    def count(
        self,
        instances: Mapping[str, ty.Any],
        newcomer: str | None = None,
        taken: int = 0,
    ) -> dict[str, int]:
        """Return the number of instances of each class.

        :param instances: Nova's objects by UUID. Nothing is read from the
            database: an instance without its flavor is not counted.
        :param newcomer: the class of the request.
        :param taken: instances of the request that the host got already.
        """
        known = self._classes
        found: dict[str, int] = {}
        if newcomer is not None and taken:
            found[newcomer] = taken
        for uuid, instance in instances.items():
            try:
                name = known[uuid]
            except KeyError:
                name = self._remember(uuid, instance)
            if name is not None:
                found[name] = found.get(name, 0) + 1
        return found

    def _remember(self, uuid: str, instance: ty.Any) -> str | None:
        if not instance.obj_attr_is_set('flavor'):
            # The next object may have its flavor.
            return None
        name = (instance.flavor.extra_specs or {}).get(_CLASS)
        if len(self._classes) >= MAX_INSTANCES:
            self._classes.clear()
        self._classes[uuid] = name
        return ty.cast('str | None', name)


def disturbance(
    newcomer: str,
    classes: Iterable[Mapping[str, int]],
    known: interference.Interference,
) -> list[float]:
    """Return what a new instance would cost on each host, below 0.

    Counts both what it costs the instances there and what they cost it.

    :param newcomer: its class.
    :param classes: number of instances by class, of each host.
    """
    return [-known.cost(newcomer, one) if one else 0.0 for one in classes]
