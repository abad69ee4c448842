# SPDX-License-Identifier: Apache-2.0

"""What the reconciler needs from the parts below it."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.communication import base as communication
from vsched_agent.hypervisor import base
from vsched_agent.profiling import withdrawal
from vsched_agent.reservations import applied
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.model import error_change
from vsched_lib.model import reservation


class Meter(ty.Protocol):
    """Implemented by :class:`vsched_agent.accounting.usage.UsageMeter`."""

    @property
    def readings(self) -> Mapping[str, readings.Reading]:
        """Return what the last :meth:`sample` read, by instance."""

    def sample(
        self, domains: Sequence[base.Domain], reserved: Mapping[str, Fraction]
    ) -> list[messages.UsageSample]:
        """Return each instance's CPU time since the last call."""

    def checkpoint(self) -> Mapping[str, ty.Any]:
        """Return the counters of the last call, as JSON types."""

    def resume(self, checkpoint: Mapping[str, ty.Any]) -> bool:
        """Continue from the checkpoint of an earlier agent."""

    @property
    def host(self) -> messages.HostUsage | None:
        """Return the host's usage in the same interval, if known."""


class Profiles(ty.Protocol):
    """Source of the host's error profiles."""

    def attested(self, holdings: Iterable[applied.Holding]) -> None:
        """Take passive samples of holdings that were just attested."""

    def poll(
        self,
    ) -> Sequence[tuple[profiles.ErrorProfile, Sequence[error_change.Change]]]:
        """Return new profiles and how each differs from the last one."""

    def measured(self, before: int | None) -> Sequence[profiles.ErrorProfile]:
        """Return the profiles of finished measurement runs.

        :param before: the newest version that was reported already.
        :returns: each once, the oldest first.
        """

    def judge(self, now_s: float) -> withdrawal.Event | None:
        """Return an event when certificates become valid or invalid."""


class Costs(ty.Protocol):
    """Source of the prices of I/O."""

    def poll(self) -> Sequence[profiles.OverheadProfile]:
        """Return new overhead profiles."""

    def used(self, samples: Sequence[messages.UsageSample]) -> None:
        """Refine the prices with what instances used."""

    def problem(self) -> str | None:
        """Return why I/O has no price; None when it has one."""


class Balloons(ty.Protocol):
    """Which vCPUs instances have; ``ballooning.manager`` implements it."""

    def sample(self, domains: Iterable[base.Domain]) -> None:
        """Sample instances and decide, after their usage was metered."""

    def records_lost(self, domains: Iterable[base.Domain]) -> None:
        """Find and record offline vCPUs again, as the journal was damaged."""

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """Return the instance with its online vCPUs, and the share of each."""

    def reconciled(
        self, uuid: str, problem: errors.VschedError | None
    ) -> None:
        """Report that an instance was reconciled with :meth:`of`'s result."""


class NoBalloons:
    """A host without ballooning: every vCPU is online."""

    def sample(self, domains: Iterable[base.Domain]) -> None:
        """Do nothing."""

    def records_lost(self, domains: Iterable[base.Domain]) -> None:
        """Do nothing."""

    def of(
        self, domain: base.Domain, reserved: reservation.Reservation | None
    ) -> tuple[base.Domain, reservation.Reservation | None]:
        """Return both unchanged."""
        return domain, reserved

    def reconciled(
        self, uuid: str, problem: errors.VschedError | None
    ) -> None:
        """Do nothing."""


class Communication(ty.Protocol):
    """Divides periods; ``communication.manager`` implements it."""

    def set_aware(self, uuid: str, aware: bool) -> None:
        """Set whether the periods of an instance may be divided."""

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""

    def adjust(
        self,
        domains: Iterable[base.Domain],
        samples: Iterable[messages.UsageSample],
        threads: Mapping[str, readings.Reading],
    ) -> Sequence[communication.Change]:
        """Run one pass; return the changes to report."""


class NoCommunication:
    """A host that divides no periods."""

    def set_aware(self, uuid: str, aware: bool) -> None:
        """Do nothing."""

    def forget(self, uuid: str) -> None:
        """Do nothing."""

    def adjust(
        self,
        domains: Iterable[base.Domain],
        samples: Iterable[messages.UsageSample],
        threads: Mapping[str, readings.Reading],
    ) -> Sequence[communication.Change]:
        """Return no change."""
        return ()


class Watch(ty.Protocol):
    """Counts what the loop does; ``metrics.recorder`` implements it."""

    def passed(self, duration_s: float) -> None:
        """Count a pass."""

    def failed(self, step: str) -> None:
        """Count a step that failed."""

    def reported(
        self, report: messages.Report, info: messages.HostInfo
    ) -> None:
        """Count a report that was stored in the outbox."""


class NoWatch:
    """Counts nothing."""

    def passed(self, duration_s: float) -> None:
        """Do nothing."""

    def failed(self, step: str) -> None:
        """Do nothing."""

    def reported(
        self, report: messages.Report, info: messages.HostInfo
    ) -> None:
        """Do nothing."""
