# SPDX-License-Identifier: Apache-2.0

"""Decides whether this host can take a reservation, and why it cannot.

The rules are those of the scheduler filters (:mod:`vsched_lib.model.fit`),
applied to the agent's own, more detailed knowledge of the host: its backends,
its measured errors and prices, its capacity, and the claims of its instances.

The guest and the I/O threads of a charged instance may together have more
than its reservation for a while, because a thread's budget is larger than
what it uses. That surplus is not a claim: it uses spare capacity and is
reclaimed when another instance claims it.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import time
import types
import typing as ty

from vsched_agent.enforcement import base
from vsched_agent.reservations import applied
from vsched_agent.reservations import io_threads
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import host
from vsched_lib.model import overhead
from vsched_lib.model import reservation
from vsched_lib.model import room

#: How long the host counts as having no spare capacity after the kernel has
#: refused some, in seconds.
SATURATED_S = 30.0

#: The code of the refusal for each cause.
CODES: Mapping[fit.Cause, errors.Code] = types.MappingProxyType(
    {
        fit.Cause.BACKEND: errors.Code.BACKEND_UNAVAILABLE,
        fit.Cause.RESERVATION: errors.Code.RESERVATION_INVALID,
        fit.Cause.ERROR: errors.Code.NOT_CERTIFIED,
        fit.Cause.OVERHEAD: errors.Code.DOES_NOT_FIT,
        fit.Cause.CAPACITY: errors.Code.DOES_NOT_FIT,
        fit.Cause.UNREADABLE: errors.Code.DOES_NOT_FIT,
    }
)


class Capacities(ty.Protocol):
    """Source of the host's capacity."""

    def current(self) -> host.Capacity:
        """Return the present capacity without asking the kernel."""

    def invalidate(self) -> None:
        """Have the kernel asked again at the next update."""


class NoCapacity:
    """A host without capacity, for restoring what was found."""

    def current(self) -> host.Capacity:
        """Return no capacity."""
        return host.Capacity(1, Fraction(0))

    def invalidate(self) -> None:
        """Do nothing."""


class Measured(ty.NamedTuple):
    """What is known of a host's errors and prices.

    :param certified: by backend and period in microseconds; empty without
        valid certificates of this host.
    :param prices: of I/O; None without usable prices.
    :param policy: how both are applied.
    """

    certified: Mapping[tuple[str, int], certificates.Certificate]
    prices: overhead.Fit | None
    policy: fit.Policy


class Measurements(ty.Protocol):
    """Source of what a host has measured of itself."""

    def measured(self) -> Measured:
        """Return what is known at present."""

    def refusal(
        self, need: fit.Need, problem: fit.Problem, ask: fit.Ask
    ) -> errors.Refused:
        """Return the refusal for a problem with errors or prices."""


class NoMeasurements:
    """A host without measured errors and prices."""

    def measured(self) -> Measured:
        """Return no certificates and no prices."""
        return Measured({}, None, fit.DEFAULT)

    def refusal(
        self, need: fit.Need, problem: fit.Problem, ask: fit.Ask
    ) -> errors.Refused:
        """Return the problem without further figures."""
        return errors.Refused(problem.detail, CODES[problem.cause])


