# SPDX-License-Identifier: Apache-2.0

"""Divides the periods of instances that wait on packets.

Once per pass the communication of each instance determines how finely its
reservation is divided. The rules are in :mod:`vsched_lib.model.granularity`
and know no backend; the enforcer applies the result to the vCPU and the I/O
threads in one step.
"""

from collections.abc import Callable
from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import time
import typing as ty

from oslo_log import log as logging

from vsched_agent.accounting import base as readings
from vsched_agent.communication import base
from vsched_agent.communication import events
from vsched_agent.communication import load as loads
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import applied
from vsched_agent.reservations import enforcer as enforcers
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import granularity
from vsched_lib.model import reservation
from vsched_lib import problem_log

LOG = logging.getLogger(__name__)

Code = errors.Code

#: Time until a refused division is tried again, in seconds.
RETRY_S = 10.0


class Sleeps(ty.Protocol):
    """Implemented by :class:`vsched_agent.host.switches.SleepCounter`."""

    def since(self, tids: Collection[int]) -> Mapping[int, int]:
        """Return how often threads slept since the last call."""


@dataclasses.dataclass(slots=True)
class _Instance:
    """The state of one instance.

    :param divided_s: when its threads were divided last.
    :param retry_s: until when a refused division is not tried again.
    :param refusal: why the last division failed.
    :param reported: what was last reported.
    """

    load: loads.InstanceLoad
    divided_s: float = 0.0
    retry_s: float = 0.0
    refusal: errors.Refused | None = None
    reported: messages.CommunicationReport | None = None


