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

"""The seam between the reconciler and what enforces a reservation.

Every set has a get and an undo: a backend says what it found before it
first touched a thread, what is in force now, and puts back what it found.
"""

import abc
from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One thread to enforce on.

    :param index: the vCPU's number; for threads that serve its I/O, where
        it stands among them.
    :param tid: the host thread.
    :param pinned_cpus: host CPUs it must stay on; None for any.
    :param bound: it is there for the time being only. Where it was before is
        known to whoever bound it, and not to be put back by a backend.
    """

    index: int
    tid: int
    pinned_cpus: frozenset[int] | None = None
    bound: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Support:
    """Whether this host can use a backend.

    :param usable: it can.
    :param reasons: when not: what is missing and what would mend it; when
        usable: what an operator should know all the same.
    """

    usable: bool
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Enforced:
    """What the kernel holds for one thread, read back from it.

    :param runtime_us: budget, rounded to the nearest microsecond.
    :param period_us: period.
    :param mode: capped or work_conserving.
    """

    runtime_us: int
    period_us: int
    mode: reservation.Mode


#: One thread and what it is promised.
Promised = tuple[Target, reservation.Reservation]

#: What a backend found on one thread before it touched it; JSON types only.
Prior = Mapping[str, ty.Any]


class Backend(abc.ABC):
    """A mechanism that enforces reservations. Safe from any thread."""

    name: reservation.Backend

    @abc.abstractmethod
    def supports(self) -> Support:
        """Ask this host, now, whether the backend works on it."""

    @abc.abstractmethod
    def prior(self, targets: Sequence[Target]) -> dict[int, Prior]:
        """By thread, what :meth:`restore` would have to put back.

        Threads that are gone are left out.
        """

    def apply(self, targets: Sequence[Target],
              promise: reservation.Reservation) -> None:
        """Put one promise in force on all threads, or on none.

        See :meth:`apply_each`.
        """
        self.apply_each([(target, promise) for target in targets])

    @abc.abstractmethod
    def apply_each(self, promises: Sequence[Promised]) -> None:
        """Put each thread under its own promise, or none under any.

        A thread already under this backend stays in it and only changes
        its parameters.

        :param promises: of one instance.
        :raises errors.Refused: with its cause; every thread then has what
            it had before the call.
        """

    def resume(self, promises: Sequence[Promised]) -> None:  # noqa: B027
        """Go on with what an earlier agent left in force.

        Nothing is applied: this is for what a backend does all the time,
        which ended with that agent.

        :param promises: what the threads hold.
        """

    def close(self) -> None:  # noqa: B027
        """Do nothing any more; what is in force stays."""

    @abc.abstractmethod
    def read(self, targets: Sequence[Target]) -> dict[int, Enforced | None]:
        """By thread, what the kernel holds now; None when the thread is
        not under this backend. Threads that are gone are left out.

        Called once a second for every managed thread: needs no privilege
        and starts no process.
        """

    @abc.abstractmethod
    def restore(self, targets: Sequence[Target],
                prior: Mapping[int, Prior]) -> None:
        """Put back what was found, without leaking bandwidth.

        Threads that are gone are passed over; a thread without a prior
        gets the kernel's default.
        """
