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

"""What holds reservations back on a host: its capacity, and its margins."""

from fractions import Fraction
import typing as ty

from vsched_lib.model import host
from vsched_lib.model import overhead
from vsched_lib.model import reservation


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


class Margins(ty.Protocol):
    """What a promise needs on this host to keep within a bound."""

    def grant(self, promise: reservation.Reservation,
              backend: reservation.Backend,
              bound_ppm: int | None) -> reservation.Reservation:
        """The promise with its margin, or errors.Refused."""


class NoMargins:
    """A host that was not asked how wrong it is."""

    def grant(self, promise: reservation.Reservation,
              backend: reservation.Backend,
              bound_ppm: int | None) -> reservation.Reservation:
        """The promise as it is."""
        return promise


class Prices(ty.Protocol):
    """What an instance's I/O takes of this host."""

    def extra_mcpu(self, rates: overhead.Rates, charged: bool,
                   guest: Fraction) -> int:
        """What comes on top of its guest's promise, or errors.Refused."""


class NoPrices:
    """A host that was not asked what I/O costs."""

    def extra_mcpu(self, rates: overhead.Rates, charged: bool,
                   guest: Fraction) -> int:
        """Nothing."""
        return 0