class CapacityLedger:
    """Adds up what instances have.

    :param capacity: of the host.
    :param holdings: what is in force; a view of the enforcer's own.
    :param io: what is in force on I/O threads.
    """

    def __init__(
        self,
        capacity: Capacities,
        holdings: Mapping[str, applied.Holding],
        io: io_threads.IoThreads,
    ) -> None:
        self._capacity = capacity
        self._holdings = holdings
        self._io = io
        self._saturated_until_s = 0.0
        # What each instance has, and the sum: adding all up once per
        # instance would be quadratic in their number.
        self._taken: dict[str, Fraction] = {}
        self._total = Fraction(0)

    def claims(self, without: str | None = None) -> list[admission.Claim]:
        """Return every claim on the host's real-time capacity."""
        claims = [
            held.claim
            for uuid, held in self._holdings.items()
            if uuid != without and held.guaranteed
        ]
        for uuid, io in self._io.holdings():
            if uuid != without and self.takes_room(uuid, io):
                claims += io.claims
        return claims

    def claimed(self, without: str | None = None) -> Fraction:
        """Return the sum of the claims, in CPUs."""
        return _sum(self.claims(without))

    def by_instance_mcpu(self) -> dict[str, int]:
        """Return the sum of the claims of each instance, rounded up."""
        found = {
            uuid: held.bandwidth
            for uuid, held in self._holdings.items()
            if held.guaranteed
        }
        for uuid, io in self._io.holdings():
            if self.takes_room(uuid, io):
                found[uuid] = found.get(uuid, Fraction(0)) + io.bandwidth
        return {
            uuid: math.ceil(reservation.MCPU_PER_CPU * bandwidth)
            for uuid, bandwidth in found.items()
        }

    def takes_room(self, uuid: str, io: applied.IoHolding) -> bool:
        """Return whether an instance's I/O threads claim capacity."""
        held = self._holdings.get(uuid)
        # A reservation without a guarantee has no capacity to share.
        return io.on_top or held is None or not held.guaranteed

    def spare(self, without: str) -> Fraction:
        """Return the capacity beside claims and surplus, in CPUs.

        :param without: the instance whose surplus is left out.
        """
        if time.monotonic() < self._saturated_until_s:
            return Fraction(0)
        return (
            self._capacity.current().bound
            - self._total
            + self._surplus(without)
        )

    def update(self, uuid: str) -> None:
        """Add up again what one instance has."""
        taken = Fraction(0)
        held, io = self._holdings.get(uuid), self._io.holding(uuid)
        if held is not None and held.guaranteed:
            taken += held.bandwidth + self._surplus(uuid)
        if io is not None and self.takes_room(uuid, io):
            taken += io.bandwidth
        self._total += taken - self._taken.pop(uuid, Fraction(0))
        if taken:
            self._taken[uuid] = taken

    def recompute(self) -> None:
        """Add up again what all instances have."""
        self._taken.clear()
        self._total = Fraction(0)
        for uuid in self._holdings.keys() | dict(self._io.holdings()).keys():
            self.update(uuid)

    def saturated(
        self, uuid: str, after: applied.Holding, io: applied.IoHolding
    ) -> bool:
        """Note that the kernel has refused this for want of spare capacity.

        :returns: False when it needs no spare capacity, which then is not
            the cause.
        """
        if self.takes_room(uuid, io) or not after.surplus(io):
            return False
        self._saturated_until_s = time.monotonic() + SATURATED_S
        return True

    def reclaimable(
        self, uuid: str, desired: Sequence[admission.Claim]
    ) -> list[str]:
        """Return the instances whose surplus has to make room for claims."""
        others = [
            other
            for other in self._holdings
            if other != uuid and self._surplus(other)
        ]
        if (
            not others
            or self.claimed(uuid)
            + _sum(desired)
            + sum(map(self._surplus, others), Fraction(0))
            <= self._capacity.current().bound
        ):
            return []
        return others

    def _surplus(self, uuid: str) -> Fraction:
        io = self._io.holding(uuid)
        if io is None or self.takes_room(uuid, io):
            return Fraction(0)
        # Without a claim of its own the instance has a holding.
        return self._holdings[uuid].surplus(io)


