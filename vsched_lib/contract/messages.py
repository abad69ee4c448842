# SPDX-License-Identifier: Apache-2.0

"""The messages of agents, collector and API.

Plain values that are converted to JSON objects and back. A reader ignores
keys it does not know, so that a newer writer may add some; a missing or
ill-typed one is an error that names it.

Times are seconds since the epoch (UTC, float), durations carry their unit.
"""

import dataclasses
import enum
import typing as ty

from vsched_lib.contract import balloons as balloon_messages
from vsched_lib.contract import bounds
from vsched_lib.contract import placement as names
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import executions as model

#: Most findings that a host reports.
MAX_FINDINGS = 64


class Source(enum.StrEnum):
    """Where the desired reservation of an instance comes from."""

    METADATA = 'metadata'
    OVERRIDE = 'override'
    NONE = 'none'


class State(enum.StrEnum):
    """The state of a reservation."""

    PENDING = 'pending'
    APPLIED = 'applied'
    DEGRADED = 'degraded'
    REFUSED = 'refused'
    RELEASED = 'released'


class Severity(enum.StrEnum):
    """How urgent an event is for an operator."""

    INFO = 'info'
    WARNING = 'warning'
    ERROR = 'error'


class JobKind(enum.StrEnum):
    """The kinds of jobs of a host."""

    PROFILE_ERROR = 'profile-error'
    PROFILE_OVERHEAD = 'profile-overhead'


class JobWanted(enum.StrEnum):
    """The desired state of a job."""

    RUN = 'run'
    CANCEL = 'cancel'


class JobState(enum.StrEnum):
    """The state of a job."""

    QUEUED = 'queued'
    RUNNING = 'running'
    DONE = 'done'
    FAILED = 'failed'
    CANCELLED = 'cancelled'


class FindingLevel(enum.StrEnum):
    """How urgent a finding of the doctor is."""

    NOTE = 'note'
    PROBLEM = 'problem'


@dataclasses.dataclass(frozen=True, slots=True)
class BackendInfo(wire.Message):
    """Whether a host can use a backend, and if not, why."""

    name: bounds.Word
    usable: bool
    reasons: ty.Annotated[tuple[bounds.Sentence, ...], bounds.Items(64)] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostFinding(wire.Message):
    """Something that limits what a host can enforce.

    :param level: a :class:`FindingLevel`, or one of a newer agent.
    :param subject: what was checked.
    :param text: what was found.
    :param remedy: what an operator can do about it; may be empty.
    """

    level: bounds.Word
    subject: bounds.Name
    text: bounds.Sentence
    remedy: bounds.Sentence = ''


@dataclasses.dataclass(frozen=True, slots=True)
class HostInfo(wire.Message):
    """Facts and capacity of a host.

    :param capacity_mcpu: what reservations may use in total.
    :param admitted_mcpu: what applied reservations use now.
    :param reserve_mcpu: kept back for the host.
    :param leaked_mcpu: bandwidth that the kernel counts and no thread has.
    :param placement: its state in placement; None from an agent that does
        not report it.
    :param policy: how its agent uses its measurements; likewise.
    :param budget_check_us: how soon expired budgets are checked; 0 for
        never.
    :param findings: of the doctor's checks that only read; None from an
        agent that does not report them.
    """

    agent_version: bounds.Name
    kernel: bounds.Name
    boot_id: bounds.Name
    hypervisor: bounds.Name
    cpus: bounds.Cpus
    tick_us: bounds.Microseconds
    capacity_mcpu: bounds.Mcpu
    admitted_mcpu: bounds.Mcpu
    reserve_mcpu: bounds.Mcpu
    backends: ty.Annotated[tuple[BackendInfo, ...], bounds.Items(16)] = ()
    leaked_mcpu: bounds.Mcpu = 0
    placement: names.PlacementInfo | None = None
    policy: policies.HostPolicy | None = None
    budget_check_us: bounds.Microseconds = 0
    findings: (
        ty.Annotated[tuple[HostFinding, ...], bounds.Items(MAX_FINDINGS)]
        | None
    ) = None


