# SPDX-License-Identifier: Apache-2.0

"""Recovers what an earlier agent has left in force.

With a journal its reservations are adopted; without one they are taken over
from the kernel.
"""

from collections.abc import Collection
from collections.abc import Iterable

from vsched_agent.hypervisor import base
from vsched_agent.reconciliation import interfaces
from vsched_agent.reporting import report_builder
from vsched_agent.reservations import desired as desires
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.reservations import io_charging
from vsched_agent.state import storage
from vsched_agent.state import store as journals
from vsched_lib import problem_log


class Recovery:
    """Adopts reservations, and records again those of a lost journal.

    Not thread-safe: the reconciler's thread is its only caller.

    :param enforcer: holds the reservations.
    :param journal: the agent's persistent state.
    :param balloons: has each instance's online vCPUs.
    :param reports: has the last reports.
    :param problems: logs failures; they do not affect other instances.
    """

    def __init__(
        self,
        enforcer: enforcers.Enforcer,
        journal: journals.Journal,
        balloons: interfaces.Balloons,
        reports: report_builder.ReportBuilder,
        problems: problem_log.ProblemLog,
    ) -> None:
        self._enforcer = enforcer
        self._journal = journal
        self._balloons = balloons
        self._reports = reports
        self._problems = problems

    def adopt(
        self, planned: Iterable[tuple[base.Domain, desires.Desired]]
    ) -> None:
        """Adopt all reservations that an earlier agent has recorded."""
        for domain, desired in planned:
            try:
                self._enforcer.adopt(
                    domain, io_charging.ROOMS[desired.io_charging]
                )
            except Exception as error:
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: adopting what is in force failed',
                    domain.name,
                )

    def take_over(self, domains: Collection[base.Domain]) -> set[str] | None:
        """Record again what the kernel has in force, after a loss.

        :param domains: all running instances.
        :returns: the instances with reservations that were not recorded;
            None when no records were lost that are needed.
        """
        loss = self._journal.loss()
        if loss is storage.Loss.NOTHING:
            return None
        damaged = loss is storage.Loss.DAMAGED
        taken_over = set()
        for domain in domains:
            try:
                if self._enforcer.take_over(domain, damaged):
                    taken_over.add(domain.uuid)
            except Exception as error:
                self._problems.failed(
                    domain.uuid,
                    error,
                    '%s: recording what is in force failed',
                    domain.name,
                )
        self._journal.accept_loss()
        if not (damaged or taken_over):
            return None
        self._reports.remember()
        self._balloons.records_lost(domains)
        return taken_over
