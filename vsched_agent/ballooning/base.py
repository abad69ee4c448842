# SPDX-License-Identifier: Apache-2.0

"""Inputs, actions and persistent records of ballooning.

The interfaces are implemented by the manager, so that this package's logic
depends on neither accounting nor enforcement.
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
class FlavorSettings:
    """The ballooning settings of an instance's flavor.

    :param auto: whether vCPUs may be taken from it.
    """

    auto: bool = False
    min_vcpus: int = 1
    weight: int = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """CPU use of one instance in one interval.

    :param uses: by index of the vCPU.
    :param reserved: the reservation of each vCPU when all are online; None
        without one.
    """

    domain: base.Domain
    flavor: FlavorSettings
    interval_ns: int
    uses: Mapping[int, contention.VcpuUse]
    reserved: reservation.Reservation | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Record:
    """An instance with fewer vCPUs than it is configured for.

    Persisted from before the first step until after the last one back.

    :param pid: its process; another one has all of its vCPUs.
    :param configured: indexes of all of its vCPUs.
    :param online: those that it uses.
    :param pins: CPU by vCPU, for those that are bound.
    :param found: the former affinity of bound threads, in the format of the
        affinity code.
    :param cause: why.
    :param at: since when, in seconds since the epoch.
    :param manual: whether an operator requested it.
    :param change: the reported ``balloons.BalloonChange``; None until the last
        step is done.
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
    change: Mapping[str, ty.Any] | None = None

    def to_dict(self) -> dict[str, ty.Any]:
        """Return the record in JSON types; the inverse of from_dict."""
        return {
            **{
                field.name: getattr(self, field.name)
                for field in dataclasses.fields(self)
            },
            'pins': sorted(self.pins.items()),
            'found': [dict(one) for one in self.found],
        }

    @classmethod
    def from_dict(cls, body: Mapping[str, ty.Any]) -> ty.Self:
        """Read what was kept; fields of other releases are ignored."""
        known = {field.name for field in dataclasses.fields(cls)}
        return cls(
            **{
                **{
                    name: value
                    for name, value in body.items()
                    if name in known
                },
                'configured': tuple(body['configured']),
                'online': tuple(body['online']),
                'pins': {int(index): int(cpu) for index, cpu in body['pins']},
            }
        )


class RecordStore(ty.Protocol):
    """Persistent storage."""

    def balloons(self) -> list[Mapping[str, ty.Any]]:
        """Return all stored records."""

    def note_balloon(
        self, instance_uuid: str, body: Mapping[str, ty.Any]
    ) -> None:
        """Store an instance's record, replacing the former one."""

    def forget_balloon(self, instance_uuid: str) -> None:
        """Delete an instance's record."""


class HostActions(ty.Protocol):
    """Actions on the host. Thread-safe."""

    def prepare(self) -> None:
        """Prepare for actions that follow soon."""

    def preempt_faster(
        self, domain: base.Domain, limit_s: float
    ) -> contextlib.AbstractContextManager[None]:
        """Force more frequent preemption of the vCPU threads meanwhile.

        :param limit_s: longest time, in seconds.
        """

    def found(
        self, domain: base.Domain, indexes: Sequence[int]
    ) -> Sequence[Mapping[str, ty.Any]] | None:
        """Return the threads' affinity; None when they cannot be bound."""

    def bind(self, domain: base.Domain, pins: Mapping[int, int]) -> None:
        """Confine each vCPU's thread to one CPU.

        :raises errors.Refused: when that fails; nothing is bound.
        """

    def forget(self, uuid: str) -> None:
        """Forget an instance whose process has ended."""

    def move_reservation(
        self, uuid: str, record: Record | None, unpin: Record | None = None
    ) -> None:
        """Move an instance's reservation to the vCPUs that it uses.

        None moves it back to all vCPUs. Waits until that is done.

        :param unpin: a balloon whose threads are confined as they were found
            first; its own, or the one before.
        :raises errors.Refused: when they cannot hold it; nothing is changed
            then.
        """


class EventCallback(ty.Protocol):
    """Emits an event."""

    def __call__(
        self,
        code: str,
        severity: messages.Severity,
        detail: str,
        instance_uuid: str | None = None,
        figures: dict[str, ty.Any] | None = None,
    ) -> None: ...


#: Reports a state or a change to the collector.
Publish = Callable[[balloons.BalloonReport | balloons.BalloonChange], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The options of [ballooning]."""

    thresholds: contention.Thresholds = contention.Thresholds()
    pace: balloon_trial.Pace = balloon_trial.Pace()
    bar: balloon_trial.Bar = balloon_trial.Bar()
    active_cpus: float = 0.5
    progress_path: str = ''
    guest_timeout_s: float = 10.0
    bind: bool = True
    dry_run: bool = False
    turn_us: int = 0
    keep_unknown: bool = False
