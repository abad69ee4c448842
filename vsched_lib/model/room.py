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

"""Is as much left on a host as an instance takes of it?

The second half of :mod:`vsched_lib.model.fit`.
"""

import dataclasses

from vsched_lib.model import fit


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a host can take some instances.

    :param free_mcpu: what is left there; below 0 when it is overfull.
    :param instances: how many were asked for.
    """

    need: fit.Need
    capacity_mcpu: int
    free_mcpu: int
    instances: int = 1

    @property
    def problems(self) -> tuple[fit.Problem, ...]:
        """Everything that speaks against the host."""
        wanted_mcpu = self.need.demand_mcpu * self.instances
        if not lacks(self.need, self.free_mcpu, self.instances):
            return self.need.problems
        return (*self.need.problems, shortage(
            wanted_mcpu, self.free_mcpu, self.capacity_mcpu))

    @property
    def fits(self) -> bool:
        """Whether nothing does for which the host refuses an instance."""
        return self.need.refusal is None and not lacks(
            self.need, self.free_mcpu, self.instances)

    @property
    def room(self) -> int | None:
        """How many such instances fit; None when capacity is no limit."""
        if self.need.refusal is not None:
            return 0
        if not self.need.demand_mcpu:
            return None
        return max(0, self.free_mcpu // self.need.demand_mcpu)


def lacks(wanted: fit.Need, free_mcpu: int, instances: int = 1) -> bool:
    """Whether a host has too little left.

    An instance that takes nothing fits into a host that is overfull.
    """
    return 0 < wanted.demand_mcpu * instances > free_mcpu


def shortage(wanted_mcpu: int, free_mcpu: int,
             capacity_mcpu: int) -> fit.Problem:
    """The problem of a host that has too little left, in words."""
    return fit.Problem(
        fit.Cause.CAPACITY, '%d mcpu needed, %d of %d mcpu free' % (
            wanted_mcpu, free_mcpu, capacity_mcpu))


def judge(ask: fit.Ask, host: fit.Host, admitted_mcpu: int,
          instances: int = 1) -> Verdict:
    """Whether a host can take some instances.

    :param admitted_mcpu: what is in use there.
    :param instances: all of them on this host.
    """
    return Verdict(fit.need(ask, host), host.capacity_mcpu,
                   host.capacity_mcpu - admitted_mcpu, instances)
