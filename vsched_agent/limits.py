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

"""What holds reservations back on a host: capacity, errors, prices."""

from collections.abc import Mapping
from fractions import Fraction
import types
import typing as ty

from vsched_agent.profiling import margins as error_margins
from vsched_agent.profiling import prices as io_prices
from vsched_lib.contract import errors
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import host
from vsched_lib.model import overhead


class Capacities(ty.Protocol):
    """Where the host's capacity comes from."""

    def current(self) -> host.Capacity:
        """What the host can promise now, without asking the kernel."""

    def invalidate(self) -> None:
        """Ask the kernel again at the next occasion."""


class NoCapacity:
    """A host that promises nothing more, for putting things back."""

    def current(self) -> host.Capacity:
        """No capacity at all."""
        return host.Capacity(1, Fraction(0))

    def invalidate(self) -> None:
        """Nothing to ask."""


class Measured(ty.NamedTuple):
    """What is known of a host's errors and prices.

    :param certified: by backend and period in microseconds; empty when
        nothing is known that is true of this host.
    :param prices: of I/O; None when there are none that can be used.
    :param policy: what is made of that.
    """

    certified: Mapping[tuple[str, int], certificates.Certificate]
    prices: overhead.Fit | None
    policy: fit.Policy


class Measurements(ty.Protocol):
    """What a host has measured of itself."""

    def measured(self) -> Measured:
        """What is known now."""

    def refusal(self, need: fit.Need, problem: fit.Problem,
                ask: fit.Ask) -> errors.Refused:
        """A problem with errors or prices, with the figures behind it."""


class NoMeasurements:
    """A host that was not asked how wrong it is, or what I/O costs."""

    def measured(self) -> Measured:
        """Nothing."""
        return Measured({}, None, fit.DEFAULT)

    def refusal(self, need: fit.Need, problem: fit.Problem,
                ask: fit.Ask) -> errors.Refused:
        """The problem as it is."""
        return errors.Refused(problem.detail, CODES[problem.cause])


class HostMeasurements:
    """What a host's newest profiles say.

    :param margins: of its errors.
    :param prices: of I/O.
    :param policy: what is made of both.
    """

    def __init__(self, margins: error_margins.Margins,
                 prices: io_prices.Prices, policy: fit.Policy) -> None:
        self._margins = margins
        self._prices = prices
        self._policy = policy

    def measured(self) -> Measured:
        """What is known now."""
        usable = self._prices.usable()
        return Measured(self._margins.certified(),
                        None if usable is None else usable.fit, self._policy)

    def refusal(self, need: fit.Need, problem: fit.Problem,
                ask: fit.Ask) -> errors.Refused:
        """The problem with the figures of the profile."""
        if problem.cause is fit.Cause.OVERHEAD:
            return self._prices.refusal(need, problem)
        if need.backend is None or ask.promise is None or (
                ask.bound_ppm is None):
            return errors.Refused(problem.detail, CODES[problem.cause])
        return self._margins.refusal(
            ask.promise, need.backend, ask.bound_ppm, self._policy)


#: How a host says no to what speaks against it.
CODES: Mapping[fit.Cause, errors.Code] = types.MappingProxyType({
    fit.Cause.BACKEND: errors.Code.BACKEND_UNAVAILABLE,
    fit.Cause.RESERVATION: errors.Code.RESERVATION_INVALID,
    fit.Cause.ERROR: errors.Code.NOT_CERTIFIED,
    fit.Cause.OVERHEAD: errors.Code.DOES_NOT_FIT,
    fit.Cause.CAPACITY: errors.Code.DOES_NOT_FIT})
