# SPDX-License-Identifier: Apache-2.0

"""Charges instances for the host's work on their I/O.

Once per pass the CPU time of an instance's I/O threads determines their
reservations (:mod:`vsched_agent.reservations.io_sizing`) and, where the
instance is charged, what is left to its guest. The enforcer applies the
result to the threads. Threads of instances with ``auto`` share what no
instance has claimed, so theirs are divided after all others have theirs.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import time
import types
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import applied
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.reservations import io_sizing
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import charging
from vsched_lib.model import communication
from vsched_lib.model import reservation
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Mode = extra_specs.IoCharging
_UNCLAIMED = applied.IoRoom.UNCLAIMED

#: The capacity that I/O threads use, by mode.
ROOMS: ty.Mapping[Mode, applied.IoRoom] = types.MappingProxyType(
    {
        Mode.AUTO: applied.IoRoom.UNCLAIMED,
        Mode.CHARGE: applied.IoRoom.INSIDE,
        Mode.OVERPROVISION: applied.IoRoom.ON_TOP,
        # What an earlier agent has left is released.
        Mode.NONE: applied.IoRoom.ON_TOP,
    }
)
#: Time until a refused reservation is tried again, in seconds.
RETRY_S = 10.0
#: Figures that change all the time are reported at most once in this time,
#: in seconds, and when they have changed by more than the second one.
REPORT_INTERVAL_S = 10.0
_REPORT_DELTA_MCPU = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """The options of the same names."""

    policy: charging.IoPolicy = dataclasses.field(
        default_factory=charging.IoPolicy
    )
    period_us: int = 20_000
    tick_us: int = 0
    enabled: bool = True


class IoChange(ty.NamedTuple):
    """A change of an instance's I/O threads that is to be reported.

    :param io: their present state; None when they are not managed.
    :param refusal: why they lack their reservations, if they do.
    :param eventful: whether to report an event as well.
    """

    uuid: str
    io: messages.IoReport | None
    refusal: errors.Refused | None = None
    eventful: bool = False


@dataclasses.dataclass(slots=True)
class _Account:
    """The charging state of one instance.

    :param retry_s: until when a refused reservation is not tried again.
    :param reported: what was last reported, and when.
    """

    pid: int
    sizing: io_sizing.IoSizing
    ledger: charging.Ledger = dataclasses.field(
        default_factory=charging.Ledger
    )
    refusal: errors.Refused | None = None
    retry_s: float = 0.0
    reported: messages.IoReport | None = None
    reported_s: float = 0.0
    reported_refusal: str | None = None


class Charging:
    """Sizes I/O threads' reservations and charges instances.

    Not thread-safe: the reconciler's thread is its only caller.

    :param enforcer: applies reservations.
    """

    def __init__(
        self, settings: Settings, enforcer: enforcers.Enforcer
    ) -> None:
        self._settings = settings
        self._enforcer = enforcer
        self._problems = problem_log.ProblemLog(LOG)
        self._modes: dict[str, Mode] = {}
        self._accounts: dict[str, _Account] = {}
        # Of instances whose threads were released since the last pass.
        self._released: list[IoChange] = []

    def set_mode(self, domain: hypervisor.Domain, mode: Mode) -> bool:
        """Set an instance's mode; NONE releases its I/O threads at once.

        :returns: whether the instance is charged.
        """
        if not self._settings.enabled or mode is Mode.NONE:
            self._modes.pop(domain.uuid, None)
            self._stop(domain)
            self._released.append(IoChange(domain.uuid, None))
            return False
        self._modes[domain.uuid] = mode
        return mode is Mode.CHARGE

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._modes.pop(uuid, None)
        self._accounts.pop(uuid, None)

    def adjust(
        self,
        domains: Iterable[hypervisor.Domain],
        samples: Iterable[messages.UsageSample],
        threads: Mapping[str, readings.Reading],
    ) -> list[IoChange]:
        """Run one pass.

        :param domains: every running instance.
        :param samples: what instances used since the last pass.
        :param threads: their threads' CPU time since then, by instance.
        :returns: the changes to report.
        """
        changes, self._released = self._released, []
        if (
            not self._modes
            and not self._accounts
            and (not self._enforcer.io.holdings())
        ):
            return changes
        used = {sample.instance_uuid: sample for sample in samples}
        dividing = []
        for domain in domains:
            uuid = domain.uuid
            mode, held = self._modes.get(uuid), self._enforcer.holding(uuid)
            try:
                if mode is None or held is None:
                    change = self._stop(domain)
                elif uuid not in used or uuid not in threads:
                    continue
                elif mode is Mode.AUTO:
                    self._set_desired(domain, held, used[uuid], threads[uuid])
                    dividing.append(domain)
                    continue
                else:
                    change = self._adjust(
                        domain, mode, held, used[uuid], threads[uuid]
                    )
            except Exception as error:
                # A failure must not affect the other instances.
                self._failed(domain, error)
                continue
            if change is not None:
                changes.append(change)
        return changes + self._divide(dividing)

    def _failed(self, domain: hypervisor.Domain, error: Exception) -> None:
        self._problems.failed(
            domain.uuid, error, '%s: charging for I/O failed', domain.name
        )

    def _set_desired(
        self,
        domain: hypervisor.Domain,
        held: applied.Holding,
        used: messages.UsageSample,
        reading: readings.Reading,
    ) -> None:
        account = self._account(domain)
        current = self._enforcer.io.holding(domain.uuid)
        account.sizing.observe(reading, current)
        if current is not None and current.room is not _UNCLAIMED:
            # What the former mode gave them is not theirs any more.
            self._enforcer.release_io(domain)
        full = account.sizing.full(
            self._period_us(held),
            # Without a reservation they would not be capped either.
            reservation.Mode.WORK_CONSERVING,
        )
        self._enforcer.unclaimed_io.set_desired(
            domain,
            applied.IoHolding(domain.pid, full, _UNCLAIMED),
            applied.IoHolding(
                domain.pid, account.sizing.least(full), _UNCLAIMED
            ),
            account.sizing.idle,
            applied.IoHolding(
                domain.pid,
                account.sizing.with_room(full, _requests_per_s(used)),
                _UNCLAIMED,
            ),
        )

    def _divide(self, domains: Iterable[hypervisor.Domain]) -> list[IoChange]:
        try:
            self._enforcer.unclaimed_io.divide()
        except Exception as error:
            # What was changed has to be reported nevertheless.
            self._problems.failed(
                'unclaimed', error, 'dividing unclaimed capacity failed'
            )
        now_s = time.monotonic()
        changes = []
        for domain in domains:
            account = self._accounts[domain.uuid]
            account.refusal = self._enforcer.unclaimed_io.refusal(domain.uuid)
            change = self._change(domain.uuid, account, Mode.AUTO, now_s)
            if change is not None:
                changes.append(change)
        return changes

    def _account(self, domain: hypervisor.Domain) -> _Account:
        account = self._accounts.get(domain.uuid)
        if account is None or account.pid != domain.pid:
            account = self._accounts[domain.uuid] = _Account(
                domain.pid,
                io_sizing.IoSizing(
                    self._settings.policy, self._settings.tick_us
                ),
            )
        return account

    def _period_us(self, held: applied.Holding) -> int:
        return min(held.reserved.period_us, self._settings.period_us)

    def _stop(self, domain: hypervisor.Domain) -> IoChange | None:
        account = self._accounts.pop(domain.uuid, None)
        held = self._enforcer.io.holding(domain.uuid)
        if held is not None:
            self._enforcer.release_io(domain)
        if account is None and held is None:
            return None
        return IoChange(domain.uuid, None)

    def _adjust(
        self,
        domain: hypervisor.Domain,
        mode: Mode,
        held: applied.Holding,
        used: messages.UsageSample,
        reading: readings.Reading,
    ) -> IoChange | None:
        account = self._account(domain)
        current = self._enforcer.io.holding(domain.uuid)
        charged = mode is Mode.CHARGE
        room = ROOMS[mode]
        account.sizing.observe(reading, current)
        desired = applied.IoHolding(
            domain.pid,
            account.sizing.full(
                self._period_us(held),
                held.reserved.mode,
                float(held.bandwidth) * (1 - charging.GUEST_FLOOR)
                if charged and held.guaranteed
                else None,
            ),
            room,
        )
        left_us = held.reserved.runtime_us
        if charged:
            left_us = self._left_us(account, held, used)
        now_s = time.monotonic()
        if account.retry_s <= now_s:
            account.refusal = self._charge(domain.uuid, held, desired, left_us)
            if account.refusal is not None:
                account.retry_s = now_s + RETRY_S
        if account.refusal is not None:
            if current is not None and current.room is not room:
                # What the former mode gave them is not theirs any more.
                self._enforcer.release_io(domain)
                current = None
            kept = current or applied.IoHolding(domain.pid, (), room)
            # The guest is charged nevertheless. If nothing but its increase
            # was refused, that is not tried in between either.
            if kept != desired or left_us < held.now.runtime_us:
                self._charge(domain.uuid, held, kept, left_us)
        return self._change(domain.uuid, account, mode, now_s)

    def _left_us(
        self,
        account: _Account,
        held: applied.Holding,
        used: messages.UsageSample,
    ) -> int:
        reserved_cpus, ledger = float(held.bandwidth), account.ledger
        ledger.observe(
            used.guest_us,
            used.direct_us + used.shared_us,
            used.interval_us,
            reserved_cpus,
            held.reserved.mode is reservation.Mode.CAPPED,
        )
        return charging.guest_runtime_us(
            held.reserved,
            held.backend,
            len(held.targets),
            ledger.guest_share(reserved_cpus, account.sizing.coming),
            held.now.runtime_us,
            self._settings.tick_us,
        )

    def _charge(
        self,
        uuid: str,
        held: applied.Holding,
        desired: applied.IoHolding,
        left_us: int,
    ) -> errors.Refused | None:
        if desired.room is applied.IoRoom.INSIDE and held.guaranteed:
            left = (held.bandwidth - desired.bandwidth) / len(held.targets)
            period_us = held.reserved.period_us
            if left * period_us < reservation.least_runtime_us(
                period_us, self._settings.tick_us
            ):
                return errors.Refused(
                    'of the %d mcpu reserved for the instance its %d I/O '
                    'threads leave too little to the guest'
                    % (
                        held.bandwidth * reservation.MCPU_PER_CPU,
                        len(desired.reservations),
                    ),
                    errors.Code.DOES_NOT_FIT,
                )
        try:
            self._enforcer.charges.apply(uuid, desired, left_us)
        except errors.Refused as refusal:
            return refusal
        return None

    def _change(
        self, uuid: str, account: _Account, mode: Mode, now_s: float
    ) -> IoChange | None:
        refusal = account.refusal
        if refusal is not None and refusal.code == errors.Code.THREADS_GONE:
            # Threads may end between reading and applying.
            account.retry_s, refusal = 0.0, None
        report = self._report(uuid, account, mode, refusal)
        before = account.reported
        if (
            before is not None
            and _significant_fields(before) == _significant_fields(report)
            and (
                now_s < account.reported_s + REPORT_INTERVAL_S
                or not _charge_moved(before, report)
            )
        ):
            return None
        code = str(refusal.code) if refusal else None
        eventful = code != account.reported_refusal and not (
            # True of every instance of the host.
            mode is Mode.AUTO and code == errors.Code.BACKEND_UNAVAILABLE
        )
        account.reported, account.reported_s = report, now_s
        account.reported_refusal = code
        return IoChange(uuid, report, refusal, eventful)

    def _report(
        self,
        uuid: str,
        account: _Account,
        mode: Mode,
        refusal: errors.Refused | None,
    ) -> messages.IoReport:
        io, held = (
            self._enforcer.io.holding(uuid),
            (self._enforcer.holding(uuid)),
        )
        reservations = [one for _, one in io.reservations] if io else []
        return messages.IoReport(
            charging=str(mode),
            threads=len(reservations),
            runtime_us=sum(one.runtime_us for one in reservations),
            period_us=reservations[0].period_us if reservations else None,
            guest_runtime_us=held.now.runtime_us if held else None,
            charged_mcpu=round(
                account.ledger.overhead * reservation.MCPU_PER_CPU
            )
            if mode is Mode.CHARGE
            else 0,
            debt_us=round(account.ledger.debt_us),
            code=str(refusal.code) if refusal else None,
            detail=refusal.detail if refusal else None,
        )


def _requests_per_s(used: messages.UsageSample) -> float:
    if not used.interval_us:
        return 0.0
    return (
        communication.requests(used.net_rx_packets, used.net_tx_packets)
        * 1e6
        / used.interval_us
    )


def _significant_fields(report: messages.IoReport) -> tuple[ty.Any, ...]:
    return (
        report.charging,
        report.threads,
        report.runtime_us,
        report.period_us,
        report.code,
    )


def _charge_moved(before: messages.IoReport, now: messages.IoReport) -> bool:
    return abs(before.charged_mcpu - now.charged_mcpu) > max(
        _REPORT_DELTA_MCPU, before.charged_mcpu // 10
    )
