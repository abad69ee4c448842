# SPDX-License-Identifier: Apache-2.0

"""Applies one instance's desired reservation and reports the result."""

from collections.abc import Callable
import dataclasses

from vsched_agent.enforcement import base as enforcement
from vsched_agent.hypervisor import base
from vsched_agent.reconciliation import interfaces
from vsched_agent.reporting import report_builder
from vsched_agent.reporting import unrestored
from vsched_agent.reservations import desired as desires
from vsched_agent.reservations import enforcer as enforcers
from vsched_agent.reservations import io_charging
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State


class InstanceReconciler:
    """Applies the desired reservation of one instance at a time.

    Not thread-safe: the reconciler's thread is its only caller.

    :param enforcer: applies reservations.
    :param charging: charges instances for the host's work on their I/O.
    :param balloons: has each instance's online vCPUs.
    :param reports: receives the results.
    :param costs: source of the prices of I/O; None without prices.
    :param on_room: called when an instance has released capacity.
    :param communication: divides periods; None for never.
    """

    def __init__(
        self,
        enforcer: enforcers.Enforcer,
        charging: io_charging.Charging,
        balloons: interfaces.Balloons,
        reports: report_builder.ReportBuilder,
        costs: interfaces.Costs | None,
        on_room: Callable[[], None],
        communication: interfaces.Communication | None = None,
    ) -> None:
        self._enforcer = enforcer
        self._charging = charging
        self._balloons = balloons
        self._reports = reports
        self._costs = costs
        self._on_room = on_room
        self._communication = communication or interfaces.NoCommunication()
        self._reported_unpriced: dict[str, str] = {}
        self._unrestored: set[str] = set()

    @property
    def unrestored(self) -> frozenset[str]:
        """Return the instances whose former state did not fit."""
        return frozenset(self._unrestored)

    def forget(self, uuid: str) -> None:
        """Forget an instance that no longer runs."""
        self._reported_unpriced.pop(uuid, None)
        self._unrestored.discard(uuid)

    def reconcile(self, domain: base.Domain, desired: desires.Desired) -> bool:
        """Apply an instance's desired reservation as far as possible.

        :returns: False when its threads had ended: try again later.
        """
        shaped, reserved = self._balloons.of(domain, desired.reserved)
        state, cause = State.APPLIED, desired.problem
        if desired.problem is None:
            charged = self._charging.set_mode(domain, desired.io_charging)
            self._communication.set_aware(domain.uuid, desired.comm_aware)
        if desired.problem is not None:
            state = State.REFUSED
        elif reserved is None:
            if self._release(domain):
                self._on_room()
            elif domain.uuid not in self._unrestored and (
                domain.uuid
                not in self._reports.reservations.reported_instances
            ):
                self._balloons.reconciled(domain.uuid, None)
                return True
            state = State.RELEASED
        else:
            before = self._enforcer.holding(domain.uuid)
            try:
                cause = self._enforcer.hold(
                    shaped, reserved, desired.ask, charged
                )
            except errors.Refused as refusal:
                cause = refusal
                state = (
                    State.PENDING
                    if refusal.code == errors.Code.THREADS_GONE
                    else State.REFUSED
                )
            else:
                self._unrestored.discard(domain.uuid)
                if cause is not None:
                    state = State.DEGRADED
            self._report_unpriced(domain, desired)
            held = self._enforcer.holding(domain.uuid)
            if before is not None and (
                held is None or held.bandwidth < before.bandwidth
            ):
                self._on_room()
        self._reports.reservations.add(
            domain, desired, self._enforcer.holding(domain.uuid), state, cause
        )
        self._balloons.reconciled(
            domain.uuid, None if state is State.DEGRADED else cause
        )
        return state is not State.PENDING

    def _release(self, domain: base.Domain) -> bool:
        """Release an instance's reservation.

        When what it had before does not fit any more it keeps what it has
        without one. That is reported once, and tried again when capacity is
        released.

        :returns: whether it was released and anything was restored.
        """
        try:
            released = self._enforcer.release(domain)
        except enforcement.NotRestored as error:
            if domain.uuid not in self._unrestored:
                self._unrestored.add(domain.uuid)
                unrestored.add(self._reports.events, domain, error)
            return False
        self._unrestored.discard(domain.uuid)
        return released

    def _report_unpriced(
        self, domain: base.Domain, desired: desires.Desired
    ) -> None:
        if (
            self._costs is None
            or desired.ask.charged is None
            or not any(dataclasses.astuple(desired.ask.rates))
        ):
            return
        why = self._costs.problem()
        if why is not None and self._reported_unpriced.get(domain.uuid) != why:
            self._reported_unpriced[domain.uuid] = why
            self._reports.events.add(
                errors.Code.IO_UNPRICED,
                messages.Severity.INFO,
                '%s: %s' % (domain.name, why),
                domain.uuid,
            )
