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

"""How good each host of a request is, in numbers that Nova normalises.

More is better; see :mod:`vsched_lib.model.score`.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import typing as ty

from nova_filters import asking
from nova_filters import hosts
from nova_filters import judging
from vsched_lib.contract import extra_specs
from vsched_lib.model import interference
from vsched_lib.model import score

#: Of how many instances the class is remembered.
MAX_INSTANCES = 200_000

_CLASS = extra_specs.PREFIX + 'workload_class'


def headroom(question: asking.Question, host: hosts.Host,
             state: ty.Any) -> float | None:
    """The part of the capacity that would be left."""
    return score.headroom(host.need(question), host.free_mcpu,
                          host.capacity_mcpu, judging.taken(state))


def allocation_error(question: asking.Question, host: hosts.Host,
                     state: ty.Any) -> float | None:
    """By how much one second of a hundred falls short, below 0."""
    return score.allocation_error(host.need(question))


def io_overhead(question: asking.Question, host: hosts.Host,
                state: ty.Any) -> float | None:
    """What the flavor's I/O would cost, below 0."""
    return score.io_overhead(host.need(question))


class Neighbours:
    """Which workload classes run on a host. Safe from any thread.

    What an instance is does not change while it runs, so it is looked at
    once.
    """

    def __init__(self) -> None:
        self._classes: dict[str, str | None] = {}

    def count(self, instances: Mapping[str, ty.Any],
              newcomer: str | None = None,
              taken: int = 0) -> dict[str, int]:
        """How many there are of each class.

        :param instances: Nova's objects by UUID. Nothing is read from the
            database: of one that came without its flavor nothing is known.
        :param newcomer: the class of the request.
        :param taken: instances of the request that are to come there.
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
            # It may come with it the next time.
            return None
        name = (instance.flavor.extra_specs or {}).get(_CLASS)
        if len(self._classes) >= MAX_INSTANCES:
            self._classes.clear()
        self._classes[uuid] = name
        return ty.cast('str | None', name)


def disturbance(newcomer: str, classes: Iterable[Mapping[str, int]],
                known: interference.Interference) -> list[float]:
    """What a newcomer would cost each host's instances and itself, below 0.

    :param newcomer: its class.
    :param classes: of each host, how many instances of which class.
    """
    return [-known.cost(newcomer, one) if one else 0.0 for one in classes]
