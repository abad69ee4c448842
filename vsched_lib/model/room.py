# SPDX-License-Identifier: Apache-2.0

"""Whether a host has as much capacity left as an instance needs.

The second part of :mod:`vsched_lib.model.fit`.
"""

import dataclasses

from vsched_lib.model import fit


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a host can take some instances.

    :param free_mcpu: what is left there; below 0 when it is overcommitted.
    :param instances: how many are requested.
    """

    need: fit.Need
    capacity_mcpu: int
    free_mcpu: int
    instances: int = 1

    @property
    def problems(self) -> tuple[fit.Problem, ...]:
        """All reasons against the host."""
        needed_mcpu = self.need.demand_mcpu * self.instances
        if not lacks(self.need, self.free_mcpu, self.instances):
            return self.need.problems
        return (
            *self.need.problems,
            shortage(needed_mcpu, self.free_mcpu, self.capacity_mcpu),
        )

    @property
    def fits(self) -> bool:
        """Whether the host takes the instances."""
        return self.need.refusal is None and not lacks(
            self.need, self.free_mcpu, self.instances
        )

    @property
    def room(self) -> int | None:
        """How many such instances fit; None when capacity is no limit."""
        if self.need.refusal is not None:
            return 0
        if not self.need.demand_mcpu:
            return None
        return max(0, self.free_mcpu // self.need.demand_mcpu)


def lacks(need: fit.Need, free_mcpu: int, instances: int = 1) -> bool:
    """Return whether a host has too little left.

    An instance that needs nothing fits on an overcommitted host.
    """
    return 0 < need.demand_mcpu * instances > free_mcpu


def shortage(
    needed_mcpu: int, free_mcpu: int, capacity_mcpu: int
) -> fit.Problem:
    """Return the problem of a host that has too little left."""
    return fit.Problem(
        fit.Cause.CAPACITY,
        '%d mcpu needed, %d of %d mcpu free'
        % (needed_mcpu, free_mcpu, capacity_mcpu),
    )


def judge(
    ask: fit.Ask, host: fit.Host, admitted_mcpu: int, instances: int = 1
) -> Verdict:
    """Return whether a host can take some instances.

    :param admitted_mcpu: what is in use there.
    :param instances: number of instances, all on this host.
    """
    return Verdict(
        fit.need(ask, host),
        host.capacity_mcpu,
        host.capacity_mcpu - admitted_mcpu,
        instances,
    )
