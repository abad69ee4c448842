# SPDX-License-Identifier: Apache-2.0

"""Measures how far the CPU time that a backend gives is from the promise."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
import contextlib
import os
import threading
import time
import typing as ty
import uuid as uuids

from oslo_log import log as logging

from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import clocks
from vsched_agent.profiling.error import hogs
from vsched_agent.profiling.error import plan
from vsched_agent.profiling.error import sampler
from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles
from vsched_lib.model import error
from vsched_lib.model import reservation

LOG = logging.getLogger(__name__)


#: From this part of the CPUs' time on it is noted that it was stolen.
STOLEN_PPM = 1_000


class Cancelled(Exception):
    """The run was interrupted; what it has measured is kept."""


class Probe(ty.Protocol):
    """Something that uses all the CPU time it gets."""

    @property
    def tid(self) -> int:
        """The thread that is given the share."""


#: Makes a probe for a task, under no reservation yet, and ends it.
Probes = Callable[[plan.Task], ty.ContextManager[Probe]]

#: Puts a task's promise in force on a thread; raises errors.Refused.
Enforce = Callable[[plan.Task, int], None]


class Host(ty.NamedTuple):
    """What a run must know of the host.

    :param free_ppm: returns what is not reserved, in ppm of a CPU.
    :param facts: of the kernel: ``kernel``, ``tick_us``, ``cpus`` and
        ``features``, as in a profile.
    :param clocks: by which the probes are looked at.
    :param stolen_ppm: returns which part of the CPUs' time a hypervisor below
        this host took since it was asked before; None when that is unknown.
    """

    free_ppm: Callable[[], int]
    facts: Mapping[str, ty.Any]
    clocks: clocks.Clocks
    stolen_ppm: Callable[[], int | None] = lambda: None


class Runner:
    """One run, from its plan to its profile.

    :param order: what to measure.
    :param host: where.
    :param probes: makes what is given the shares.
    :param enforce: gives them.
    :param kept: what was measured before.
    :param stopping: ends the run when set.
    :param on_progress: called with (part done in ppm, what is done now).
    """

    def __init__(
        self,
        order: plan.Order,
        host: Host,
        probes: Probes,
        enforce: Enforce,
        kept: checkpoint.RunFile,
        stopping: threading.Event,
        on_progress: Callable[[int, str], None],
    ) -> None:
        self._order = order
        self._host = host
        self._probes = probes
        self._enforce = enforce
        self._kept = kept
        self._stopping = stopping
        self._on_progress = on_progress
        self._notes: list[str] = []
        self._probe = (
            profiles.Probe.VCPU if order.in_guest else profiles.Probe.THREAD
        )

    def run(self, version: int) -> profiles.ErrorProfile:
        """Measure what is not measured yet.

        :param version: what the profile is numbered.
        :raises Cancelled: when it was stopped before it was through.
        """
        started_at, load = time.time(), os.getloadavg()[0]
        wanted = plan.tasks(self._order)
        todo = [task for task in wanted if task.key not in self._kept.done]
        slots, tight = plan.slots(
            todo,
            1 if self._order.in_guest else self._host.facts['cpus'],
            self._host.free_ppm()
            - (self._order.threads - 1) * plan.COMPANION_PPM,
        )
        for task in tight:
            self._notes.append(
                '%s is not measured: %d mcpu are free'
                % (_words(task), self._host.free_ppm() // 1000)
            )
        self._host.stolen_ppm()
        for number, slot in enumerate(slots):
            self._measure(number, len(slots), slot)
        self._note_stolen(self._host.stolen_ppm())
        points = tuple(
            profiles.ErrorPoint.of(
                error.statistics(self._kept.done[task.key]),
                **task.where(self._probe),
            )
            for task in wanted
            if self._kept.done.get(task.key)
        )
        return profiles.ErrorProfile(
            uuid=str(uuids.uuid4()),
            version=version,
            source=profiles.ProfileSource.BENCHMARK,
            started_at=started_at,
            finished_at=time.time(),
            load=load,
            quick=self._order.quick,
            complete=len(points) == len(wanted),
            points=points,
            notes=(*self._notes, *getattr(self._probes, 'notes', ())),
            **{
                **self._host.facts,
                'features': {
                    **self._host.facts['features'],
                    **getattr(self._probes, 'features', {}),
                    certification.THREADS: self._order.threads,
                    'clock': self._host.clocks.name,
                },
            },
        )

    def _note_stolen(self, stolen_ppm: int | None) -> None:
        # Nothing is set aside: instances lose that time as probes do.
        if stolen_ppm is not None and stolen_ppm >= STOLEN_PPM:
            self._notes.append(
                "%.1f %% of the CPUs' time was stolen from this host "
                "meanwhile, which counts as the scheduler's error"
                % (100 * stolen_ppm / error.PPM)
            )

    def _measure(
        self, number: int, of: int, slot: Sequence[plan.Task]
    ) -> None:
        def report(window: int) -> None:
            self._on_progress(
                round(
                    error.PPM * (number + window / self._order.windows) / of
                ),
                'slot %d of %d: %s'
                % (number + 1, of, ', '.join(map(_words, slot))),
            )

        with self._scene(slot) as found:
            if not found:
                return
            report(0)
            # The first moments are the reservation's own: its budget is
            # whole, and the load balancer has not seen the probe yet.
            if self._stopping.wait(plan.WARM_UP_S):
                raise Cancelled
            looked = sampler.windows(
                self._host.clocks,
                [probe.tid for _, probe in found],
                self._order.windows,
                error.WINDOW_US / 1e6,
                self._host.facts['tick_us'],
                self._stopping,
                report,
            )
        for (task, _), windows in zip(found, looked, strict=True):
            if len(windows) < self._order.windows:
                raise Cancelled
            share = float(task.promise.utilisation)
            self._kept.add(
                task.key,
                [
                    error.error_ppm(window.got_ns, share * window.length_ns)
                    for window in windows
                ],
            )

    @contextlib.contextmanager
    def _scene(
        self, slot: Sequence[plan.Task]
    ) -> Iterator[list[tuple[plan.Task, Probe]]]:
        with contextlib.ExitStack() as stack:
            found = []
            for task in slot:
                probe = stack.enter_context(self._probes(task))
                try:
                    self._enforce(task, probe.tid)
                except errors.Refused as refusal:
                    self._notes.append(
                        '%s is not measured: %s'
                        % (_words(task), refusal.detail)
                    )
                    continue
                found.append((task, probe))
            try:
                for companion in self._companions(slot, len(found)):
                    self._enforce(
                        companion,
                        stack.enter_context(self._probes(companion)).tid,
                    )
            except errors.Refused as refusal:
                self._notes.extend(
                    '%s is not measured: there is no room for %d reserved '
                    'threads: %s'
                    % (_words(task), self._order.threads, refusal.detail)
                    for task, _ in found
                )
                found.clear()
            for _ in range(slot[0].contenders):
                stack.enter_context(hogs.Hog())
            yield found

    def _companions(
        self, slot: Sequence[plan.Task], found: int
    ) -> list[plan.Task]:
        # What an instance gets does not depend on those elsewhere, but whose
        # budgets are looked at in time does.
        first = slot[0]
        if (
            not found
            or not first.contenders
            or self._order.in_guest
            or (first.backend not in reservation.GUARANTEES)
        ):
            return []
        return (self._order.threads - found) * [
            plan.Task(
                first.backend,
                first.period_us,
                plan.COMPANION_PPM,
                first.contenders,
            )
        ]


def _words(task: plan.Task) -> str:
    return '%g %% by %s every %d us%s' % (
        task.share_ppm / 10_000,
        task.backend,
        task.period_us,
        ' among %d hogs' % task.contenders if task.contenders else '',
    )
