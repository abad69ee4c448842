# SPDX-License-Identifier: Apache-2.0

"""The measurements of a simulated host: each takes some seconds."""

import random

from vsched_lib.contract import messages
from vsched_lib.contract import profiles as contract
from vsched_standalone.demo import profiles

#: How long a measurement takes, in seconds.
DURATION_S = 20.0

_STEPS = (
    'preparing',
    'measuring without contenders',
    'measuring with 4 contenders',
    'computing statistics',
)

JobState = messages.JobState


class _Run:
    """A measurement that has not ended.

    :param order: what was ordered.
    :param started_at: in seconds since the epoch.
    """

    def __init__(self, order: messages.JobOrder, started_at: float) -> None:
        self.order = order
        self.started_at = started_at

    def report(self, now: float) -> messages.JobReport:
        """Return its state at a time."""
        part = min(1.0, max(0.0, (now - self.started_at) / DURATION_S))
        done = part >= 1
        return messages.JobReport(
            uuid=self.order.uuid,
            attempt=self.order.attempt,
            state=JobState.DONE if done else JobState.RUNNING,
            progress_ppm=round(part * 1_000_000),
            at=now,
            detail='simulated measurement: %s'
            % ('done' if done else _STEPS[int(part * len(_STEPS))]),
        )


class Jobs:
    """The jobs of one host.

    :param draw: of the host; the figures of its profiles come from it.
    :param cpus: of the host.
    """

    def __init__(self, draw: random.Random, cpus: int) -> None:
        self._draw = draw
        self._cpus = cpus
        self._runs: dict[str, _Run] = {}
        self._ended: set[tuple[str, int]] = set()
        self._versions = dict.fromkeys(messages.JobKind, 1)
        self.generation = 0

    def set_orders(self, found: messages.Jobs, now: float) -> None:
        """Start and cancel jobs as the collector lists them."""
        self.generation = found.generation
        for order in found.orders:
            if (order.uuid, order.attempt) in self._ended:
                continue
            run = self._runs.get(order.uuid)
            if run is None or run.order.attempt != order.attempt:
                self._runs[order.uuid] = _Run(order, now)
            else:
                run.order = order

    def initial(
        self, now: float
    ) -> tuple[contract.ErrorProfile, contract.OverheadProfile]:
        """Return the profiles that the host has from the beginning."""
        return (
            profiles.error_profile(self._draw, 1, self._cpus, now - 7_200),
            profiles.overhead_profile(self._draw, 1, self._cpus, now - 3_600),
        )

    def advance(
        self, now: float
    ) -> tuple[
        list[messages.JobReport],
        list[contract.ErrorProfile],
        list[contract.OverheadProfile],
    ]:
        """Return the state of all jobs, and the profiles of those that end."""
        reports = []
        errors: list[contract.ErrorProfile] = []
        overheads: list[contract.OverheadProfile] = []
        for run in list(self._runs.values()):
            order = run.order
            if order.wanted is messages.JobWanted.CANCEL:
                reports.append(
                    messages.JobReport(
                        order.uuid,
                        order.attempt,
                        JobState.CANCELLED,
                        run.report(now).progress_ppm,
                        now,
                        'cancelled by an operator',
                    )
                )
                self._end(order)
                continue
            report = run.report(now)
            reports.append(report)
            if report.state is not JobState.DONE:
                continue
            self._end(order)
            self._versions[order.kind] += 1
            version = self._versions[order.kind]
            if order.kind is messages.JobKind.PROFILE_ERROR:
                errors.append(
                    profiles.error_profile(
                        self._draw, version, self._cpus, now
                    )
                )
            else:
                overheads.append(
                    profiles.overhead_profile(
                        self._draw, version, self._cpus, now
                    )
                )
        return reports, errors, overheads

    def _end(self, order: messages.JobOrder) -> None:
        del self._runs[order.uuid]
        self._ended.add((order.uuid, order.attempt))
