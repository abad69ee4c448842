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

"""How much instances of certain workload classes slow each other down.

The prior is what Xu et al. found for pairs on one host under Xen's Credit
scheduler (paper 002): a compute-bound neighbour costs a bandwidth-bound, a
web or a transactional workload dearly as soon as weights do not shield it; a
disk-bound one is moved by DMA and hardly notices it, and costs a web server
and a database less than computing does; a database and a web server want
the same CPU and each gives way to the other. The paper gives curves and no
table, so these are three levels whose order is its findings; what is measured
replaces them. Pairs that it did not look at are neutral until then.

Slowdowns are parts of the time that the work takes alone: 0.5 is half as
long again.
"""

from collections.abc import Mapping
import dataclasses
import types

NONE = 0.0
SOME = 0.2
MUCH = 0.5

COMPUTE = 'compute'
BANDWIDTH = 'bandwidth'
DISK = 'disk'
TRANSACTIONAL = 'transactional'
WEB = 'web'
CLASSES = (COMPUTE, BANDWIDTH, DISK, TRANSACTIONAL, WEB)

Pair = tuple[str, str]

#: By (who is slowed down, by one neighbour of which class).
PRIOR: Mapping[Pair, float] = types.MappingProxyType({
    (BANDWIDTH, COMPUTE): MUCH,
    (DISK, COMPUTE): NONE,
    (WEB, COMPUTE): MUCH,
    (WEB, DISK): SOME,
    (TRANSACTIONAL, COMPUTE): MUCH,
    (TRANSACTIONAL, DISK): SOME,
    (TRANSACTIONAL, WEB): SOME,
    (WEB, TRANSACTIONAL): SOME,
})

#: As many measurements count as much as the prior of a pair that has one.
PRIOR_SAMPLES = 20

#: An estimate rests on no more: it follows hosts that change.
MOST_SAMPLES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """What one neighbour costs.

    :param samples: measurements that it rests on, the prior included.
    """

    slowdown: float
    samples: float


_UNKNOWN = Estimate(0.0, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Interference:
    """What is known of all pairs."""

    estimates: Mapping[Pair, Estimate] = dataclasses.field(
        default_factory=lambda: {
            pair: Estimate(slowdown, PRIOR_SAMPLES)
            for pair, slowdown in PRIOR.items()})

    def slowdown(self, victim: str | None,
                 neighbours: Mapping[str, int]) -> float:
        """How much its neighbours slow one instance down.

        :param victim: its class; None slows nobody and is not slowed.
        :param neighbours: how many there are of each class.
        """
        return sum(
            count * self.estimates.get((victim or '', name),
                                       _UNKNOWN).slowdown
            for name, count in neighbours.items())

    def cost(self, newcomer: str | None,
             neighbours: Mapping[str, int]) -> float:
        """What one more instance costs there: itself and its neighbours."""
        return self.slowdown(newcomer, neighbours) + sum(
            count * self.estimates.get((name, newcomer or ''),
                                       _UNKNOWN).slowdown
            for name, count in neighbours.items())

    def after(self, victim: str, neighbours: Mapping[str, int],
              slowdown: float) -> 'Interference':
        """What is known after one measurement.

        What the estimates did not foresee is laid to the neighbours by how
        many of each class there are, the less of it the more is known of
        them. A cost never falls below nothing.

        :param slowdown: that was measured.
        """
        present = {name: count for name, count in neighbours.items()
                   if count > 0}
        surprise = slowdown - self.slowdown(victim, present)
        squares = sum(count * count for count in present.values())
        changed = dict(self.estimates)
        for name, count in present.items():
            known = changed.get((victim, name), _UNKNOWN)
            changed[victim, name] = Estimate(
                max(0.0, known.slowdown + surprise * count / squares /
                    (known.samples + 1)), min(
                        known.samples + 1, MOST_SAMPLES))
        return Interference(changed)
