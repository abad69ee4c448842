# SPDX-License-Identifier: Apache-2.0

"""A simulated host: its instances, and what its agent reports."""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import random
import typing as ty
import uuid

from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import placement
from vsched_lib.contract import policy
from vsched_lib.model import reservation
from vsched_standalone.demo import balloons
from vsched_standalone.demo import instance as instances
from vsched_standalone.demo import jobs
from vsched_standalone.demo import profiles
from vsched_standalone.demo import usage as usages

#: As in ``HostInfo.agent_version`` and ``.hypervisor``.
SIMULATED = 'simulated'

#: The part of its CPUs that a host can reserve, and what is kept back of it.
_CAPACITY_MCPU = 950
_RESERVE_MCPU = 500
_BACKENDS = ('deadline', 'cfs')

_POLICY = policy.HostPolicy(0.95, 200_000, 1_000_000, False)

#: As the doctor reports the tick of the simulated kernels.
_FINDINGS = (
    messages.HostFinding(
        messages.FindingLevel.NOTE.value,
        'tick',
        'a tick is %d us: a budget is overrun by up to that and the thread '
        'waits until it is earned back' % profiles.TICK_US,
        'a kernel with CONFIG_HZ=1000 makes bursts four times finer',
    ),
)

Severity = messages.Severity
State = messages.State
Code = errors.Code


