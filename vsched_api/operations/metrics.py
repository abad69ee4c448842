# SPDX-License-Identifier: Apache-2.0

"""Collect the metrics of all hosts."""

from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_api.db.queries import reservations
from vsched_api.db import session as db
from vsched_api.operations import hosts


@dataclasses.dataclass(frozen=True, slots=True)
class HostFigures:
    """The metrics of one host; None where a value is not known yet."""

    name: str
    up: bool
    last_batch: int
    last_report_at: float | None
    instances: int
    capacity_mcpu: int | None
    admitted_mcpu: int | None
    contradictions: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class Metrics:
    """All metrics, from one transaction.

    :param reservations: (host, state, count).
    """

    hosts: Sequence[HostFigures]
    reservations: Sequence[tuple[str, str, int]]


def read(database: db.Database, now: float, down_after_s: float) -> Metrics:
    """Read the current metrics."""

    def work(session: ty.Any) -> Metrics:
        return Metrics(
            hosts=[
                HostFigures(
                    name=host.name,
                    up=host.state is hosts.State.UP,
                    last_batch=host.last_batch,
                    last_report_at=host.last_report_at,
                    instances=host.instances,
                    capacity_mcpu=(
                        None if host.info is None else host.info.capacity_mcpu
                    ),
                    admitted_mcpu=(
                        None if host.info is None else host.info.admitted_mcpu
                    ),
                    contradictions=(
                        None
                        if host.verification is None
                        else len(host.verification.contradictions)
                    ),
                )
                for host in hosts.every(session, now, down_after_s)
            ],
            reservations=reservations.count_by_host_and_state(session),
        )

    return database.read(work)
