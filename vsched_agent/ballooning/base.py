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

"""What ballooning needs to see and to do, and what it remembers.

It knows neither the accounting nor the enforcement: whoever composes the
agent passes in what is behind these.
"""

from collections.abc import Callable
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import dataclasses
import typing as ty

from vsched_agent.hypervisor import base
from vsched_lib.contract import balloons
from vsched_lib.contract import messages
from vsched_lib.model import balloon_trial
from vsched_lib.model import contention
from vsched_lib.model import reservation


@dataclasses.dataclass(frozen=True, slots=True)
class Wishes:
    """What an instance's flavor says about ballooning.

    :param auto: whether vCPUs may be taken from it.
    """

    auto: bool = False
    min_vcpus: int = 1
    weight: int = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """What one instance did in one interval.

    :param uses: by index of the vCPU.
    :param promise: what each vCPU was promised when all are online; None
        without a reservation.
    """

    domain: base.Domain
    wishes: Wishes
    interval_ns: int
    uses: Mapping[int, contention.VcpuUse]
    promise: reservation.Reservation | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """An instance with fewer vCPUs than it is configured for.

    Kept where it outlives this process, from before the first step until
    after the last one back.

    :param pid: its process; another one has all of its vCPUs.
    :param configured: indexes of all of its vCPUs.
    :param online: those that it keeps.
    :param pins: CPU by vCPU, for those that are bound.
    :param found: how the threads of these were confined before; whoever
        binds knows the words.
    :param cause: why.
    :param at: since when, in seconds since the epoch.
    :param manual: whether an operator ordered it.
    :param unplugged: whether the others were unplugged; else the guest was
        told not to use them.
    :param change: what was told of it, a ``balloons.BalloonChange``; None
        until the last step is done.
    """

    instance_uuid: str
    pid: int
    configured: tuple[int, ...]
    online: tuple[int, ...]
    pins: Mapping[int, int]
    found: Sequence[Mapping[str, ty.Any]]
    cause: str
    at: float
    manual: bool = False
    unplugged: bool = False
    change: Mapping[str, ty.Any] | None = None

    def to_dict(self) -> dict[str, ty.Any]:
        """In JSON's types; from_dict's inverse."""
        return {**{field.name: getattr(self, field.name)
                   for field in dataclasses.fields(self)},
                'pins': sorted(self.pins.items()),
                'found': [dict(one) for one in self.found]}

    @classmethod
    def from_dict(cls, body: Mapping[str, ty.Any]) -> ty.Self:
        """Read what was kept."""
        return cls(**{**body, 'configured': tuple(body['configured']),
                      'online': tuple(body['online']),
                      'pins': {int(index): int(cpu)
                               for index, cpu in body['pins']}})


class Memory(ty.Protocol):
    """What outlives the agent."""

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        """Everything that was noted and not forgotten."""

    def note_balloon(self, instance_uuid: str,
                     body: Mapping[str, ty.Any]) -> None:
        """Keep this of an instance, instead of what was."""

    def forget_balloon(self, instance_uuid: str) -> None:
        """There is nothing to remember of it any more."""


class Hands(ty.Protocol):
    """What has to be done on the host. Safe from any thread."""

    def prepare(self) -> None:
        """There will be something to do."""

    def hastened(self, domain: base.Domain,
                 limit_s: float) -> contextlib.AbstractContextManager[None]:
        """While this is open, its vCPU threads take turns more often.

        :param limit_s: longest time, in seconds.
        """

    def found(self, domain: base.Domain, indexes: Sequence[int],
              ) -> Sequence[Mapping[str, ty.Any]] | None:
        """How vCPU threads are confined; None when they can't be bound."""

    def bind(self, domain: base.Domain, pins: Mapping[int, int]) -> None:
        """Confine each vCPU's thread to one CPU.

        :raises errors.Refused: when that does not work; nothing is bound.
        """

    def forget(self, uuid: str) -> None:
        """The instance's process is gone; nothing is expected any more."""

    def reshape(self, uuid: str, record: Record | None,
                loose: Record | None = None) -> None:
        """Move an instance's reservation to the vCPUs that it keeps, with
        None back to all, and wait until that is done.

        :param loose: a balloon whose threads are confined as they were found
            first; its own, or the one before.
        :raises errors.Refused: when they can not hold it; nothing has
            changed then.
        """


class Tell(ty.Protocol):
    """Says what happened to whoever is interested."""

    def __call__(self, code: str, severity: messages.Severity, detail: str,
                 instance_uuid: str | None = None,
                 figures: dict[str, ty.Any] | None = None) -> None: ...


#: Takes what is to be known beyond this host.
Publish = Callable[[balloons.BalloonReport | balloons.BalloonChange], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How ballooning behaves; see the options of [ballooning]."""

    thresholds: contention.Thresholds = contention.Thresholds()
    pace: balloon_trial.Pace = balloon_trial.Pace()
    bar: balloon_trial.Bar = balloon_trial.Bar()
    active_cpus: float = 0.5
    progress_path: str = ''
    guest_timeout_s: float = 10.0
    bind: bool = True
    dry_run: bool = False
    unplug: bool = False
    turn_us: int = 0
