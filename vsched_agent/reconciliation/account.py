# SPDX-License-Identifier: Apache-2.0

"""The step of a pass that meters CPU time, and charges and divides by it."""

from collections.abc import Callable
from collections.abc import Mapping
import typing as ty

from vsched_agent.hypervisor import base
from vsched_agent.reconciliation import interfaces
from vsched_agent.reporting import report_builder
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.reservations import io_charging
from vsched_agent.state import store as journals


class Account:
    """Meters all instances once per interval, and applies what follows.

    Not thread-safe: the reconciler's thread is its only caller.

    :param meter: reads the instances' CPU time.
    :param enforcer: has the reservations in force.
    :param journal: has the counters of the last batch.
    :param reports: receives the results.
    :param charging: charges instances for I/O.
    :param costs: source of the prices of I/O; None without prices.
    :param communication: divides periods.
    :param on_room: called when capacity was released.
    """

    def __init__(
        self,
        meter: interfaces.Meter,
        enforcer: enforcers.Enforcer,
        journal: journals.Journal,
        reports: report_builder.ReportBuilder,
        charging: io_charging.Charging,
        costs: interfaces.Costs | None,
        communication: interfaces.Communication,
        on_room: Callable[[], None],
    ) -> None:
        self._meter = meter
        self._enforcer = enforcer
        self._journal = journal
        self._reports = reports
        self._charging = charging
        self._costs = costs
        self._communication = communication
        self._on_room = on_room
        self._metering = False

    def checkpoint(self) -> Mapping[str, ty.Any] | None:
        """Return the counters of the last interval; None before the first."""
        return self._meter.checkpoint() if self._metering else None

    def run(self, running: Mapping[str, base.Domain], listed: bool) -> None:
        """Meter the instances, and adjust what I/O and messages take.

        :param running: all instances by UUID.
        :param listed: whether all that run are among them.
        """
        if not self._metering:
            if not listed:
                # The meter would forget instances that are not listed yet,
                # and lose their time since the last agent.
                return
            self._metering = True
            checkpoint = self._journal.outbox.usage_checkpoint()
            if checkpoint is not None:
                self._meter.resume(checkpoint)
        domains = list(running.values())
        samples = self._meter.sample(domains, self._enforcer.reserved_cpus())
        self._reports.add_usage(samples, self._meter.host)
        if self._costs is not None:
            self._costs.used(samples)
        before = self._enforcer.admitted_mcpu()
        for change in self._charging.adjust(
            domains, samples, self._meter.readings
        ):
            if change.uuid in running:
                self._reports.reservations.add_io(running[change.uuid], change)
        if self._enforcer.admitted_mcpu() < before:
            self._on_room()
        # After charging, which sizes what is divided.
        for divided in self._communication.adjust(
            domains, samples, self._meter.readings
        ):
            if divided.uuid in running:
                self._reports.reservations.add_communication(
                    running[divided.uuid], divided
                )
