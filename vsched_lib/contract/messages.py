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

"""What agents, collector and API say to each other.

Plain values that turn into JSON objects and back. A reader ignores keys it
does not know, so that a newer writer may add some; a missing or ill-typed
one is an error that names it.

Times are seconds since the epoch (UTC, float), durations carry their unit.
"""

import dataclasses
import enum
import typing as ty

from vsched_lib.contract import balloons as balloon_messages
from vsched_lib.contract import placement as names
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire


class Source(enum.StrEnum):
    """Where the wanted reservation of an instance comes from."""

    METADATA = 'metadata'
    OVERRIDE = 'override'
    NONE = 'none'


class State(enum.StrEnum):
    """How far a reservation has got."""

    PENDING = 'pending'
    APPLIED = 'applied'
    DEGRADED = 'degraded'
    REFUSED = 'refused'
    RELEASED = 'released'


class Severity(enum.StrEnum):
    """How loudly an event asks for an operator."""

    INFO = 'info'
    WARNING = 'warning'
    ERROR = 'error'


class JobKind(enum.StrEnum):
    """What a host is asked to do."""

    PROFILE_ERROR = 'profile-error'
    PROFILE_OVERHEAD = 'profile-overhead'


class JobWanted(enum.StrEnum):
    """What an operator wants of a job."""

    RUN = 'run'
    CANCEL = 'cancel'


class JobState(enum.StrEnum):
    """How far a job has got."""

    QUEUED = 'queued'
    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'
    CANCELLED = 'cancelled'


@dataclasses.dataclass(frozen=True, slots=True)
class BackendInfo(wire.Message):
    """Whether a host can use a backend, and if not, why."""

    name: str
    usable: bool
    reasons: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostInfo(wire.Message):
    """What a host is and can promise.

    :param capacity_mcpu: what reservations may use in total.
    :param admitted_mcpu: what applied reservations use now.
    :param reserve_mcpu: kept back for the host.
    :param leaked_mcpu: what the kernel counts as taken and nobody holds.
    :param placement: how it stands with placement; None from an agent that
        does not tell.
    :param policy: what its agent makes of what it has measured; likewise.
    :param budget_check_us: how soon budgets that end are looked at; 0
        for never.
    """

    agent_version: str
    kernel: str
    boot_id: str
    hypervisor: str
    cpus: int
    tick_us: int
    capacity_mcpu: int
    admitted_mcpu: int
    reserve_mcpu: int
    backends: tuple[BackendInfo, ...] = ()
    leaked_mcpu: int = 0
    placement: names.PlacementInfo | None = None
    policy: policies.HostPolicy | None = None
    budget_check_us: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceInfo(wire.Message):
    """One instance running on a host.

    :param workload_class: what it mostly does, if its flavor says.
    """

    instance_uuid: str
    name: str
    vcpus: int
    workload_class: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class IoReport(wire.Message):
    """What the host's threads for one instance hold, and who pays.

    :param charging: :class:`extra_specs.IoCharging`: charge or
        overprovision.
    :param threads: emulator, I/O threads and vhost's workers that hold a
        reservation.
    :param runtime_us: of all of them together in every period.
    :param period_us: None when they hold nothing.
    :param guest_runtime_us: what is left to each vCPU in its own period.
    :param charged_mcpu: what the host's work is taken to need of the
        instance's promise.
    :param debt_us: what was used too much, and is paid back.
    :param code: a :class:`errors.Code` when the threads do not hold what
        they should.
    """

    charging: str
    threads: int = 0
    runtime_us: int = 0
    period_us: int | None = None
    guest_runtime_us: int | None = None
    charged_mcpu: int = 0
    debt_us: int = 0
    code: str | None = None
    detail: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReservationReport(wire.Message):
    """Where one instance's reservation stands on its host.

    ``runtime_us``, ``period_us``, ``mode``, ``backend`` are what is wanted;
    ``enforced_*`` what the kernel was last seen to hold, None when nothing.

    :param generation: of the override this answers, 0 for metadata.
    :param since: when the state was entered.
    :param attested_at: when the kernel was last compared with the plan.
    :param code: a :class:`errors.Code` when not held as written.
    :param io: of the host's threads for it; None when they are left alone.
        While the instance is charged, its vCPUs hold ``guest_runtime_us``
        and not all of what is enforced.
    """

    instance_uuid: str
    source: Source
    state: State
    vcpus: int
    since: float
    generation: int = 0
    runtime_us: int | None = None
    period_us: int | None = None
    mode: str | None = None
    backend: str | None = None
    enforced_backend: str | None = None
    enforced_runtime_us: int | None = None
    enforced_period_us: int | None = None
    attested_at: float | None = None
    code: str | None = None
    detail: str | None = None
    figures: dict[str, ty.Any] = dataclasses.field(default_factory=dict)
    io: IoReport | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class UsageSample(wire.Message):
    """CPU time of one instance in one interval.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param guest_us: run time of all vCPU threads.
    :param wait_us: time vCPU threads were runnable but not running.
    :param promised_us: Σ Q/P × interval of what is enforced; None without a
        reservation.
    :param direct_us: CPU time that the host's own threads for the instance
        used: emulator, I/O threads, vhost.
    :param direct_wait_us: time those threads were runnable but not running.
    :param shared_us: its part of the host's work that no thread owns,
        such as interrupts; an estimate, and in no other instance's.
    :param wakeups: how often the host's threads for it began to run.
    :param net_rx_packets: that the guest received; so of the others: the
        guest's point of view.
    :param disk_read_requests: that its disks completed.
    """

    instance_uuid: str
    at: float
    interval_us: int
    guest_us: int
    wait_us: int
    promised_us: int | None = None
    direct_us: int = 0
    direct_wait_us: int = 0
    shared_us: int = 0
    wakeups: int = 0
    net_rx_packets: int = 0
    net_tx_packets: int = 0
    disk_read_requests: int = 0
    disk_write_requests: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class HostUsage(wire.Message):
    """What all CPUs of a host did in one interval.

    ``idle_us + steal_us + guest_us + direct_us + shared_us + own_us`` is
    ``cpus`` times the interval, but for the instant between the readings.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: that were online all the time.
    :param steal_us: taken by the hypervisor below, where there is one.
    :param irq_us: in interrupts, where the kernel tells; part of the others.
    :param guest_us: of all instances; so are direct and shared.
    :param own_us: what the host did beside its instances.
    """

    at: float
    interval_us: int
    cpus: int
    idle_us: int
    steal_us: int
    irq_us: int
    guest_us: int
    direct_us: int
    shared_us: int
    own_us: int


