# SPDX-License-Identifier: Apache-2.0

"""How much instances of certain workload classes slow each other down.

The prior is what Xu et al. found for pairs on one host under Xen's Credit
scheduler (paper 002): a compute-bound neighbour slows a bandwidth-bound, a web
or a transactional workload down much unless weights protect it; a disk-bound
one uses DMA and is hardly affected, and costs a web server and a database
less than a compute-bound one does; a database and a web server compete for
the CPU and slow each other down. The paper has curves and no table, so these
are three levels in its order; measurements replace them. Pairs that it did
not measure are neutral until then.

A slowdown is relative to the time that the work takes alone: 0.5 takes half
as long again.
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

#: By (class that is slowed down, class of one neighbour).
PRIOR: Mapping[Pair, float] = types.MappingProxyType(
    {
        (BANDWIDTH, COMPUTE): MUCH,
        (DISK, COMPUTE): NONE,
        (WEB, COMPUTE): MUCH,
        (WEB, DISK): SOME,
        (TRANSACTIONAL, COMPUTE): MUCH,
        (TRANSACTIONAL, DISK): SOME,
        (TRANSACTIONAL, WEB): SOME,
        (WEB, TRANSACTIONAL): SOME,
    }
)

#: The weight of the prior of a pair, in measurements.
PRIOR_SAMPLES = 20

#: The largest weight of an estimate, so that it follows hosts that change.
MOST_SAMPLES = 1000


@dataclasses.dataclass(frozen=True, slots=True)
class Estimate:
    """The slowdown by one neighbour.

    :param samples: measurements behind it, the prior included.
    """

    slowdown: float
    samples: float


_UNKNOWN = Estimate(0.0, 0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Interference:
    """The estimates of all pairs."""

    estimates: Mapping[Pair, Estimate] = dataclasses.field(
        default_factory=lambda: {
            pair: Estimate(slowdown, PRIOR_SAMPLES)
            for pair, slowdown in PRIOR.items()
        }
    )

    def slowdown(
        self, victim: str | None, neighbours: Mapping[str, int]
    ) -> float:
        """Return how much its neighbours slow one instance down.

        :param victim: its class; None neither slows nor is slowed.
        :param neighbours: how many there are of each class.
        """
        return sum(
            count * self.estimates.get((victim or '', name), _UNKNOWN).slowdown
            for name, count in neighbours.items()
        )

    def cost(
        self, newcomer: str | None, neighbours: Mapping[str, int]
    ) -> float:
        """Return what one more instance costs itself and its neighbours."""
        return self.slowdown(newcomer, neighbours) + sum(
            count
            * self.estimates.get((name, newcomer or ''), _UNKNOWN).slowdown
            for name, count in neighbours.items()
        )

    def after(
        self, victim: str, neighbours: Mapping[str, int], slowdown: float
    ) -> 'Interference':
        """Return the estimates after one measurement.

        The difference to the estimate is attributed to the neighbours by
        the number of each class, and the less the more samples a class has.
        An estimate never falls below 0.

        :param slowdown: as measured.
        """
        present = {
            name: count for name, count in neighbours.items() if count > 0
        }
        surprise = slowdown - self.slowdown(victim, present)
        squares = sum(count * count for count in present.values())
        changed = dict(self.estimates)
        for name, count in present.items():
            known = changed.get((victim, name), _UNKNOWN)
            changed[victim, name] = Estimate(
                max(
                    0.0,
                    known.slowdown
                    + surprise * count / squares / (known.samples + 1),
                ),
                min(known.samples + 1, MOST_SAMPLES),
            )
        return Interference(changed)
