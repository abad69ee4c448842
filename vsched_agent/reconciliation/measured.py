# SPDX-License-Identifier: Apache-2.0

"""The step of a pass that reports new profiles, and replans by them."""

from collections.abc import Callable
import time

from vsched_agent.reconciliation import interfaces
from vsched_agent.reporting import report_builder


class Measured:
    """Polls for what this host has measured of itself.

    Not thread-safe: the reconciler's thread is its only caller.

    :param profiles: source of error profiles; None without any.
    :param costs: source of the prices of I/O; None without prices.
    :param reports: receives them.
    :param on_errors: called for an error profile: reservations may need
        another margin by it.
    :param on_room: called when more may fit, or less.
    """

    def __init__(
        self,
        profiles: interfaces.Profiles | None,
        costs: interfaces.Costs | None,
        reports: report_builder.ReportBuilder,
        on_errors: Callable[[], None],
        on_room: Callable[[], None],
    ) -> None:
        self._profiles = profiles
        self._costs = costs
        self._reports = reports
        self._on_errors = on_errors
        self._on_room = on_room

    def poll(self) -> None:
        """Report what is new."""
        if self._profiles is not None:
            self._poll_errors(self._profiles)
        for priced in self._costs.poll() if self._costs else ():
            self._reports.profiles.add_overhead_profile(priced)
            self._on_room()

    def _poll_errors(self, source: interfaces.Profiles) -> None:
        reports = self._reports.profiles
        for profile, changes in source.poll():
            reports.add_error_profile(profile, changes)
            self._on_errors()
        for profile in source.measured(reports.measured_version):
            reports.add_measured(profile)
        event = source.judge(time.monotonic())
        if event is not None:
            self._reports.events.add(
                event.code, event.severity, event.detail, figures=event.figures
            )
            self._on_room()
