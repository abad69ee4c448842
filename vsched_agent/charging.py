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

"""Who pays for what the host does for instances' I/O.

Once a pass: what each instance's I/O threads did says what they are to be
promised, and, where the instance is charged, what is left to its guest. The
arithmetic is in :mod:`vsched_lib.model.charging`, the threads are in the
enforcer's hands; this module brings the readings, the one and the other
together.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import time
import typing as ty

from vsched_agent.accounting import readings
from vsched_agent.enforcement import base
from vsched_agent import enforcer as enforcers
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent import in_force
from vsched_lib.contract import errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import messages
from vsched_lib.model import charging
from vsched_lib.model import reservation

Mode = extra_specs.IoCharging

#: Whose threads serve I/O. The others of a process come and go.
SERVING = frozenset((readings.Role.EMULATOR, readings.Role.IOTHREAD,
                     readings.Role.VHOST))
#: Until the kernel or admission is asked again after a refusal, in seconds.
RETRY_S = 10.0
#: Figures that move all the time are told no oftener than this, in seconds,
#: and when they moved by more than so much.
TELL_S = 10.0
_TELL_MCPU = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """How instances are charged; see the options of the same names."""

    policy: charging.IoPolicy = dataclasses.field(
        default_factory=charging.IoPolicy)
    period_us: int = 20_000
    tick_us: int = 0
    enabled: bool = True


class News(ty.NamedTuple):
    """Something became of an instance's I/O threads.

    :param io: how they stand.
    :param refusal: why not as they should; None when they do again.
    :param eventful: whether an operator may want to know.
    """

    uuid: str
    io: messages.IoReport | None
    refusal: errors.Refused | None = None
    eventful: bool = False


@dataclasses.dataclass(slots=True)
class _Account:
    """One instance's.

    :param retry_s: until when the I/O threads are left as they are.
    :param told: what was last told, and when.
    """

    pid: int
    ledger: charging.Ledger = dataclasses.field(
        default_factory=charging.Ledger)
    needs: dict[int, charging.IoNeed] = dataclasses.field(
        default_factory=dict)
    refusal: errors.Refused | None = None
    retry_s: float = 0.0
    told: messages.IoReport | None = None
    told_s: float = 0.0
    told_refusal: str | None = None


class Charging:
    """Sizes I/O threads' reservations and charges instances.

    Not thread-safe: the reconciler's thread is its only caller.

    :param settings: how.
    :param enforcer: what holds the reservations.
    """

    def __init__(self, settings: Settings,
                 enforcer: enforcers.Enforcer) -> None:
        self._settings = settings
        self._enforcer = enforcer
        self._modes: dict[str, Mode] = {}
        self._accounts: dict[str, _Account] = {}
        # Those that were let go since the last pass.
        self._left: list[News] = []

    def want(self, domain: hypervisor.Domain, mode: Mode) -> bool:
        """An instance asks for this; that nothing is held is seen to now.

        :returns: whether its guest pays for the host's work.
        """
        if not self._settings.enabled or mode is Mode.NONE:
            self._modes.pop(domain.uuid, None)
            self._end(domain)
            self._left.append(News(domain.uuid, None))
            return False
        self._modes[domain.uuid] = mode
        return mode is Mode.CHARGE

    def forget(self, uuid: str) -> None:
        """The instance is gone."""
        self._modes.pop(uuid, None)
        self._accounts.pop(uuid, None)

    def look(self, domains: Iterable[hypervisor.Domain],
             samples: Iterable[messages.UsageSample],
             threads: Mapping[str, readings.Reading]) -> list[News]:
        """One pass.

        :param domains: every running instance.
        :param samples: what instances used since the last pass.
        :param threads: what their threads did meanwhile, by instance.
        :returns: of the instances of which there is something to tell.
        """
        told, self._left = self._left, []
        if not self._modes and not self._accounts and (
                not self._enforcer.io.holdings()):
            return told
        used = {sample.instance_uuid: sample for sample in samples}
        for domain in domains:
            uuid = domain.uuid
            mode, held = self._modes.get(uuid), self._enforcer.holding(uuid)
            if mode is None or held is None:
                news = self._end(domain)
            elif uuid in used and uuid in threads:
                news = self._settle(
                    domain, mode, held, used[uuid], threads[uuid])
            else:
                continue
            if news is not None:
                told.append(news)
        return told

    def _end(self, domain: hypervisor.Domain) -> News | None:
        account = self._accounts.pop(domain.uuid, None)
        held = self._enforcer.io.holding(domain.uuid)
        if held is not None:
            self._enforcer.release_io(domain)
        if account is None and held is None:
            return None
        return News(domain.uuid, None)

    def _settle(self, domain: hypervisor.Domain, mode: Mode,
                held: in_force.Holding, used: messages.UsageSample,
                reading: readings.Reading) -> News | None:
        account = self._accounts.get(domain.uuid)
        if account is None or account.pid != domain.pid:
            account = self._accounts[domain.uuid] = _Account(domain.pid)
        current = self._enforcer.io.holding(domain.uuid)
        charged = mode is Mode.CHARGE
        wanted = in_force.IoHolding(
            domain.pid, self._promises(account, held, current, reading,
                                       charged), not charged)
        left_us = held.promise.runtime_us
        if charged:
            left_us = self._left_us(account, held, used)
        now_s = time.monotonic()
        if account.retry_s <= now_s:
            account.refusal = self._charge(domain.uuid, held, wanted, left_us)
            if account.refusal is not None:
                account.retry_s = now_s + RETRY_S
        if account.refusal is not None:
            # The guest pays all the same.
            self._charge(domain.uuid, held, current or in_force.IoHolding(
                domain.pid, (), not charged), left_us)
        return self._news(domain.uuid, account, mode, now_s)

    def _promises(self, account: _Account, held: in_force.Holding,
                  current: in_force.IoHolding | None,
                  reading: readings.Reading,
                  charged: bool) -> tuple[base.Promised, ...]:
        uses = sorted(use for use in reading.threads if use.role in SERVING)
        for tid in account.needs.keys() - {use.tid for use in uses}:
            del account.needs[tid]
        period_us = min(held.promise.period_us, self._settings.period_us)
        before = {use.tid: current.of(use.tid) if current else None
                  for use in uses}
        shares, unchanged = {}, set()
        for use in uses:
            need = account.needs.setdefault(
                use.tid, charging.IoNeed(self._settings.policy))
            had = before[use.tid]
            share = float(had.utilisation) if had else 0.0
            need.observe(use.run_ns / 1000, use.wait_ns / 1000,
                         reading.interval_ns / 1000, share)
            shares[use.tid] = need.share(share)
            if had and had.period_us == period_us and (
                    shares[use.tid] == share):
                unchanged.add(use.tid)
        if charged and held.guaranteed:
            bounded = charging.within(shares, float(
                held.bandwidth) * (1 - charging.GUEST_FLOOR))
            unchanged -= {tid for tid in shares
                          if bounded[tid] != shares[tid]}
            shares = bounded
        promises = []
        for index, use in enumerate(uses):
            promise = before[use.tid]
            if promise is None or use.tid not in unchanged or (
                    promise.mode is not held.promise.mode):
                promise = reservation.Reservation(
                    charging.io_runtime_us(
                        shares[use.tid], period_us, self._settings.tick_us),
                    period_us, held.promise.mode)
            promises.append((base.Target(index, use.tid), promise))
        return tuple(promises)

    def _left_us(self, account: _Account, held: in_force.Holding,
                 used: messages.UsageSample) -> int:
        promised, ledger = float(held.bandwidth), account.ledger
        ledger.settle(
            used.guest_us, used.direct_us + used.shared_us,
            used.interval_us, promised,
            held.promise.mode is reservation.Mode.CAPPED)
        needs = account.needs.values()
        coming = sum(need.last for need in needs) if any(
            need.starves for need in needs) else 0.0
        return charging.guest_runtime_us(
            held.promise, held.backend, len(held.targets),
            ledger.guest_share(promised, coming), held.now.runtime_us,
            self._settings.tick_us)

    def _charge(self, uuid: str, held: in_force.Holding,
                wanted: in_force.IoHolding,
                left_us: int) -> errors.Refused | None:
        if not wanted.on_top and held.guaranteed:
            left = (held.bandwidth - wanted.bandwidth) / len(held.targets)
            period_us = held.promise.period_us
            if left * period_us < reservation.least_runtime_us(
                    period_us, self._settings.tick_us):
                return errors.Refused(
                    'of the %d mcpu that the instance is promised its %d '
                    'I/O threads leave too little to the guest' % (
                        held.bandwidth * reservation.MCPU_PER_CPU,
                        len(wanted.promises)), errors.Code.DOES_NOT_FIT)
        try:
            self._enforcer.charge(uuid, wanted, left_us)
        except errors.Refused as refusal:
            return refusal
        return None

    # What there is to tell

    def _news(self, uuid: str, account: _Account, mode: Mode,
              now_s: float) -> News | None:
        refusal = account.refusal
        if refusal is not None and refusal.code == errors.Code.THREADS_GONE:
            # They come and go.
            account.retry_s, refusal = 0.0, None
        report = self._report(uuid, account, mode, refusal)
        told = account.told
        if told is not None and _gist(told) == _gist(report) and (
                now_s < account.told_s + TELL_S or
                not _moved(told, report)):
            return None
        code = str(refusal.code) if refusal else None
        eventful = code != account.told_refusal
        account.told, account.told_s = report, now_s
        account.told_refusal = code
        return News(uuid, report, refusal, eventful)

    def _report(self, uuid: str, account: _Account, mode: Mode,
                refusal: errors.Refused | None) -> messages.IoReport:
        io, held = self._enforcer.io.holding(uuid), (
            self._enforcer.holding(uuid))
        promises = [promise for _, promise in io.promises] if io else []
        return messages.IoReport(
            charging=str(mode), threads=len(promises),
            runtime_us=sum(one.runtime_us for one in promises),
            period_us=promises[0].period_us if promises else None,
            guest_runtime_us=held.now.runtime_us if held else None,
            charged_mcpu=round(
                account.ledger.overhead * reservation.MCPU_PER_CPU)
            if mode is Mode.CHARGE else 0,
            debt_us=round(account.ledger.debt_us),
            code=str(refusal.code) if refusal else None,
            detail=refusal.detail if refusal else None)


def _gist(report: messages.IoReport) -> tuple[ty.Any, ...]:
    return (report.charging, report.threads, report.runtime_us,
            report.period_us, report.code)


def _moved(before: messages.IoReport, now: messages.IoReport) -> bool:
    return abs(before.charged_mcpu - now.charged_mcpu) > max(
        _TELL_MCPU, before.charged_mcpu // 10)
