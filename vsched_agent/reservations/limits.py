# SPDX-License-Identifier: Apache-2.0

"""What limits reservations on a host: capacity, errors, prices."""

from collections.abc import Mapping
from fractions import Fraction
import types
import typing as ty

from vsched_lib.contract import errors
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import host
from vsched_lib.model import overhead


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
