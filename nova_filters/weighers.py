# SPDX-License-Identifier: Apache-2.0

"""Weighers of nova-scheduler::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers,
        nova_filters.weighers.all_weighers

The option is one list: given twice, the last one replaces the first. Each
weigher has a multiplier in ``[vsched]``; the metadata of an aggregate takes
precedence, as with Nova's own.
"""

from collections.abc import Callable
import typing as ty

from nova.conf import CONF
from nova.scheduler import utils
from nova.scheduler import weights

from nova_filters import flavor_request
from nova_filters import hosts
from nova_filters import judging
from nova_filters import process
from nova_filters import weighing
from vsched_lib.model import score


class _Weigher(weights.BaseHostWeigher):
    """A weigher that returns one number for each host of a request.

    :cvar name: prefix of the option of its multiplier.
    """

    name: ty.ClassVar[str]

    def weight_multiplier(self, host_state: ty.Any) -> float:
        """Return the multiplier of the host's aggregates, or the option."""
        option = self.name + '_weight_multiplier'
        if not host_state.aggregates:
            return float(CONF.vsched[option])
        return float(
            utils.get_weight_multiplier(
                host_state, 'vsched_' + option, CONF.vsched[option]
            )
        )

    def weigh_objects(
        self, weighed_obj_list: ty.Any, weight_properties: ty.Any
    ) -> list[float]:
        """Return the weights of all hosts.

        What does not depend on the host is done once.
        """
        states = [one.obj for one in weighed_obj_list]
        try:
            request = flavor_request.parse(
                weight_properties.flavor.extra_specs,
                weight_properties.flavor.vcpus,
            )
        except flavor_request.InvalidRequest:
            request = None
        if request is None:
            return [0.0] * len(states)
        return self.weigh(request, states)

    def weigh(
        self, request: flavor_request.FlavorRequest, states: list[ty.Any]
    ) -> list[float]:
        """Return the weights for a flavor with extra specs of vsched."""
        raise NotImplementedError

    def _weigh_object(self, obj: ty.Any, weight_properties: ty.Any) -> float:
        # Nova does not call it when weigh_objects is overridden.
        raise NotImplementedError


class _Measured(_Weigher):
    """A weigher by what was measured of each host by itself."""

    @staticmethod
    def value(
        request: flavor_request.FlavorRequest, host: hosts.Host, state: ty.Any
    ) -> float | None:
        """Return the number of one host; None when it is not known."""
        raise NotImplementedError

    def weigh(
        self, request: flavor_request.FlavorRequest, states: list[ty.Any]
    ) -> list[float]:
        """Return the weights; hosts of which nothing is known are neutral."""
        by_name = process.shared().known().hosts.by_name
        value: Callable[..., float | None] = self.value
        return score.neutral(
            [
                None if host is None else value(request, host, state)
                for state in states
                for host in (judging.find(by_name, state),)
            ]
        )


class VschedHeadroomWeigher(_Measured):
    """Prefers hosts with capacity left to reserve."""

    name = 'headroom'
    value = staticmethod(weighing.headroom)


class VschedAllocationErrorWeigher(_Measured):
    """Prefers hosts that provide what is reserved."""

    name = 'allocation_error'
    value = staticmethod(weighing.allocation_error)


class VschedIoOverheadWeigher(_Measured):
    """Prefers hosts that do the flavor's I/O with little CPU time."""

    name = 'io_overhead'
    value = staticmethod(weighing.io_overhead)


class VschedInterferenceWeigher(_Weigher):
    """Prefers hosts where instances slow each other down least.

    Nova's ``[filter_scheduler] track_instance_changes`` must be on, as it
    is by default.
    """

    name = 'interference'

    def __init__(self) -> None:
        self._neighbours = weighing.Neighbours()

    def weigh(
        self, request: flavor_request.FlavorRequest, states: list[ty.Any]
    ) -> list[float]:
        """Return the weights by the instances on each host."""
        newcomer = request.ask.workload_class
        if newcomer is None:
            return [0.0] * len(states)
        return weighing.disturbance(
            newcomer,
            [
                self._neighbours.count(
                    state.instances, newcomer, judging.taken(state)
                )
                for state in states
            ],
            process.shared().known().hosts.neighbours,
        )


def all_weighers() -> list[type[_Weigher]]:
    """Return all of them, for ``weight_classes``."""
    return [
        VschedHeadroomWeigher,
        VschedAllocationErrorWeigher,
        VschedIoOverheadWeigher,
        VschedInterferenceWeigher,
    ]