class CommunicationManager:
    """Decides on granularities and has them applied.

    Not thread-safe: the reconciler's thread is its only caller.

    :param settings: the options.
    :param enforcer: applies granularities.
    :param cpus: returns the number of CPUs of the host.
    :param sleeps: counts how often threads sleep.
    :param clock: monotonic, in seconds.
    """

    def __init__(
        self,
        settings: base.Settings,
        enforcer: enforcers.Enforcer,
        cpus: Callable[[], int],
        sleeps: Sleeps,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._enforcer = enforcer
        self._cpus = cpus
        self._sleeps = sleeps
        self._clock = clock
        self._shaper = granularity.Shaper(settings.policy)
        self._problems = problem_log.ProblemLog(LOG)
        self._aware: set[str] = set()
        self._instances: dict[str, _Instance] = {}
        # Instances without a report. Others may have one, by an earlier agent
        # too, which has to be withdrawn at the end.
        self._withdrawn: set[str] = set()

    def set_aware(self, uuid: str, aware: bool) -> None:
        """Set whether the periods of an instance may be divided."""
        if aware and self._settings.enabled:
            self._aware.add(uuid)
        else:
            self._aware.discard(uuid)

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._aware.discard(uuid)
        self._withdrawn.discard(uuid)
        self._instances.pop(uuid, None)
        self._shaper.forget(uuid)

    def adjust(
        self,
        domains: Iterable[hypervisor.Domain],
        samples: Iterable[messages.UsageSample],
        threads: Mapping[str, readings.Reading],
    ) -> list[base.Change]:
        """Run one pass.

        :param domains: every running instance.
        :param samples: what instances used since the last pass.
        :param threads: their threads' CPU time since then, by instance.
        :returns: the changes to report.
        """
        now_s = self._clock()
        used = {sample.instance_uuid: sample for sample in samples}
        changes: list[base.Change] = []
        ranked: dict[str, tuple[applied.Holding, granularity.Demand]] = {}
        asked: list[tuple[str, applied.Holding]] = []
        for domain in domains:
            held = self._enforcer.holding(domain.uuid)
            try:
                if held is None or domain.uuid not in self._aware:
                    changes += self._end(domain.uuid, held)
                elif held.backend is not reservation.Backend.DEADLINE:
                    changes += self._unsupported(domain.uuid, held)
                else:
                    asked.append((domain.uuid, held))
            except Exception as error:
                self._failed(domain.uuid, error)
        sleeps = self._sleeps.since(
            [
                tid
                for uuid, _ in asked
                if uuid in threads and uuid in used and _moved(used[uuid])
                for tid in loads.serving_tids(threads[uuid])
            ]
        )
        for uuid, held in asked:
            try:
                instance = self._instance(uuid, held)
                if uuid in used and uuid in threads:
                    instance.load.observe(
                        now_s, used[uuid], threads[uuid], sleeps, held.now
                    )
                    ranked[uuid] = held, self._demand(uuid, held, instance)
            except Exception as error:
                self._failed(uuid, error)
        desired = self._shaper.decide(
            now_s, [demand for _, demand in ranked.values()], self._cpus()
        )
        for uuid, (held, _) in ranked.items():
            try:
                changes += self._apply(uuid, held, desired.get(uuid), now_s)
            except Exception as error:
                self._failed(uuid, error)
        return changes

    def _failed(self, uuid: str, error: Exception) -> None:
        """Log a failure, which must not affect the other instances."""
        self._problems.failed(
            uuid, error, 'instance %s: dividing periods failed', uuid
        )

    def _instance(self, uuid: str, held: applied.Holding) -> _Instance:
        instance = self._instances.get(uuid)
        if instance is None or instance.load.pid != held.pid:
            before = instance
            instance = _Instance(
                loads.InstanceLoad(
                    held.pid,
                    self._settings.window_s,
                    self._settings.policy.least_pps,
                )
            )
            if before is not None:
                instance.reported = before.reported
            self._instances[uuid] = instance
        return instance

    def _demand(
        self, uuid: str, held: applied.Holding, instance: _Instance
    ) -> granularity.Demand:
        io = self._enforcer.io.holding(uuid)
        finest = instance.load.finest(
            held,
            io,
            self._enforcer.periods.limits,
            self._settings.policy.headroom,
        )
        now_s = self._clock()
        if instance.retry_s > now_s:
            # The kernel has refused it; it keeps what it has.
            finest = finest._replace(rise=min(finest.rise, held.granularity))
        most = instance.load.trial.limit(now_s)
        finest = finest._replace(
            stay=min(finest.stay, most), rise=min(finest.rise, most)
        )
        return granularity.Demand(
            uuid,
            instance.load.intensity,
            finest.bound,
            finest.stay,
            finest.rise,
            granularity.periods_per_s(held.now) * len(held.targets)
            + sum(
                granularity.periods_per_s(one)
                for _, one in (io.reservations if io else ())
            ),
            held.granularity,
        )

    def _apply(
        self,
        uuid: str,
        held: applied.Holding,
        desired: int | None,
        now_s: float,
    ) -> list[base.Change]:
        instance, event = self._instances[uuid], None
        io, limits = (
            self._enforcer.io.holding(uuid),
            self._enforcer.periods.limits,
        )
        policy = self._settings.policy
        if desired is None and (
            held.granularity > 1
            and now_s >= instance.retry_s
            and (
                (
                    instance.load.io.too_fine(io, limits)
                    and now_s >= instance.divided_s + policy.rise_s
                )
                or (
                    now_s >= instance.divided_s + policy.hold_s
                    and self._io_may_rise(instance, io, held.granularity)
                )
            )
        ):
            # Only its I/O threads change.
            desired = held.granularity
        if desired is not None:
            instance.divided_s = now_s
            refusal = self._divide(
                uuid,
                desired,
                instance.load.io.parts(io, desired, limits, policy.headroom),
            )
            if refusal is not None:
                instance.retry_s = now_s + RETRY_S
                if instance.refusal is None:
                    event = events.refused(held, desired, refusal)
            elif desired != held.granularity:
                event = events.divided(
                    held, desired, self._why(instance, held, now_s)
                )
            instance.refusal = refusal
        elif instance.load.intensity < policy.least_pps:
            instance.refusal = None
        held = self._enforcer.holding(uuid) or held
        return self._change(
            uuid, held, self._problem(instance, held, io), event
        )

    def _why(
        self, instance: _Instance, held: applied.Holding, now_s: float
    ) -> str:
        """Return why the granularity changes, as part of a sentence."""
        trial = instance.load.trial
        if trial.failed is not None and held.granularity > trial.limit(now_s):
            return events.no_gain(trial.failed)
        return events.why(instance.load)

    def _io_may_rise(
        self, instance: _Instance, io: applied.IoHolding | None, most: int
    ) -> bool:
        parts = instance.load.io.parts(
            io,
            most,
            self._enforcer.periods.limits,
            self._settings.policy.headroom,
        )
        return any(
            parts[target.tid] > reserved.granularity
            for target, reserved in (io.reservations if io else ())
        )

    def _problem(
        self,
        instance: _Instance,
        held: applied.Holding,
        io: applied.IoHolding | None,
    ) -> tuple[errors.Code, str] | None:
        """Return why the periods are not divided, if that can be helped."""
        if instance.refusal is not None:
            return instance.refusal.code, instance.refusal.detail
        if (
            held.granularity == 1
            and instance.load.intensity >= self._settings.policy.least_pps
            and instance.load.known
            and not instance.load.io.held(io)
        ):
            return (
                Code.COMMUNICATION_IO_UNHELD,
                'the thread that serves its network has no reservation; '
                'dividing the periods of its vCPUs alone gains nothing',
            )
        return None

    def _divide(
        self, uuid: str, parts: int, io_parts: Mapping[int, int]
    ) -> errors.Refused | None:
        try:
            self._enforcer.periods.divide(uuid, parts, io_parts)
        except errors.Refused as refusal:
            return refusal
        return None

    def _end(
        self, uuid: str, held: applied.Holding | None
    ) -> list[base.Change]:
        """Undo the division of an instance that is not to have one."""
        event = None
        if held is not None and held.granularity > 1:
            refusal = self._divide(uuid, 1, {})
            if refusal is not None:
                # The next pass tries again.
                return []
            event = events.divided(held, 1, 'it is switched off')
        self._instances.pop(uuid, None)
        self._shaper.forget(uuid)
        if event is None and uuid in self._withdrawn:
            return []
        self._withdrawn.add(uuid)
        return [base.Change(uuid, None, event)]

    def _unsupported(
        self, uuid: str, held: applied.Holding
    ) -> list[base.Change]:
        return self._change(
            uuid,
            held,
            (
                Code.COMMUNICATION_UNSUPPORTED,
                'periods of backend %s are not divided: only those of '
                'backend deadline are' % held.backend,
            ),
            None,
        )

    def _change(
        self,
        uuid: str,
        held: applied.Holding,
        problem: tuple[errors.Code, str] | None,
        event: base.Event | None,
    ) -> list[base.Change]:
        instance = self._instance(uuid, held)
        code, detail = problem or (None, None)
        runtime_ns, period_ns = dataclasses.replace(
            held.reserved, granularity=held.granularity
        ).divided_ns
        report = messages.CommunicationReport(
            held.granularity,
            runtime_ns,
            period_ns,
            None if code is None else str(code),
            detail,
        )
        if event is None and instance.reported == report:
            return []
        instance.reported = report
        self._withdrawn.discard(uuid)
        return [base.Change(uuid, report, event)]


def _moved(used: messages.UsageSample) -> bool:
    return used.net_rx_packets > 0 or used.net_tx_packets > 0
