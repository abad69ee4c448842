# SPDX-License-Identifier: Apache-2.0

"""What a scheduler has to know of all hosts.

A reader that has a version requests what changed since. Versions are taken
from the clock, so one that was read from a database and is not in it any
more, because an older state was restored, is not met again by chance.
"""

import dataclasses
import typing as ty

from vsched_lib.contract import bounds
from vsched_lib.contract import certification
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import interference
from vsched_lib.model import overhead

#: Where the REST service has it.
PATH = '/v1/snapshot'


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate(wire.Message):
    """A :class:`vsched_lib.model.certificates.Certificate`."""

    backend: bounds.Word
    period_us: bounds.Microseconds
    shares_ppm: ty.Annotated[tuple[bounds.Count, ...], bounds.Items(5_120)]
    lowers_ppm: ty.Annotated[
        tuple[bounds.Error | None, ...], bounds.Items(5_120)
    ]

    @property
    def bounds(self) -> certificates.Certificate:
        """The same for the model.

        :raises wire.MalformedMessage: when it is inconsistent.
        """
        try:
            return certificates.Certificate(self.shares_ppm, self.lowers_ppm)
        except ValueError as problem:
            raise wire.MalformedMessage('Certificate.%s' % problem) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Facts(wire.Message):
    """Facts of a host, without what is in use there.

    :param backends: those that it can use.
    :param policy: of its agent; None when the agent does not report it:
        then the defaults hold.
    """

    cpus: bounds.Cpus
    tick_us: bounds.Microseconds
    capacity_mcpu: bounds.Mcpu
    backends: ty.Annotated[tuple[bounds.Word, ...], bounds.Items(16)]
    policy: policies.HostPolicy | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Host(wire.Message):
    """One host.

    :param version: of its last change.
    :param admitted_mcpu: what applied reservations use.
    :param certificates: of its newest error profile.
    :param prices_ns: of its newest overhead profile, by term; None when it
        has none.
    """

    name: bounds.HostName
    version: bounds.Number
    admitted_mcpu: bounds.Mcpu
    facts: Facts
    certificates: ty.Annotated[tuple[Certificate, ...], bounds.Items(256)] = ()
    prices_ns: bounds.Prices | None = None

    def fit(self) -> fit.Host:
        """Return the host for the model.

        :raises wire.MalformedMessage: when it is inconsistent.
        """
        return fit.Host(
            self.facts.cpus,
            self.facts.tick_us,
            self.facts.capacity_mcpu,
            frozenset(self.facts.backends),
            {
                (one.backend, one.period_us): one.bounds
                for one in self.certificates
            },
            None if self.prices_ns is None else _prices(self.prices_ns),
            fit.DEFAULT
            if self.facts.policy is None
            else self.facts.policy.fit,
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Slowdown(wire.Message):
    """How much one neighbour of a workload class slows another down.

    :param slowdown: relative to the time without neighbours.
    :param samples: number of measurements behind it.
    """

    victim: bounds.Word
    neighbour: bounds.Word
    slowdown: bounds.Figure
    samples: bounds.Figure


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot(wire.Message):
    """All hosts, or those that changed since a version.

    :param version: for the next request for changes.
    :param full: hosts that are not in it do not exist any more.
    :param more: there are further changes: request them at once.
    :param removed: names of hosts that do not exist any more.
    :param down: names of all hosts whose agent does not report.
    :param slowdowns: of the pairs that were measured.
    """

    version: bounds.Number
    full: bool
    more: bool
    hosts: ty.Annotated[tuple[Host, ...], bounds.Items(1_000_000)]
    removed: ty.Annotated[tuple[bounds.HostName, ...], bounds.Items(1_000_000)]
    down: ty.Annotated[tuple[bounds.HostName, ...], bounds.Items(1_000_000)]
    slowdowns: ty.Annotated[tuple[Slowdown, ...], bounds.Items(10_000)] = ()

    @property
    def interference(self) -> interference.Interference:
        """The estimates of all pairs: the prior, and what was measured."""
        known = interference.Interference()
        return interference.Interference(
            {
                **known.estimates,
                **{
                    (one.victim, one.neighbour): interference.Estimate(
                        one.slowdown, one.samples
                    )
                    for one in self.slowdowns
                },
            }
        )


def facts(info: messages.HostInfo) -> Facts:
    """Return the facts that a host reports."""
    return Facts(
        info.cpus,
        info.tick_us,
        info.capacity_mcpu,
        tuple(one.name for one in info.backends if one.usable),
        info.policy,
    )


def certify(
    profile: profiles.ErrorProfile, confidence: float
) -> tuple[Certificate, ...]:
    """Return the certificates of a host's newest benchmark profile.

    :param confidence: of the bounds.
    """
    kinds = sorted(
        {
            (one.backend, one.period_us)
            for one in profile.points
            if one.contenders > 0
        }
    )
    return tuple(
        Certificate(backend, period_us, made.shares_ppm, made.lowers_ppm)
        for backend, period_us in kinds
        for made in (
            certificates.Certificate.of(
                certification.contended(profile, backend, period_us),
                confidence,
            ),
        )
    )


def _prices(prices_ns: dict[str, ty.Any]) -> overhead.Fit:
    for term, cost_ns in prices_ns.items():
        if cost_ns.__class__ not in (int, float) or not (
            0 <= cost_ns <= bounds.MAX_PRICE_NS
        ):
            raise wire.MalformedMessage(
                'Host.prices_ns: %s of %s is no price'
                % (ascii(cost_ns)[:40], ascii(term)[:40])
            )
    return overhead.Fit(
        {
            term: overhead.Price(float(cost_ns), 0.0)
            for term, cost_ns in prices_ns.items()
        },
        1.0,
        0.0,
        0,
    )