@dataclasses.dataclass(frozen=True, slots=True)
class Event(wire.Message):
    """Something an operator may want to know.

    :param uuid: identifies the event, so that a repeat is seen as one.
    :param code: an :class:`errors.Code`.
    :param detail: one sentence with the figures.
    """

    uuid: str
    at: float
    code: str
    severity: Severity
    detail: str
    instance_uuid: str | None = None
    figures: dict[str, ty.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class JobOrder(wire.Message):
    """Something an operator wants a host to do, or to stop doing.

    :param parameters: of the kind; checked before it gets here.
    :param attempt: how often it was ordered to run, from 1: a resumed job
        has a higher one.
    """

    uuid: str
    kind: JobKind
    wanted: JobWanted
    attempt: int = 1
    parameters: dict[str, ty.Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Jobs(wire.Message):
    """Every unfinished job of one host, and the generation of the list."""

    generation: int
    orders: tuple[JobOrder, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class JobReport(wire.Message):
    """How far a job has got.

    :param attempt: of the order that this answers.
    :param progress_ppm: what part of the work is done.
    :param detail: what it does now, what came out, or why it failed.
    """

    uuid: str
    attempt: int
    state: JobState
    progress_ppm: int
    at: float
    detail: str = ''


@dataclasses.dataclass(frozen=True, slots=True)
class Report(wire.Message):
    """One batch from one agent.

    Batches of a host are numbered upwards and sent in order; one whose
    number is not above the last stored is a repeat and changes nothing. A
    gap means that the agent's bounded buffer dropped its oldest.

    :param host_info: present in the first batch and when it changed.
    :param instances: the whole list when it changed, else None. An
        instance that is not in it has left the host.
    :param reservations: those whose report changed since the last batch.
    :param jobs: those that got further.
    :param error_profiles: those that are new; so are overhead profiles.
    :param host_usage: what the host's CPUs did.
    :param balloons: those whose report changed.
    :param all_balloons: these are all that there are.
    :param balloon_changes: those that began, or of which more is known.
    """

    host: str
    batch: int
    at: float
    host_info: HostInfo | None = None
    instances: tuple[InstanceInfo, ...] | None = None
    reservations: tuple[ReservationReport, ...] = ()
    usage: tuple[UsageSample, ...] = ()
    events: tuple[Event, ...] = ()
    jobs: tuple[JobReport, ...] = ()
    error_profiles: tuple[profiles.ErrorProfile, ...] = ()
    host_usage: tuple[HostUsage, ...] = ()
    overhead_profiles: tuple[profiles.OverheadProfile, ...] = ()
    balloons: tuple[balloon_messages.BalloonReport, ...] = ()
    all_balloons: bool = False
    balloon_changes: tuple[balloon_messages.BalloonChange, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ReportReply(wire.Message):
    """The collector's answer: the batch is stored for good.

    :param duplicate: the batch had been stored before.
    :param overrides_generation: the host's newest; an agent that knows an
        older one asks for the overrides.
    :param jobs_generation: likewise of the host's jobs.
    :param resync: the collector misses what earlier batches told of the
        host, e.g. after a restored database: the next one should be full.
    """

    duplicate: bool
    overrides_generation: int
    resync: bool = False
    jobs_generation: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Override(wire.Message):
    """A reservation that an operator set over what the flavor says."""

    instance_uuid: str
    generation: int
    runtime_us: int
    period_us: int
    mode: str
    backend: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Overrides(wire.Message):
    """Every override of one host, and the generation they add up to.

    :param balloons: what operators want of ballooning there.
    """

    generation: int
    overrides: tuple[Override, ...] = ()
    balloons: tuple[balloon_messages.BalloonOrder, ...] = ()
