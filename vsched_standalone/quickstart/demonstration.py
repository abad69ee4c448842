# SPDX-License-Identifier: Apache-2.0

"""Demonstrate a reservation beside neighbours, and changes of it.

One VM has a reservation while its neighbours burn every CPU. The reservation
is then changed over REST. The last phase enforces it by a quota instead of a
real-time scheduling class, which shows how far a quota falls short.
"""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
import time
import typing as ty

from vsched_standalone.quickstart import client
from vsched_standalone.quickstart import table
from vsched_standalone.quickstart import windows

PERIOD_US = 20_000


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """One phase of the demonstration.

    :param key: its name in the summary.
    :param title: description for the terminal.
    :param runtime_us: of the VM with the reservation, every :data:`PERIOD_US`.
    :param backend: enforces the reservation.
    :param change: body of the PATCH at its start; None for the flavor's own.
    :param weight: its fraction of the measuring time.
    """

    key: str
    title: str
    runtime_us: int
    backend: str
    change: ty.Mapping[str, ty.Any] | None
    weight: float

    @property
    def promised(self) -> float:
        """Return the reserved CPUs."""
        return self.runtime_us / PERIOD_US


PHASES = (
    Phase(
        'deadline',
        'promised 60 % of a CPU by its flavor',
        12_000,
        'deadline',
        None,
        0.5,
    ),
    Phase(
        'patched',
        'changed to 30 % over REST',
        6_000,
        'deadline',
        {'runtime_us': 6_000},
        0.25,
    ),
    Phase(
        'cfs',
        '60 % again, but held by a CFS quota',
        12_000,
        'cfs',
        {'runtime_us': 12_000, 'backend': 'cfs'},
        0.25,
    ),
)


class NotHeld(Exception):
    """A reservation was not enforced in time."""


class NoLoad(Exception):
    """A VM does not burn CPU time, so that there is nothing to show."""


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The measurements of a phase."""

    phase: Phase
    summary: windows.Summary | None


class Demonstration:
    """Runs the phases and samples the VMs over REST.

    :param api: the API service.
    :param promised: UUID of the VM with the reservation.
    :param names: names of all VMs by UUID, including that one.
    :param shown: the live table.
    :param wait: waits for some seconds, or returns True when interrupted.
    """

    #: Maximum time until a change is enforced, in seconds.
    DEADLINE_S = 60.0
    #: Maximum time until all VMs burn CPU time, in seconds. An emulated guest
    #: that shares its CPU boots slowly.
    LOAD_S = 300.0
    #: A VM that uses this fraction of a CPU burns CPU time.
    BURNS = 0.05

    def __init__(
        self,
        api: client.Client,
        promised: str,
        names: ty.Mapping[str, str],
        shown: table.Table,
        wait: Callable[[float], bool],
    ) -> None:
        self._api = api
        self._promised = promised
        self._names = names
        self._shown = shown
        self._wait = wait

    def run(
        self, seconds: float, phases: Sequence[Phase] = PHASES
    ) -> list[Outcome]:
        """Run all phases.

        :param seconds: duration of the measurements, over all phases.
        :raises NotHeld: when a reservation is not enforced.
        :raises NoLoad: when a VM does not burn CPU time.
        """
        self._await_load()
        total = sum(phase.weight for phase in phases)
        outcomes = []
        for number, phase in enumerate(phases, 1):
            self._shown.say('\n%d/%d %s' % (number, len(phases), phase.title))
            changed_at = time.time()
            if phase.change is not None:
                changed_at = self._api.change(self._promised, **phase.change)
            self._await_held(phase)
            outcomes.append(
                Outcome(
                    phase,
                    self._watch(
                        phase,
                        changed_at,
                        seconds * phase.weight / total + windows.SETTLING_S,
                    ),
                )
            )
            if self._wait(0):
                break
        return outcomes

    def _await_load(self) -> None:
        give_up = time.monotonic() + self.LOAD_S
        idle = dict(self._names)
        while idle:
            if time.monotonic() > give_up:
                raise NoLoad(
                    '%s: no second with %g CPUs in the first %g s'
                    % (
                        ', '.join(sorted(idle.values())),
                        self.BURNS,
                        self.LOAD_S,
                    )
                )
            since = time.time() - 3
            for uuid in list(idle):
                latest = self._latest(uuid, since)
                if latest is not None and latest.got >= self.BURNS:
                    del idle[uuid]
            if self._wait(0.2 if idle else 0):
                return

    def _latest(self, uuid: str, since: float) -> windows.Window | None:
        return max(
            self._api.windows(uuid, since),
            key=lambda one: one.at,
            default=None,
        )

    def _await_held(self, phase: Phase) -> None:
        give_up = time.monotonic() + self.DEADLINE_S
        seen: ty.Mapping[str, ty.Any] = {}
        while time.monotonic() < give_up:
            seen = self._api.reservations().get(self._promised, {})
            enforced = seen.get('enforced') or {}
            if (
                seen.get('state') in ('applied', 'degraded')
                and enforced.get('runtime_us') == phase.runtime_us
                and enforced.get('backend') == phase.backend
            ):
                return
            if seen.get('state') == 'refused':
                break
            if self._wait(0.2):
                return
        raise NotHeld(
            '%s: state %s: %s'
            % (phase.title, seen.get('state', 'unknown'), seen.get('detail'))
        )

    def _watch(
        self, phase: Phase, changed_at: float, seconds: float
    ) -> windows.Summary | None:
        end = changed_at + seconds
        while (left := end - time.time()) > 0:
            self._draw(phase, left, seconds)
            if self._wait(min(1.0, left)):
                break
        return windows.summarise(
            self._api.windows(self._promised, changed_at),
            phase.promised,
            changed_at,
        )

    def _draw(self, phase: Phase, left: float, seconds: float) -> None:
        reservations = self._api.reservations()
        since = time.time() - 3
        rows = []
        for uuid, name in self._names.items():
            latest = self._latest(uuid, since)
            held = reservations.get(uuid) or {}
            enforced = held.get('enforced') or {}
            rows.append(
                table.Row(
                    name,
                    phase.promised if uuid == self._promised else None,
                    latest.got if latest else None,
                    enforced.get('backend') or '-',
                    held.get('state', '-'),
                )
            )
        done = int(20 * (1 - left / seconds))
        self._shown.draw(
            '[%s%s] %3.0f s left' % ('#' * done, '.' * (20 - done), left), rows
        )


def metrics(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return the figures that the benchmark records, as fractions."""
    found = {one.phase.key: one.summary for one in outcomes if one.summary}
    figures: dict[str, float] = {}
    for key, name in (
        ('deadline', 'deadline_got_mean'),
        ('cfs', 'cfs_got_mean'),
        ('patched', 'patched_got_mean'),
    ):
        if key in found:
            figures[name] = round(found[key].got_mean, 5)
    if 'deadline' in found:
        figures['deadline_abs_error_p99'] = round(
            found['deadline'].error_p99, 5
        )
    settled = found['patched'].settle_s if 'patched' in found else None
    if settled is not None:
        figures['patched_settle_s'] = round(settled, 3)
    return figures