@dataclasses.dataclass(frozen=True, slots=True)
class InstanceInfo(wire.Message):
    """One instance running on a host.

    :param name: the hypervisor's.
    :param workload_class: of its flavor, if it has one.
    :param server_name: the name that its owner gave it; None without Nova's
        metadata, and so the following.
    :param project_id: the project that owns it.
    :param flavor_name: the name of its flavor.
    """

    instance_uuid: bounds.Uuid
    name: bounds.Name
    vcpus: bounds.Vcpus
    workload_class: bounds.Word | None = None
    server_name: bounds.Name | None = None
    project_id: bounds.Word | None = None
    flavor_name: bounds.Name | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class IoReport(wire.Message):
    """The reservations of the host's threads for one instance.

    :param charging: :class:`extra_specs.IoCharging`: auto, charge or
        overprovision.
    :param threads: emulator, I/O threads and vhost's workers that hold a
        reservation.
    :param runtime_us: of all of them together in every period.
    :param period_us: None when they hold nothing.
    :param guest_runtime_us: what each vCPU keeps in its own period.
    :param charged_mcpu: the expected part of the host's work in the
        instance's reservation.
    :param debt_us: what was used in excess, and is paid back.
    :param code: a :class:`errors.Code` when the threads do not have their
        reservations.
    """

    charging: bounds.Word
    threads: bounds.Count = 0
    runtime_us: bounds.Microseconds = 0
    period_us: bounds.Microseconds | None = None
    guest_runtime_us: bounds.Microseconds | None = None
    charged_mcpu: bounds.Mcpu = 0
    debt_us: bounds.CpuTime = 0
    code: bounds.Word | None = None
    detail: bounds.Sentence | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class CommunicationReport(wire.Message):
    """How finely the periods of one instance are divided.

    :param granularity: into how many parts; its I/O threads have at most as
        many.
    :param runtime_ns: of one part, for each vCPU; the host's work that is
        charged to the instance lowers it.
    :param code: a :class:`errors.Code` when periods cannot be divided.
    """

    granularity: bounds.Granularity
    runtime_ns: bounds.Number | None = None
    period_ns: bounds.Number | None = None
    code: bounds.Word | None = None
    detail: bounds.Sentence | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class ReservationReport(wire.Message):
    """The state of one instance's reservation on its host.

    ``runtime_us``, ``period_us``, ``mode``, ``backend`` are desired;
    ``enforced_*`` is what the kernel had at the last check, or None.

    :param generation: of the override this answers, 0 for metadata.
    :param since: when the state was entered.
    :param attested_at: when the kernel was last compared with the plan.
    :param code: a :class:`errors.Code` when not held as written.
    :param io: of the host's threads for it; None when they are not managed.
        While the instance is charged, its vCPUs hold ``guest_runtime_us``
        and not all of what is enforced.
    :param communication: None when its periods are not to be divided.
    """

    instance_uuid: bounds.Uuid
    source: Source
    state: State
    vcpus: bounds.Vcpus
    since: bounds.Seconds
    generation: bounds.Number = 0
    runtime_us: bounds.Number | None = None
    period_us: bounds.Number | None = None
    mode: bounds.Word | None = None
    backend: bounds.Word | None = None
    enforced_backend: bounds.Word | None = None
    enforced_runtime_us: bounds.Number | None = None
    enforced_period_us: bounds.Number | None = None
    attested_at: bounds.Seconds | None = None
    code: bounds.Word | None = None
    detail: bounds.Sentence | None = None
    figures: bounds.Figures = dataclasses.field(default_factory=dict)
    io: IoReport | None = None
    communication: CommunicationReport | None = None


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
    :param net_rx_packets: that the guest received; likewise the others, from
        the guest's point of view.
    :param disk_read_requests: that its disks completed.
    :param executions: :class:`vsched_lib.model.executions.Counts`, a list to
        keep reports small; a newer agent may append values. None from an
        agent that does not report it.
    """

    instance_uuid: bounds.Uuid
    at: bounds.Seconds
    interval_us: bounds.Interval
    guest_us: bounds.CpuTime
    wait_us: bounds.CpuTime
    promised_us: bounds.CpuTime | None = None
    direct_us: bounds.CpuTime = 0
    direct_wait_us: bounds.CpuTime = 0
    shared_us: bounds.CpuTime = 0
    wakeups: bounds.Count = 0
    net_rx_packets: bounds.Count = 0
    net_tx_packets: bounds.Count = 0
    disk_read_requests: bounds.Count = 0
    disk_write_requests: bounds.Count = 0
    executions: (
        ty.Annotated[
            tuple[bounds.Count, ...], bounds.Items(16, len(model.COUNTS))
        ]
        | None
    ) = None


@dataclasses.dataclass(frozen=True, slots=True)
class HostUsage(wire.Message):
    """What all CPUs of a host did in one interval.

    ``idle_us + steal_us + guest_us + direct_us + shared_us + own_us`` is
    ``cpus`` times the interval, except for the time between the readings.

    :param at: end of the interval.
    :param interval_us: its measured length.
    :param cpus: that were online all the time.
    :param steal_us: taken by the hypervisor below, where there is one.
    :param irq_us: in interrupts, where the kernel counts it; in the others.
    :param guest_us: of all instances; likewise direct and shared.
    :param own_us: the rest of the host's CPU time.
    """

    at: bounds.Seconds
    interval_us: bounds.Interval
    cpus: bounds.Cpus
    idle_us: bounds.CpuTime
    steal_us: bounds.CpuTime
    irq_us: bounds.CpuTime
    guest_us: bounds.CpuTime
    direct_us: bounds.CpuTime
    shared_us: bounds.CpuTime
    own_us: bounds.CpuTime


@dataclasses.dataclass(frozen=True, slots=True)
class Event(wire.Message):
    """An event for operators.

    :param uuid: identifies the event, so that repeats are recognised.
    :param code: an :class:`errors.Code`.
    :param detail: one sentence with the figures.
    """

    uuid: bounds.Uuid
    at: bounds.Seconds
    code: bounds.Word
    severity: Severity
    detail: bounds.Sentence
    instance_uuid: bounds.Uuid | None = None
    figures: bounds.Figures = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class JobOrder(wire.Message):
    """A job that an operator starts or cancels on a host.

    :param parameters: of the kind; already checked.
    :param attempt: how often it was started, from 1: a resumed job has a
        higher one.
    """

    uuid: bounds.Uuid
    kind: JobKind
    wanted: JobWanted
    attempt: bounds.Count = 1
    parameters: bounds.Figures = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Jobs(wire.Message):
    """Every unfinished job of one host, and the generation of the list."""

    generation: bounds.Number
    orders: ty.Annotated[tuple[JobOrder, ...], bounds.Items(1000)] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class JobReport(wire.Message):
    """The state of a job.

    :param attempt: of the order that this answers.
    :param progress_ppm: what part of the work is done.
    :param detail: current step, result, or why it failed.
    """

    uuid: bounds.Uuid
    attempt: bounds.Count
    state: JobState
    progress_ppm: bounds.Part
    at: bounds.Seconds
    detail: bounds.Sentence = ''


@dataclasses.dataclass(frozen=True, slots=True)
class ReportOrigin(wire.Message):
    """Which batch of which host a report is, as in :class:`Report`.

    It can be read of reports that cannot be read as a whole.
    """

    host: bounds.HostName
    batch: bounds.BatchNumber
    epoch: bounds.Epoch | None = None
    after: bounds.Number | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Report(wire.Message):
    """One batch from one agent.

    Batches of an epoch are numbered upwards and sent in order; one whose
    number is not above the last stored of its epoch is a repeat and changes
    nothing. A gap means that the agent's bounded buffer dropped its oldest.

    :param epoch: the run of the agent that numbered the batch, 32
        hexadecimal digits; None from an agent that has no epochs.
    :param after: the host's newest batch as the collector numbers them, as
        in its last reply; a new epoch starts only with the right one.
    :param host_info: present in the first batch and when it changed.
    :param instances: the whole list when it changed, else None. An
        instance that is not in it has left the host.
    :param reservations: those whose report changed since the last batch.
    :param jobs: those with progress.
    :param error_profiles: those that are new; likewise overhead profiles.
    :param host_usage: use of the host's CPUs.
    :param balloons: those whose report changed.
    :param all_balloons: whether ``balloons`` is the whole list.
    :param balloon_changes: those that started or changed.
    :param sent_at: the agent's clock when the batch is sent, which may be
        long after ``at``; None from an agent that does not report it.
    """

    MAX_ITEMS: ty.ClassVar[int | None] = 100_000

    host: bounds.HostName
    batch: bounds.BatchNumber
    at: bounds.Seconds
    host_info: HostInfo | None = None
    instances: (
        ty.Annotated[tuple[InstanceInfo, ...], bounds.Items(10_000)] | None
    ) = None
    reservations: ty.Annotated[
        tuple[ReservationReport, ...], bounds.Items(10_000)
    ] = ()
    usage: ty.Annotated[
        tuple[UsageSample, ...], bounds.Items(100_000, columns=True)
    ] = ()
    events: ty.Annotated[tuple[Event, ...], bounds.Items(20_000)] = ()
    jobs: ty.Annotated[tuple[JobReport, ...], bounds.Items(1_000)] = ()
    error_profiles: ty.Annotated[
        tuple[profiles.ErrorProfile, ...], bounds.Items(8)
    ] = ()
    host_usage: ty.Annotated[
        tuple[HostUsage, ...], bounds.Items(10_000, columns=True)
    ] = ()
    overhead_profiles: ty.Annotated[
        tuple[profiles.OverheadProfile, ...], bounds.Items(8)
    ] = ()
    balloons: ty.Annotated[
        tuple[balloon_messages.BalloonReport, ...], bounds.Items(10_000)
    ] = ()
    all_balloons: bool = False
    balloon_changes: ty.Annotated[
        tuple[balloon_messages.BalloonChange, ...], bounds.Items(20_000)
    ] = ()
    epoch: bounds.Epoch | None = None
    after: bounds.Number | None = None
    sent_at: bounds.Seconds | None = None
