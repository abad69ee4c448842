# SPDX-License-Identifier: Apache-2.0

"""Whether an error profile that was measured with looks at budgets holds now.

It was measured with a number of reserved threads, and while looks were in
time. With more threads, or with a helper that has used up its reservation,
budgets end at the tick and errors are several times as large.
"""

import typing as ty

from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import profiles

#: There must be no more threads than certified for so long, in seconds,
#: before certificates that were withdrawn are granted again.
RESTORE_S = 60.0


class Event(ty.NamedTuple):
    """What happened to the certificates of this host."""

    code: errors.Code
    severity: messages.Severity
    detail: str
    figures: dict[str, ty.Any]


class Withdrawal:
    """Withdraws certificates and grants them again, with hysteresis."""

    def __init__(self) -> None:
        self.withdrawn = False
        self._fine_since_s: float | None = None

    def take(
        self,
        threads: int,
        saturated: bool,
        profile: profiles.Profile | None,
        now_s: float,
    ) -> Event | None:
        """Compare what the host does with what was measured.

        :param threads: whose budgets are looked at.
        :param saturated: whether the looks come late.
        :param profile: the newest one by the benchmark; None when there is
            nothing to withdraw.
        :param now_s: the steady clock.
        :returns: None when nothing changes.
        """
        if profile is None:
            return None
        most = certification.threads(profile)
        figures = {
            'version': profile.version,
            'threads': threads,
            'certified_threads': most,
            'saturated': saturated,
        }
        if saturated or threads > most:
            self._fine_since_s = None
            if self.withdrawn:
                return None
            self.withdrawn = True
            return Event(
                errors.Code.CERTIFICATES_WITHDRAWN,
                messages.Severity.WARNING,
                'the certificates of error profile %d are withdrawn: %s'
                % (
                    profile.version,
                    'the helper that looks at budgets has used up its '
                    'reservation'
                    if saturated
                    else 'it was measured with %d reserved threads, and the '
                    'host '
                    'has %d' % (most, threads),
                ),
                figures,
            )
        if not self.withdrawn:
            return None
        if self._fine_since_s is None:
            self._fine_since_s = now_s
        if now_s - self._fine_since_s < RESTORE_S:
            return None
        self.withdrawn = False
        return Event(
            errors.Code.CERTIFICATES_GRANTED,
            messages.Severity.INFO,
            'the certificates of error profile %d hold again'
            % (profile.version),
            figures,
        )
