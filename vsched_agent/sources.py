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


"""What the agent's loop is told by whoever measures."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import typing as ty

from vsched_agent.accounting import readings
from vsched_agent.hypervisor import base
from vsched_agent import in_force
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.model import error_change
from vsched_lib.model import reservation


class Meter(ty.Protocol):
    """What :class:`vsched_agent.accounting.usage.UsageMeter` offers."""

    @property
    def readings(self) -> Mapping[str, readings.Reading]:
        """What the last call read, by instance."""

    def sample(self, domains: Sequence[base.Domain],
               promised: Mapping[str, Fraction],
               ) -> list[messages.UsageSample]:
        """CPU time since the last call, by instance."""

    @property
    def host(self) -> messages.HostUsage | None:
        """What the host did in the same time; None when nobody knows."""


class Profiles(ty.Protocol):
    """Where the host's error profiles come from."""

    def attested(self, holdings: Iterable[in_force.Holding]) -> None:
        """What was just seen to be in force: samples for free."""

    def look(self) -> Sequence[tuple[
            profiles.ErrorProfile, Sequence[error_change.Change]]]:
        """Those that are new, and how they differ from the last ones."""


class Costs(ty.Protocol):
    """Where the prices of I/O come from."""

    def look(self) -> Sequence[profiles.OverheadProfile]:
        """Overhead profiles that are new."""

    def used(self, samples: Sequence[messages.UsageSample]) -> None:
        """What instances used: it refines prices."""

    def problem(self) -> str | None:
        """Why I/O has no price; None when it has."""


class Balloons(ty.Protocol):
    """Which vCPUs instances have; see :mod:`vsched_agent.shapes`."""

    def look(self, domains: Iterable[base.Domain]) -> None:
        """An interval is over, and metered."""

    def of(self, domain: base.Domain,
           promise: reservation.Reservation | None,
           ) -> tuple[base.Domain, reservation.Reservation | None]:
        """The vCPUs that hold a promise, and what each of them gets."""

    def settled(self, uuid: str,
                problem: errors.VschedError | None) -> None:
        """An instance was dealt with as :meth:`of` said."""


class NoBalloons:
    """Every instance has all of its vCPUs."""

    def look(self, domains: Iterable[base.Domain]) -> None:
        """Nothing is looked at."""

    def of(self, domain: base.Domain,
           promise: reservation.Reservation | None,
           ) -> tuple[base.Domain, reservation.Reservation | None]:
        """All of them hold it."""
        return domain, promise

    def settled(self, uuid: str,
                problem: errors.VschedError | None) -> None:
        """Nobody waits."""
