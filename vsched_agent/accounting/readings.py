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

"""What an instance's threads did, whatever runs it.

A :class:`Reader` knows where one kind of hypervisor keeps the figures:
Linux counts the threads of a QEMU process; Xen counts its own domains, and
what Dom0 does for them is read there. Everything above it (samples, shares
of the host's work, reservations for I/O threads) is made from a
:class:`Reading`.
"""

import abc
from collections.abc import Collection
import dataclasses
import enum
import typing as ty

from vsched_agent.hypervisor import base


class Role(enum.StrEnum):
    """What a host thread does for its instance."""

    VCPU = 'vcpu'
    EMULATOR = 'emulator'
    IOTHREAD = 'iothread'
    VHOST = 'vhost'
    OTHER = 'other'


class ThreadUse(ty.NamedTuple):
    """What one thread did since the last reading.

    :param tid: the thread, as the kernel numbers it.
    :param run_ns: time that it ran.
    :param wait_ns: time that it was runnable and did not run.
    :param timeslices: how often it began to run.
    """

    tid: int
    role: Role
    run_ns: int
    wait_ns: int
    timeslices: int


@dataclasses.dataclass(frozen=True, slots=True)
class Reading:
    """What an instance's threads did between two looks.

    :param at_ns: the second look, on the monotonic clock.
    :param interval_ns: since the first one.
    :param threads: those that run now, vCPUs too.
    :param direct_ns: what the host's threads ran for the instance, those
        that have ended included; so it may be more than the sum over
        ``threads``.
    """

    instance_uuid: str
    at_ns: int
    interval_ns: int
    threads: tuple[ThreadUse, ...]
    direct_ns: int

    def total(self, *roles: Role) -> ThreadUse:
        """All threads of some roles as if they were one, numbered 0.

        :param roles: at least one; the result carries the first.
        """
        uses = [one for one in self.threads if one.role in roles]
        return ThreadUse(
            0, roles[0], sum(one.run_ns for one in uses),
            sum(one.wait_ns for one in uses),
            sum(one.timeslices for one in uses))

    @property
    def guest(self) -> ThreadUse:
        """All vCPU threads together."""
        return self.total(Role.VCPU)

    @property
    def helpers(self) -> ThreadUse:
        """All other threads that run now, together."""
        return self.total(Role.EMULATOR, Role.IOTHREAD, Role.VHOST,
                          Role.OTHER)

    def by_role_ns(self) -> dict[Role, int]:
        """Run time by role, with what threads that have ended ran.

        The roles but the vCPUs' add up to ``direct_ns``, unless clocks
        that are read one after the other make them more.
        """
        found = {role: self.total(role).run_ns for role in Role}
        told_ns = sum(found.values()) - found[Role.VCPU]
        found[Role.OTHER] += max(0, self.direct_ns - told_ns)
        return found


class Reader(abc.ABC):
    """Reads what instances of one kind of hypervisor used.

    Used by one thread at a time.
    """

    @abc.abstractmethod
    def read(self, domain: base.Domain) -> Reading | None:
        """What an instance's threads did since the last call.

        An instance that is seen for the first time is only looked at.

        :returns: None at the first look.
        """

    @abc.abstractmethod
    def keep(self, uuids: Collection[str]) -> None:
        """Forget all instances but these."""

    @abc.abstractmethod
    def close(self) -> None:
        """Forget everything and close all files."""