class Host:
    """One host and the state that its agent would have.

    :param name: of the host.
    :param cpus: that it has.
    :param members: its instances.
    :param balloon_uuids: those whose flavor permits balloons.
    :param draw: of the host: equal ones make equal hosts.
    :param now: in seconds since the epoch.
    :param leaked_mcpu: see ``HostInfo``.
    """

    def __init__(
        self,
        name: str,
        cpus: int,
        members: Sequence[instances.Instance],
        balloon_uuids: Sequence[str],
        draw: random.Random,
        now: float,
        leaked_mcpu: int = 0,
    ) -> None:
        self.name = name
        self._cpus = cpus
        self._instances = {one.uuid: one for one in members}
        self._leaked_mcpu = leaked_mcpu
        self._boot_id = str(uuid.UUID(int=draw.getrandbits(128), version=4))
        self._provider_uuid = str(
            uuid.UUID(int=draw.getrandbits(128), version=4)
        )
        self._events: list[messages.Event] = []
        self._changed: dict[str, messages.ReservationReport] = {}
        self._reports: dict[str, messages.ReservationReport] = {}
        self._overridden: dict[str, collector_replies.Override] = {}
        self._info: messages.HostInfo | None = None
        self.jobs = jobs.Jobs(draw, cpus)
        self._profiles = self.jobs.initial(now)
        self._balloons = balloons.Balloons(
            [self._instances[one] for one in balloon_uuids], now
        )
        self.overrides_generation = 0
        self._draw = draw
        self._event(
            Code.AGENT_STARTED,
            Severity.INFO,
            'simulated agent: %d instances are running' % len(members),
            now,
        )
        for one in members:
            self._apply(one, one.flavor, None, now)

    @property
    def capacity_mcpu(self) -> int:
        """Return what reservations may use in total."""
        return self._cpus * _CAPACITY_MCPU - _RESERVE_MCPU - self._leaked_mcpu

    @property
    def admitted_mcpu(self) -> int:
        """Return what reservations in force use."""
        return sum(one.enforced_mcpu for one in self._instances.values())

    def take_vcpus(self, uuid_: str, online_vcpus: int, now: float) -> None:
        """Keep an instance at fewer vCPUs; it is one with balloons."""
        self._balloons.take(uuid_, online_vcpus, now)

    def repair_drift(self, now: float) -> None:
        """Report a repaired difference of one reservation in force."""
        held = [one for one in self._reports.values() if one.enforced_backend]
        if not held:
            return
        found = self._draw.choice(held)
        name = self._instances[found.instance_uuid].info.name
        self._event(
            Code.DRIFT_REPAIRED,
            Severity.WARNING,
            '%s: 1 vCPU thread had another policy; it holds its reservation '
            'again (simulated)' % name,
            now,
            found.instance_uuid,
        )

    def set_overrides(
        self, found: collector_replies.Overrides, now: float
    ) -> None:
        """Apply what operators have set; reset the rest to flavors."""
        self.overrides_generation = found.generation
        by_uuid = {
            one.instance_uuid: one
            for one in found.overrides
            if one.instance_uuid in self._instances
        }
        for uuid_, instance in self._instances.items():
            override = by_uuid.get(uuid_)
            if override is None:
                if self._overridden.pop(uuid_, None) is not None:
                    self._apply(instance, instance.flavor, None, now)
            elif override != self._overridden.get(uuid_):
                self._overridden[uuid_] = override
                self._override(instance, override, now)
        self._balloons.set_orders(found.balloons, now)

    def _override(
        self,
        instance: instances.Instance,
        override: collector_replies.Override,
        now: float,
    ) -> None:
        try:
            desired = reservation.Reservation(
                override.runtime_us,
                override.period_us,
                reservation.Mode(override.mode),
                None
                if override.backend is None
                else reservation.Backend(override.backend),
            )
        except ValueError as problem:
            self._note(
                instance,
                override,
                None,
                State.REFUSED,
                errors.Refused(str(problem), Code.RESERVATION_INVALID),
                now,
            )
        else:
            self._apply(instance, desired, override, now)

    def _apply(
        self,
        instance: instances.Instance,
        desired: reservation.Reservation | None,
        override: collector_replies.Override | None,
        now: float,
    ) -> None:
        if desired is None:
            if instance.enforced is None:
                return
            instance.enforced = None
            self._note(instance, override, None, State.RELEASED, None, now)
            return
        held = dataclasses.replace(
            desired, backend=desired.backend or reservation.Backend.DEADLINE
        )
        try:
            self._admit(instance, held)
        except errors.Refused as refusal:
            self._note(
                instance, override, desired, State.REFUSED, refusal, now
            )
            return
        instance.enforced = held
        self._note(instance, override, desired, State.APPLIED, None, now)

    def _admit(
        self, instance: instances.Instance, held: reservation.Reservation
    ) -> None:
        if held.backend not in _BACKENDS:
            raise errors.Refused(
                'this host has no backend %s; it has %s'
                % (held.backend, ', '.join(_BACKENDS)),
                Code.BACKEND_UNAVAILABLE,
            )
        problems = held.problems(held.backend, profiles.TICK_US)
        if problems:
            raise errors.Refused(problems[0], Code.RESERVATION_INVALID)
        if held.backend not in reservation.GUARANTEES:
            return
        asked_mcpu = held.bandwidth_mcpu(instance.info.vcpus)
        needed_mcpu = self.admitted_mcpu - instance.enforced_mcpu + asked_mcpu
        if needed_mcpu > self.capacity_mcpu:
            raise errors.Refused(
                '%d mcpu asked; all reservations would need %d of %d mcpu'
                % (asked_mcpu, needed_mcpu, self.capacity_mcpu),
                Code.DOES_NOT_FIT,
                {
                    'asked_mcpu': asked_mcpu,
                    'needed_mcpu': needed_mcpu,
                    'allowed_mcpu': self.capacity_mcpu,
                    'capacity_mcpu': self.capacity_mcpu,
                    'test': 'bandwidth',
                    'cpu': None,
                },
            )

    def _note(
        self,
        instance: instances.Instance,
        override: collector_replies.Override | None,
        desired: reservation.Reservation | None,
        state: State,
        cause: errors.Refused | None,
        now: float,
    ) -> None:
        """Report the state of a reservation, with an event."""
        held = instance.enforced
        report = messages.ReservationReport(
            instance_uuid=instance.uuid,
            source=messages.Source.METADATA
            if override is None
            else messages.Source.OVERRIDE,
            state=state,
            vcpus=instance.info.vcpus,
            since=now,
            generation=0 if override is None else override.generation,
            runtime_us=desired.runtime_us if desired else None,
            period_us=desired.period_us if desired else None,
            mode=str(desired.mode) if desired else None,
            backend=desired.backend if desired else None,
            enforced_backend=held.backend if held else None,
            enforced_runtime_us=held.runtime_us if held else None,
            enforced_period_us=held.period_us if held else None,
            attested_at=now if held else None,
            code=str(cause.code) if cause else None,
            detail=cause.detail if cause else None,
            figures=cause.figures if cause else {},
        )
        self._reports[instance.uuid] = self._changed[instance.uuid] = report
        figures = dict(report.figures)
        if override is not None and override.request_id is not None:
            figures['request_id'] = override.request_id
        if cause is not None:
            code, severity = cause.code, Severity.ERROR
            text = '%s (it keeps what it had)' % cause.detail
        elif held is None:
            code, severity = Code.RESERVATION_RELEASED, Severity.INFO
            text = 'its reservation is released'
        else:
            code, severity = Code.RESERVATION_APPLIED, Severity.INFO
            text = '%d vCPUs hold %d us every %d us by %s' % (
                instance.info.vcpus,
                held.runtime_us,
                held.period_us,
                held.backend,
            )
        self._event(
            code,
            severity,
            '%s: %s' % (instance.info.name, text),
            now,
            instance.uuid,
            figures,
        )

    def _event(
        self,
        code: Code,
        severity: Severity,
        detail: str,
        now: float,
        instance_uuid: str | None = None,
        figures: Mapping[str, ty.Any] | None = None,
    ) -> None:
        self._events.append(
            messages.Event(
                str(uuid.uuid4()),
                now,
                code,
                severity,
                detail,
                instance_uuid,
                dict(figures or {}),
            )
        )

    def contents(
        self, now: float, times: Sequence[tuple[float, int]], full: bool
    ) -> dict[str, ty.Any]:
        """Return the fields of the next report.

        :param times: ends and lengths in microseconds of the intervals whose
            CPU time is reported.
        :param full: whether everything is reported, not only changes.
        """
        usage: list[messages.UsageSample] = []
        host_usage = []
        for at, interval_us in times:
            samples, used = usages.account(
                self._cpus, self._instances.values(), at, interval_us
            )
            usage += samples
            host_usage.append(used)
        job_reports, error_profiles, overhead_profiles = self.jobs.advance(now)
        info = self._host_info()
        found: dict[str, ty.Any] = {
            'usage': tuple(usage),
            'host_usage': tuple(host_usage),
            'events': tuple(self._events),
            'jobs': tuple(job_reports),
            'balloon_changes': self._balloons.sent_changes(),
        }
        reports = self._reports if full else self._changed
        found['reservations'] = tuple(reports.values())
        found['balloons'] = self._balloons.reports
        found['all_balloons'] = full
        if full:
            found['instances'] = tuple(
                one.info for one in self._instances.values()
            )
            error_profiles.insert(0, self._profiles[0])
            overhead_profiles.insert(0, self._profiles[1])
        if full or info != self._info:
            found['host_info'] = info
        found['error_profiles'] = tuple(error_profiles)
        found['overhead_profiles'] = tuple(overhead_profiles)
        self._info = info
        self._events = []
        self._changed = {}
        return found

    def _host_info(self) -> messages.HostInfo:
        return messages.HostInfo(
            agent_version=SIMULATED,
            kernel=profiles.KERNEL,
            boot_id=self._boot_id,
            hypervisor=SIMULATED,
            cpus=self._cpus,
            tick_us=profiles.TICK_US,
            capacity_mcpu=self.capacity_mcpu,
            admitted_mcpu=self.admitted_mcpu,
            reserve_mcpu=_RESERVE_MCPU,
            backends=tuple(
                messages.BackendInfo(name, True) for name in _BACKENDS
            ),
            leaked_mcpu=self._leaked_mcpu,
            placement=placement.PlacementInfo(
                placement.PlacementState.SYNCED,
                provider_uuid=self._provider_uuid,
                offered_mcpu=self.capacity_mcpu,
                claimed_mcpu=self.admitted_mcpu,
            ),
            policy=_POLICY,
            findings=_FINDINGS,
        )
