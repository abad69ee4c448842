# SPDX-License-Identifier: Apache-2.0

"""Counts what the agent does, from what it does anyway.

Everything is taken from the reports that the agent makes and from the passes
of its loop: a scrape reads neither the kernel nor the hypervisor nor the
journal.
"""

import collections
from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import threading
import time

import prometheus_client
from prometheus_client import core
from prometheus_client import registry as registries

from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.metrics import agent as families
from vsched_lib.metrics import family
from vsched_lib.model import reservation

#: The steps of a pass, as the reconciler names them.
STEPS = (
    'pass',
    'profiles',
    'observe',
    'journal',
    'plan',
    'attest',
    'account',
    'balloons',
    'report',
)
_OTHER = 'other'
_CODES = frozenset(errors.Code)
_US_PER_S = 1e6
_HOST_USES = ('guest', 'direct', 'shared', 'own', 'idle', 'steal')
_CHARGES = ('direct', 'shared')

#: Reports whose times are remembered, to know the age of the oldest one that
#: waits. A longer outbox is older than the oldest of these.
_MAX_TIMES = 20_000


class Recorder:
    """The metrics of one agent. Safe from any thread.

    :param waiting: how many reports no collector has confirmed.
    :param per_instance: whether each instance has metrics.
    :param now: seconds since the epoch.
    """

    def __init__(
        self,
        waiting: Callable[[], int],
        per_instance: bool = True,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._waiting = waiting
        self._per_instance = per_instance
        self._now = now
        self._lock = threading.Lock()
        self._info: messages.HostInfo | None = None
        # The instances of the host by UUID; None until a report has listed
        # them.
        self._listed: dict[str, messages.InstanceInfo] | None = None
        self._states: dict[str, messages.State] = {}
        self._host_us = dict.fromkeys(_HOST_USES, 0)
        # By instance: reserved, guest, wait, direct, shared; in microseconds.
        self._instances_us: dict[str, list[int]] = {}
        self._times: collections.deque[float] = collections.deque(
            [now()], _MAX_TIMES
        )
        self._outbox = 0
        made = self._registry = registries.CollectorRegistry(
            auto_describe=False
        )
        self._pass_duration = families.PASS_DURATION.histogram(made)
        self._last_pass = families.LAST_PASS.gauge(made)
        self._last_pass.set(now())
        self._failures = families.STEP_FAILURES.counter(made)
        self._reports = families.REPORTS.counter(made)
        self._events = families.EVENTS.counter(made)
        # A rate needs the 0 before the first one.
        for step in STEPS:
            self._failures.labels(step)
        for code in (*_CODES, _OTHER):
            self._events.labels(code)
        made.register(_State(self))
        prometheus_client.ProcessCollector(registry=made)

    def passed(self, duration_s: float) -> None:
        """Count a pass."""
        self._pass_duration.observe(duration_s)
        self._last_pass.set(self._now())

    def failed(self, step: str) -> None:
        """Count a failed step.

        :param step: one of :data:`STEPS`; others, such as the names of
            instances, count as "pass".
        """
        self._failures.labels(step if step in STEPS else STEPS[0]).inc()

    def reported(
        self, report: messages.Report, info: messages.HostInfo
    ) -> None:
        """Count a report that was stored in the outbox.

        :param info: the host's, which most reports leave out.
        """
        self._reports.inc()
        for event in report.events:
            self._events.labels(
                event.code if event.code in _CODES else _OTHER
            ).inc()
        # This one has not been sent yet.
        outbox = max(0, self._waiting() - 1)
        with self._lock:
            self._info = info
            self._outbox = outbox
            while len(self._times) > max(outbox, 1):
                self._times.popleft()
            self._times.append(report.at)
            if report.instances is not None:
                self._listed = {
                    one.instance_uuid: one for one in report.instances
                }
            for reported in report.reservations:
                self._states[reported.instance_uuid] = reported.state
            for usage in report.host_usage:
                for use in _HOST_USES:
                    self._host_us[use] += getattr(usage, use + '_us')
            for sample in report.usage if self._per_instance else ():
                sums = self._instances_us.setdefault(
                    sample.instance_uuid, [0] * 5
                )
                for place, value in enumerate(
                    (
                        sample.promised_us or 0,
                        sample.guest_us,
                        sample.wait_us,
                        sample.direct_us,
                        sample.shared_us,
                    )
                ):
                    sums[place] += value
            self._forget_gone()

    def _forget_gone(self) -> None:
        # The report that lists an instance no more has its last samples.
        if self._listed is None:
            return
        for gone in self._states.keys() - self._listed.keys():
            del self._states[gone]
        for gone in self._instances_us.keys() - self._listed.keys():
            del self._instances_us[gone]

    def exposed(self) -> registries.CollectorRegistry:
        """Return what is served."""
        outer = registries.CollectorRegistry(auto_describe=False)
        outer.register(family.Exposed(self._registry))
        return outer

    def _state(self) -> Iterator[core.Metric]:
        with self._lock:
            info = self._info
            states = collections.Counter(self._states.values())
            host_us = dict(self._host_us)
            instances_us = {
                uuid: tuple(sums) for uuid, sums in self._instances_us.items()
            }
            listed = [*self._listed.values()] if self._listed else []
            outbox, oldest = self._outbox, self._times[0]
        made = families.INFO.samples()
        made.add_metric(
            [
                family.version(),
                info.kernel if info else '',
                info.hypervisor if info else '',
            ],
            1,
        )
        yield made
        age_s = max(0.0, self._now() - oldest) if outbox else 0.0
        for which, value in (
            (families.OUTBOX_REPORTS, outbox),
            (families.OUTBOX_AGE, age_s),
            (families.CORES, info.cpus if info else 0),
            (families.CAPACITY, _cores(info.capacity_mcpu if info else 0)),
            (families.ADMITTED, _cores(info.admitted_mcpu if info else 0)),
            (families.LEAKED, _cores(info.leaked_mcpu if info else 0)),
        ):
            made = which.samples()
            made.add_metric([], value)
            yield made
        made = families.RESERVATIONS.samples()
        for state in messages.State:
            if state is not messages.State.RELEASED:
                made.add_metric([state.value], states[state])
        yield made
        made = families.HOST_CPU.samples()
        for use, value_us in host_us.items():
            made.add_metric([use], value_us / _US_PER_S)
        yield made
        if self._per_instance:
            yield _names(listed)
            yield from _instances(instances_us)


def _names(listed: Iterable[messages.InstanceInfo]) -> core.Metric:
    made = families.INSTANCE_INFO.samples()
    for one in listed:
        made.add_metric(
            [
                one.instance_uuid,
                one.name,
                one.server_name or '',
                one.project_id or '',
                one.flavor_name or '',
            ],
            1,
        )
    return made


def _instances(
    instances_us: dict[str, tuple[int, ...]],
) -> Iterator[core.Metric]:
    for place, which in enumerate(
        (families.RESERVED, families.GUEST, families.WAIT)
    ):
        made = which.samples()
        for uuid, sums in instances_us.items():
            made.add_metric([uuid], sums[place] / _US_PER_S)
        yield made
    made = families.CHARGED.samples()
    for uuid, sums in instances_us.items():
        for use, value_us in zip(_CHARGES, sums[3:], strict=True):
            made.add_metric([uuid, use], value_us / _US_PER_S)
    yield made


def _cores(mcpu: int) -> float:
    return mcpu / reservation.MCPU_PER_CPU


class _State(registries.Collector):
    """What is known at the time of a scrape only."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def collect(self) -> Iterator[core.Metric]:
        return self._recorder._state()
