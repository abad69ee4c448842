# SPDX-License-Identifier: Apache-2.0

"""Checks whether this host can guarantee what an instance asks.

The rules are those of the scheduler filters (:mod:`vsched_lib.model.fit`),
applied to the agent's own, more detailed knowledge of the host.
"""

from collections.abc import Callable
from collections.abc import Mapping

from vsched_agent.enforcement import base
from vsched_agent.reservations import limits
from vsched_lib.contract import errors
from vsched_lib.model import fit
from vsched_lib.model import reservation


class AdmissionChecker:
    """Checks requests against this host, regardless of what is in use.

    :param backends: by name, in order of preference.
    :param support: whether a backend works on this host.
    :param capacity: of the host.
    :param measurements: of the host's errors and of what I/O costs.
    :param tick_us: the host's scheduler tick.
    """

    def __init__(
        self,
        backends: Mapping[reservation.Backend, base.Backend],
        support: Callable[[reservation.Backend], base.Support],
        capacity: limits.Capacities,
        measurements: limits.Measurements,
        tick_us: int,
    ) -> None:
        self._backends = backends
        self._support = support
        self._capacity = capacity
        self._measurements = measurements
        self._tick_us = tick_us

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
        """Refuse a request that has any problem.

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
            limits.CODES[first.cause],
        )
