# SPDX-License-Identifier: Apache-2.0

"""Reports the host's error and overhead profiles."""

from collections.abc import Sequence

from vsched_agent.reporting import events as event_queue
from vsched_agent.state import outbox as outboxes
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles
from vsched_lib.model import error_change

Severity = messages.Severity


class ProfileReports:
    """Profiles that wait for the next batch, and their events.

    Not thread-safe: the reconciler's thread is its only caller.

    :param outbox: has the newest version with an event.
    :param events: receives the events.
    """

    def __init__(
        self, outbox: outboxes.Outbox, events: event_queue.Events
    ) -> None:
        self._events = events
        self._error_profiles: list[profiles.ErrorProfile] = []
        self._overhead_profiles: list[profiles.OverheadProfile] = []
        # Version of the newest error profile that has an event, of all and
        # of those in the journal.
        self._measured = self._measured_before = outbox.measured()

    def __len__(self) -> int:
        return len(self._error_profiles) + len(self._overhead_profiles)

    @property
    def error_profiles(self) -> Sequence[profiles.ErrorProfile]:
        """Return the error profiles that wait."""
        return self._error_profiles

    @property
    def overhead_profiles(self) -> Sequence[profiles.OverheadProfile]:
        """Return the overhead profiles that wait."""
        return self._overhead_profiles

    def add_error_profile(
        self,
        profile: profiles.ErrorProfile,
        changes: Sequence[error_change.Change],
    ) -> None:
        """Report a new error profile of the host.

        :param changes: since the profile before.
        """
        self._error_profiles.append(profile)
        if not changes:
            return
        worst = changes[0]
        self._events.add(
            errors.Code.PROFILE_DRIFTED,
            Severity.WARNING
            if worst.after_ppm > worst.before_ppm
            else Severity.INFO,
            'errors of backend %s at %g %% every %d us have changed: p95 '
            '%.2f %%, before %.2f %%; %d points differ from the last %s '
            'profile'
            % (
                worst.backend,
                worst.share_ppm / 10_000,
                worst.period_us,
                worst.after_ppm / 10_000,
                worst.before_ppm / 10_000,
                len(changes),
                profile.source,
            ),
            figures={
                'version': profile.version,
                'source': str(profile.source),
                'points': len(changes),
                'before_ppm': worst.before_ppm,
                'after_ppm': worst.after_ppm,
            },
        )

    @property
    def measured_version(self) -> int | None:
        """Return the version of the newest error profile with an event.

        An earlier agent's event counts. None when there was none.
        """
        return self._measured

    def add_measured(self, profile: profiles.ErrorProfile) -> None:
        """Report a finished run of the error benchmark.

        The journal keeps the version with the batch that has the event, so
        that there is one event for each run.
        """
        self._events.add(
            errors.Code.PROFILE_MEASURED,
            Severity.INFO,
            'error profile %d was measured: %d points%s'
            % (
                profile.version,
                len(profile.points),
                '' if profile.complete else '; some are missing',
            ),
            figures={
                'version': profile.version,
                'points': len(profile.points),
                'complete': profile.complete,
                'quick': profile.quick,
                'finished_at': profile.finished_at,
            },
        )
        self._measured = profile.version

    def add_overhead_profile(self, profile: profiles.OverheadProfile) -> None:
        """Report a new overhead profile of the host."""
        self._overhead_profiles.append(profile)
        if not profile.good:
            self._events.add(
                errors.Code.PROFILE_POOR,
                Severity.WARNING,
                'overhead profile %d of source %s explains only %.0f %% of '
                'what was seen; its prices are not used'
                % (profile.version, profile.source, 100 * profile.r2),
                figures={
                    'version': profile.version,
                    'source': str(profile.source),
                    'r2': profile.r2,
                },
            )

    @property
    def newly_measured(self) -> int | None:
        """Return :attr:`measured_version` if it is not in the journal yet."""
        if self._measured == self._measured_before:
            return None
        return self._measured

    def sent(self) -> None:
        """Start afresh, as a batch has all that waited."""
        self._measured_before = self._measured
        self._error_profiles, self._overhead_profiles = [], []
