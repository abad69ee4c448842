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

"""What a scheduler has to know of all hosts.

A reader that has a version asks for what changed since. Versions are taken
from the clock, so one that was read from a database and is not in it any
more, because an older state was restored, is not met again by chance.
"""

import dataclasses
import typing as ty

from vsched_lib.contract import certification
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import interference
from vsched_lib.model import overhead


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate(wire.Message):
    """A :class:`vsched_lib.model.certificates.Certificate`."""

    backend: str
    period_us: int
    shares_ppm: tuple[int, ...]
    lowers_ppm: tuple[int | None, ...]

    @property
    def bounds(self) -> certificates.Certificate:
        """As the model sees it.

        :raises wire.MalformedMessage: when it makes no sense.
        """
        try:
            return certificates.Certificate(
                self.shares_ppm, self.lowers_ppm)
        except ValueError as problem:
            raise wire.MalformedMessage(
                'Certificate.%s' % problem) from None


@dataclasses.dataclass(frozen=True, slots=True)
class Facts(wire.Message):
    """What a host is, but for what is in use there.

    :param backends: that it can use.
    :param policy: what its agent makes of what it has measured; None when
        that does not tell.
    """

    cpus: int
    tick_us: int
    capacity_mcpu: int
    backends: tuple[str, ...]
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

    name: str
    version: int
    admitted_mcpu: int
    facts: Facts
    certificates: tuple[Certificate, ...] = ()
    prices_ns: dict[str, ty.Any] | None = None

    def fit(self, default: fit.Policy = fit.DEFAULT) -> fit.Host:
        """The host as the model sees it.

        :param default: what it makes of its measurements if its agent does
            not tell.
        :raises wire.MalformedMessage: when it makes no sense.
        """
        return fit.Host(
            self.facts.cpus, self.facts.tick_us, self.facts.capacity_mcpu,
            frozenset(self.facts.backends),
            {(one.backend, one.period_us): one.bounds
             for one in self.certificates},
            None if self.prices_ns is None else _prices(self.prices_ns),
            default if self.facts.policy is None
            else self.facts.policy.fit)


@dataclasses.dataclass(frozen=True, slots=True)
class Slowdown(wire.Message):
    """How much one neighbour of a workload class slows another down.

    :param slowdown: a part of the time alone.
    :param samples: it rests on.
    """

    victim: str
    neighbour: str
    slowdown: float
    samples: float


@dataclasses.dataclass(frozen=True, slots=True)
class Snapshot(wire.Message):
    """All hosts, or those that changed since a version.

    :param version: what to ask for changes since, next time.
    :param full: hosts that are not in it are not there any more.
    :param more: there are further changes: ask again at once.
    :param max_margin_ppm: and the next: of hosts whose agents do not tell,
        see :class:`vsched_lib.model.fit.Policy`.
    :param removed: names of hosts that are not there any more.
    :param down: names of all hosts whose agent does not report.
    :param slowdowns: that were measured; none of pairs that were not.
    """

    version: int
    full: bool
    more: bool
    max_margin_ppm: int
    max_overhead_ppm: int
    hosts: tuple[Host, ...]
    removed: tuple[str, ...]
    down: tuple[str, ...]
    slowdowns: tuple[Slowdown, ...] = ()

    @property
    def interference(self) -> interference.Interference:
        """What is known of neighbours, beginning with the prior."""
        known = interference.Interference()
        return interference.Interference({**known.estimates, **{
            (one.victim, one.neighbour): interference.Estimate(
                one.slowdown, one.samples) for one in self.slowdowns}})

    @property
    def policy(self) -> fit.Policy:
        """What hosts make of measurements whose agents do not tell."""
        return fit.Policy(self.max_margin_ppm, self.max_overhead_ppm)


def facts(info: messages.HostInfo) -> Facts:
    """What a host's own words say."""
    return Facts(
        info.cpus, info.tick_us, info.capacity_mcpu,
        tuple(one.name for one in info.backends if one.usable),
        info.policy)


def certify(profile: profiles.ErrorProfile,
            confidence: float) -> tuple[Certificate, ...]:
    """What a host's newest profile by the benchmark says.

    :param confidence: with which the bounds hold.
    """
    kinds = sorted({(one.backend, one.period_us)
                    for one in profile.points if one.contenders > 0})
    return tuple(
        Certificate(backend, period_us, made.shares_ppm, made.lowers_ppm)
        for backend, period_us in kinds
        for made in (certificates.Certificate.of(certification.contended(
            profile, backend, period_us), confidence),))


def _prices(prices_ns: dict[str, ty.Any]) -> overhead.Fit:
    for term, cost_ns in prices_ns.items():
        if isinstance(cost_ns, bool) or not isinstance(
                cost_ns, (int, float)) or not 0 <= cost_ns < _DEAREST_NS:
            raise wire.MalformedMessage(
                'Host.prices_ns: %s of %s is no price' % (
                    ascii(cost_ns)[:40], ascii(term)[:40]))
    return overhead.Fit({
        term: overhead.Price(float(cost_ns), 0.0)
        for term, cost_ns in prices_ns.items()}, 1.0, 0.0, 0)


# A second of CPU time for each event.
_DEAREST_NS = 1e9
