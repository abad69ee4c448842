# SPDX-License-Identifier: Apache-2.0

"""Decides whether this host can take a reservation, and why it cannot.

The rules are those of the scheduler filters (:mod:`vsched_lib.model.fit`),
applied to the agent's own, more detailed knowledge of the host: its backends,
its measured errors and prices, its capacity, and the claims of its instances.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math
import types
import typing as ty

from vsched_agent.enforcement import base
from vsched_agent.reservations import applied
from vsched_agent.reservations import capacity_ledger
from vsched_lib.contract import errors
from vsched_lib.model import admission
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import host
from vsched_lib.model import overhead
from vsched_lib.model import reservation
from vsched_lib.model import room

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


class Request(ty.NamedTuple):
    """A reservation that is to be admitted.

    :param name: of the backend that would enforce it.
    :param need: what it would take of the host with its predicted I/O.
    :param ask: the request besides the reservation.
    """

    name: reservation.Backend
    need: fit.Need
    ask: fit.Ask


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
        capacity: capacity_ledger.Capacities,
        measurements: Measurements,
        tick_us: int,
        ledger: capacity_ledger.CapacityLedger,
        test: admission.Test,
    ) -> None:
        self._backends = backends
        self._support = support
        self._capacity = capacity
        self._measurements = measurements
        self._tick_us = tick_us
        self._ledger = ledger
        self._test = test

    def need(
        self,
        name: reservation.Backend,
        ask: fit.Ask,
        reserved: reservation.Reservation,
    ) -> fit.Need:
        """Return what a reservation would take of this host.

        :param name: of the backend that would enforce it.
        :param ask: the request besides the reservation.
        :raises errors.Refused: when the host's errors do not permit it, for
            the first problem of any kind.
        """
        need = fit.need_by(name, ask, reserved, self._host())
        if any(one.cause is fit.Cause.ERROR for one in need.problems):
            self._check(name, need, ask)
        return need

    def _host(self) -> fit.Host:
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

    def _check(
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
        asked: Sequence[admission.Claim] | None,
        request: Request | None = None,
    ) -> None:
        """Refuse what this host cannot have, or not beside other claims.

        :param uuid: the instance whose claims they are.
        :param kept: its other claims.
        :param asked: its new claims; None when it claims no capacity.
        :param request: the reservation that it claims; None when what it
            would take of the host is not to be checked.
        :raises errors.Refused: with the figures.
        """
        if request is not None:
            self._check(*request)
        if asked is None:
            return
        capacity = self._capacity.current()
        verdict = admission.admit(
            [*self._ledger.claims(without=uuid), *kept, *asked],
            capacity,
            self._test,
        )
        if not verdict.fits:
            asked_mcpu = math.ceil(
                reservation.MCPU_PER_CPU * applied.claimed(asked)
            )
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
        if request is not None:
            self._check_io_headroom(uuid, request.need)

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