class AdmissionChecker:
    """Checks requests against this host, and against what is in use there.

    :param backends: by name, in order of preference.
    :param support: whether a backend works on this host.
    :param capacity: of the host.
    :param measurements: of the host's errors and of what I/O costs.
    :param tick_us: the host's scheduler tick.
    :param ledger: what is in use.
    :param test: the schedulability test for the host's reservations.
    """

    def __init__(
        self,
        backends: Mapping[reservation.Backend, base.Backend],
        support: Callable[[reservation.Backend], base.Support],
        capacity: Capacities,
        measurements: Measurements,
        tick_us: int,
        ledger: CapacityLedger,
        test: admission.Test,
    ) -> None:
        self._backends = backends
        self._support = support
        self._capacity = capacity
        self._measurements = measurements
        self._tick_us = tick_us
        self._ledger = ledger
        self._test = test

    def host(self) -> fit.Host:
        """Return this host as the scheduler filters see it."""
        capacity = self._capacity.current()
        known = self._measurements.measured()
        return fit.Host(
            capacity.cpus,
            self._tick_us,
            capacity.capacity_mcpu,
            frozenset(
                str(name)
                for name in self._backends
                if self._support(name).usable
            ),
            known.certified,
            known.prices,
            known.policy,
        )

    def check_errors(
        self, name: reservation.Backend, need: fit.Need, ask: fit.Ask
    ) -> None:
        """Refuse a request that has a problem with the host's errors.

        :param name: of the backend that would enforce it.
        :param need: what it would take of the host.
        :raises errors.Refused: for the first problem of any kind.
        """
        if any(one.cause is fit.Cause.ERROR for one in need.problems):
            self.check(name, need, ask)

    def check(
        self, name: reservation.Backend, need: fit.Need, ask: fit.Ask
    ) -> None:
        """Refuse a request that has any problem, whatever is in use.

        :param name: of the backend that would enforce it.
        :raises errors.Refused: for the first problem, with the figures.
        """
        if name not in self._backends:
            raise errors.Refused(
                'this host has no backend %s; it has %s'
                % (name, ', '.join(self._backends)),
                errors.Code.BACKEND_UNAVAILABLE,
            )
        support = self._support(name)
        if not support.usable:
            raise errors.Refused(
                'backend %s: %s' % (name, '; '.join(support.reasons)),
                errors.Code.BACKEND_UNAVAILABLE,
            )
        first = need.refusal
        if first is None:
            return
        if first.cause in (fit.Cause.ERROR, fit.Cause.OVERHEAD):
            raise self._measurements.refusal(need, first, ask)
        raise errors.Refused(
            '; '.join(
                one.detail for one in need.problems if one.cause is first.cause
            ),
            CODES[first.cause],
        )

    def admit(
        self,
        uuid: str,
        kept: Sequence[admission.Claim],
        asked: Sequence[admission.Claim],
        need: fit.Need | None = None,
    ) -> None:
        """Refuse what does not fit beside the others' claims.

        :param uuid: the instance that asks.
        :param kept: its other claims.
        :param need: what it would take of the host with its predicted I/O;
            None when that is not to be checked.
        :raises errors.Refused: with the figures.
        """
        capacity = self._capacity.current()
        verdict = admission.admit(
            [*self._ledger.claims(without=uuid), *kept, *asked],
            capacity,
            self._test,
        )
        if not verdict.fits:
            asked_mcpu = math.ceil(reservation.MCPU_PER_CPU * _sum(asked))
            raise errors.Refused(
                '%d mcpu asked; %s' % (asked_mcpu, verdict.reason),
                errors.Code.DOES_NOT_FIT,
                {
                    'asked_mcpu': asked_mcpu,
                    'needed_mcpu': verdict.needed_mcpu,
                    'allowed_mcpu': verdict.bound_mcpu,
                    'capacity_mcpu': capacity.capacity_mcpu,
                    'test': str(verdict.test),
                    'cpu': verdict.cpu,
                },
            )
        if need is not None:
            self._check_io_headroom(uuid, need)

    def _check_io_headroom(self, uuid: str, need: fit.Need) -> None:
        """Refuse what the scheduler filters would not place here.

        Uses the same rounded figures as they do, and the predicted cost of
        the instance's I/O, which includes what its I/O threads have.

        :param need: what it takes of this host.
        :raises errors.Refused: with the figures.
        """
        capacity_mcpu = self._capacity.current().capacity_mcpu
        free_mcpu = capacity_mcpu - math.ceil(
            reservation.MCPU_PER_CPU * self._ledger.claimed(without=uuid)
        )
        if not room.lacks(need, free_mcpu):
            return
        overhead_mcpu = need.demand_mcpu - need.guest_mcpu
        raise errors.Refused(
            "%d mcpu asked, and %d for the host's work on its I/O at the "
            "flavor's rates; %d of %d are free"
            % (need.guest_mcpu, overhead_mcpu, free_mcpu, capacity_mcpu),
            errors.Code.DOES_NOT_FIT,
            {
                'asked_mcpu': need.guest_mcpu,
                'overhead_mcpu': overhead_mcpu,
                'needed_mcpu': need.demand_mcpu,
                'free_mcpu': free_mcpu,
                'capacity_mcpu': capacity_mcpu,
            },
        )


def _sum(claims: Sequence[admission.Claim]) -> Fraction:
    """Return Σ Q/P over all vCPUs, in CPUs."""
    return applied.total((one.reservation, len(one.pins)) for one in claims)
