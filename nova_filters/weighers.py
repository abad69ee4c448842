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

"""Weighers of nova-scheduler::

    [filter_scheduler]
    weight_classes = nova.scheduler.weights.all_weighers
    weight_classes = nova_filters.weighers.all_weighers

Each has a multiplier in ``[vsched]``, which the metadata of an aggregate goes
before, as with Nova's own.
"""

from collections.abc import Callable
import typing as ty

from nova.conf import CONF
from nova.scheduler import utils
from nova.scheduler import weights

from nova_filters import asking
from nova_filters import hosts
from nova_filters import judging
from nova_filters import process
from nova_filters import weighing
from vsched_lib.model import score


class _Weigher(weights.BaseHostWeigher):
    """One number for each host of a request.

    :cvar name: of its multiplier.
    """

    name: ty.ClassVar[str]

    def weight_multiplier(self, host_state: ty.Any) -> float:
        """How much this one counts."""
        option = self.name + '_weight_multiplier'
        if not host_state.aggregates:
            return float(CONF.vsched[option])
        return float(utils.get_weight_multiplier(
            host_state, 'vsched_' + option, CONF.vsched[option]))

    def weigh_objects(self, weighed_obj_list: ty.Any,
                      weight_properties: ty.Any) -> list[float]:
        """All hosts; what does not depend on them is done once."""
        states = [one.obj for one in weighed_obj_list]
        try:
            question = asking.question(
                weight_properties.flavor.extra_specs,
                weight_properties.flavor.vcpus)
        except asking.Nonsense:
            question = None
        if question is None:
            return [0.0] * len(states)
        return self.weigh(question, states)

    def weigh(self, question: asking.Question,
              states: list[ty.Any]) -> list[float]:
        """All hosts for a flavor that has something to do with vsched."""
        raise NotImplementedError

    def _weigh_object(self, obj: ty.Any, weight_properties: ty.Any) -> float:
        # Nova never calls it where all are weighed together.
        raise NotImplementedError


class _Measured(_Weigher):
    """A number that comes from what was measured of a host."""

    @staticmethod
    def value(question: asking.Question, host: hosts.Host,
              state: ty.Any) -> float | None:
        """That of one host; None when it is not known."""
        raise NotImplementedError

    def weigh(self, question: asking.Question,
              states: list[ty.Any]) -> list[float]:
        """All hosts, whether anything is known of them or not."""
        by_name = process.shared().known().hosts.by_name
        value: Callable[..., float | None] = self.value
        return score.neutral([
            None if host is None else value(question, host, state)
            for state in states
            for host in (judging.find(by_name, state),)])


class VschedHeadroomWeigher(_Measured):
    """Prefers hosts with capacity left to promise."""

    name = 'headroom'
    value = staticmethod(weighing.headroom)


class VschedAllocationErrorWeigher(_Measured):
    """Prefers hosts that give what they promise."""

    name = 'allocation_error'
    value = staticmethod(weighing.allocation_error)


class VschedIoOverheadWeigher(_Measured):
    """Prefers hosts that do the flavor's I/O with little CPU time."""

    name = 'io_overhead'
    value = staticmethod(weighing.io_overhead)


class VschedInterferenceWeigher(_Weigher):
    """Prefers hosts whose instances and this one disturb each other least.

    Nova's ``[filter_scheduler] track_instance_changes`` must be on, as it
    is by default.
    """

    name = 'interference'

    def __init__(self) -> None:
        self._neighbours = weighing.Neighbours()

    def weigh(self, question: asking.Question,
              states: list[ty.Any]) -> list[float]:
        """All hosts, by the instances on them."""
        newcomer = question.ask.workload_class
        if newcomer is None:
            return [0.0] * len(states)
        return weighing.disturbance(
            newcomer, [self._neighbours.count(
                state.instances, newcomer, judging.taken(state))
                for state in states],
            process.shared().known().hosts.neighbours)


def all_weighers() -> list[type[_Weigher]]:
    """All of them, for ``weight_classes``."""
    return [VschedHeadroomWeigher, VschedAllocationErrorWeigher,
            VschedIoOverheadWeigher, VschedInterferenceWeigher]
