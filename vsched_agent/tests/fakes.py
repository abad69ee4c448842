# SPDX-License-Identifier: Apache-2.0

"""Stand-ins for unit tests that are about something else."""

from collections.abc import Collection
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import typing as ty

from vsched_agent.accounting import base as readings
from vsched_agent.enforcement import base
from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.reservations import admission
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import certificates
from vsched_lib.model import fit
from vsched_lib.model import host
from vsched_lib.model import overhead
from vsched_lib.model import reservation


class FakeBackend(base.Backend):
    """A kernel with a bound and a list of what each thread holds.

    :param bound: CPUs it admits; None for no limit.
    """

    def __init__(
        self, name: reservation.Backend, bound: Fraction | None = None
    ) -> None:
        self.name = name
        self.only_agents_set = name is reservation.Backend.DEADLINE
        self.bound = bound
        self.held: dict[int, base.Enforced] = {}
        self.dead: set[int] = set()
        self.applied: list[tuple[int, ...]] = []
        self.resumed: list[tuple[int, ...]] = []
        self.usable = True

    def supports(self) -> base.Support:
        return base.Support(
            self.usable, () if self.usable else ('the test says so',)
        )

    def prior(self, targets: Sequence[base.Target]) -> dict[int, base.Prior]:
        return {
            one.tid: {'nice': one.tid % 20}
            for one in targets
            if one.tid not in self.dead
        }

    def apply_each(self, promises: Sequence[base.Assignment]) -> None:
        if self.dead & {one.tid for one, _ in promises}:
            raise errors.Refused('a thread is gone', errors.Code.THREADS_GONE)
        held = dict(self.held)
        for one, promise in promises:
            held[one.tid] = base.Enforced.of(promise)
        total = sum(
            (Fraction(one.runtime_ns, one.period_ns) for one in held.values()),
            Fraction(0),
        )
        if self.bound is not None and total > self.bound:
            raise errors.Refused('busy', errors.Code.KERNEL_REFUSED)
        self.held = held
        self.applied.append(tuple(one.tid for one, _ in promises))

    def resume(self, promises: Sequence[base.Assignment]) -> None:
        self.resumed.append(tuple(one.tid for one, _ in promises))

    def read(
        self, targets: Sequence[base.Target]
    ) -> dict[int, base.Enforced | None]:
        return {
            one.tid: self.held.get(one.tid)
            for one in targets
            if one.tid not in self.dead
        }

    def restore(
        self, targets: Sequence[base.Target], prior: Mapping[int, base.Prior]
    ) -> None:
        for one in targets:
            self.held.pop(one.tid, None)


class FakeCapacity:
    """A host of fixed capacity that counts how often it was doubted."""

    def __init__(self, admissible: Fraction, cpus: int = 2) -> None:
        self.value = host.Capacity(cpus, admissible)
        self.invalidated = 0

    def current(self) -> host.Capacity:
        return self.value

    def invalidate(self) -> None:
        self.invalidated += 1


class FakeMeasurements(admission.NoMeasurements):
    """A host that errs, and has prices, as the test says.

    :ivar lower_ppm: of its errors with backend ``deadline`` at a period of
        20 ms; None when they were not measured.
    """

    def __init__(self) -> None:
        self.lower_ppm: int | None = None
        self.prices: overhead.Fit | None = None
        self.policy = fit.Policy()

    def measured(self) -> admission.Measured:
        return admission.Measured(
            {}
            if self.lower_ppm is None
            else {
                ('deadline', 20_000): certificates.Certificate(
                    (10_000, 1_000_000), (self.lower_ppm,) * 2
                )
            },
            self.prices,
            self.policy,
        )


class FakeHypervisor(hypervisor.Hypervisor):
    """Domains in a dictionary."""

    kind = 'fake'

    def __init__(self) -> None:
        self.running: dict[str, hypervisor.Domain] = {}
        self.away = False

    def start(self, on_change: hypervisor.ChangeCallback) -> None:
        self.on_change = on_change

    def stop(self) -> None:
        pass

    @property
    def connected(self) -> bool:
        return not self.away

    def domains(self) -> Sequence[hypervisor.Domain]:
        if self.away:
            raise hypervisor.HypervisorUnavailable('the test says so')
        return list(self.running.values())

    def domain(self, uuid: str) -> hypervisor.Domain | None:
        if self.away:
            raise hypervisor.HypervisorUnavailable('the test says so')
        return self.running.get(uuid)

    def disk_counters(
        self, uuids: Collection[str]
    ) -> Mapping[str, Mapping[str, hypervisor.DiskCounters]]:
        return {}


class FakeMeter:
    """One sample an instance and pass, and one of the host."""

    host: messages.HostUsage | None = messages.HostUsage(
        1.0, 1_000_000, 2, 1_500_000, 0, 0, 500_000, 0, 0, 0
    )

    def __init__(self) -> None:
        self.readings: dict[str, readings.Reading] = {}
        self.resumed: Mapping[str, ty.Any] | None = None

    def sample(
        self,
        domains: Sequence[hypervisor.Domain],
        promised: Mapping[str, Fraction],
    ) -> list[messages.UsageSample]:
        return [
            messages.UsageSample(one.uuid, 1.0, 1_000_000, 500_000, 0)
            for one in domains
        ]

    def checkpoint(self) -> Mapping[str, ty.Any]:
        return {'fake': 1}

    def resume(self, stood: Mapping[str, ty.Any]) -> bool:
        self.resumed = stood
        return True


class FakeCollector:
    """Remembers what it was told; can be away."""

    def __init__(self) -> None:
        self.reports: list[messages.Report] = []
        self.away = False
        #: How many reports it answers before it is away.
        self.away_after: int | None = None
        self.overridden = collector_replies.Overrides(0)
        self.resync = False
        self.ordered = messages.Jobs(0)
        #: Given before all others, for each of :attr:`asked`.
        self.answers: list[collector_replies.ReportReply] = []
        self.asked: list[messages.Report] = []

    def report(self, report: messages.Report) -> collector_replies.ReportReply:
        if self.away or len(self.asked) == self.away_after:
            raise errors.Unreachable('the test says so')
        self.asked.append(report)
        if self.answers:
            return self.answers.pop(0)
        duplicate = any(one.batch >= report.batch for one in self.reports)
        if not duplicate:
            self.reports.append(report)
        return collector_replies.ReportReply(
            duplicate,
            self.overridden.generation,
            self.resync,
            self.ordered.generation,
        )

    def overrides(self, host_name: str) -> collector_replies.Overrides:
        if self.away:
            raise errors.Unreachable('the test says so')
        return self.overridden

    def jobs(self, host_name: str) -> messages.Jobs:
        if self.away:
            raise errors.Unreachable('the test says so')
        return self.ordered


def domain(
    number: int,
    vcpus: int = 1,
    pid: int | None = None,
    pins: ty.Sequence[int | None] = (),
    **extra_specs: ty.Any,
) -> hypervisor.Domain:
    """A domain whose threads are numbered after it.

    :param extra_specs: keys of our namespace without it.
    """
    return hypervisor.Domain(
        uuid='00000000-0000-4000-8000-%012d' % number,
        name='instance-%d' % number,
        pid=pid or number * 100,
        vcpus=tuple(
            hypervisor.Vcpu(
                index,
                (pid or number * 100) + 1 + index,
                None
                if not pins or (pin := pins[index]) is None
                else frozenset((pin,)),
            )
            for index in range(vcpus)
        ),
        extra_specs={
            'vsched:' + key: str(value) for key, value in extra_specs.items()
        },
    )
