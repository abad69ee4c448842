# SPDX-License-Identifier: Apache-2.0

"""What a host's error profile means for a reservation.

The measurement changes the decision in two ways: a promise with a bound on
its error gets as much more runtime as the measured errors ask for, and one
whose bound the host can not show is refused with the measured figure.
"""

from collections.abc import Callable
from collections.abc import Mapping
import typing as ty

from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles
from vsched_lib.contract import snapshot
from vsched_lib.model import certificates
from vsched_lib.model import error
from vsched_lib.model import fit
from vsched_lib.model import reservation


class Margins:
    """Grants promises what they need to keep within a bound.

    :param profile: the host's newest profile by the benchmark, if any.
    :param host: facts of the kernel now, as in a profile; a profile with
        others is about another host.
    :param confidence: with which the measured errors bound those to come.
    """

    def __init__(
        self,
        profile: Callable[[], profiles.ErrorProfile | None],
        host: Mapping[str, ty.Any],
        confidence: float = 0.8,
    ) -> None:
        self._profile = profile
        self._host = host
        self._confidence = confidence
        self._certified: (
            tuple[
                profiles.ErrorProfile,
                dict[tuple[str, int], certificates.Certificate],
            ]
            | None
        ) = None

    @property
    def confidence(self) -> float:
        """How sure a bound must be."""
        return self._confidence

    def certified(self) -> Mapping[tuple[str, int], certificates.Certificate]:
        """By backend and period in microseconds, what is known of errors.

        Empty when nothing is, or what there is is of another host.
        """
        profile = self._profile()
        if profile is None or certification.differences(profile, self._host):
            return {}
        # Looked at for every instance, made anew a few times a year.
        if self._certified is None or self._certified[0] is not profile:
            self._certified = (
                profile,
                {
                    (one.backend, one.period_us): one.bounds
                    for one in snapshot.certify(profile, self._confidence)
                },
            )
        return self._certified[1]

    def refusal(
        self,
        promise: reservation.Reservation,
        backend: reservation.Backend,
        bound_ppm: int,
        policy: fit.Policy,
    ) -> errors.Refused:
        """Why the bound can not be shown, with the measured figures.

        :param promise: of which that was found.
        """
        share_ppm = int(promise.utilisation * error.PPM)
        figures: dict[str, ty.Any] = {
            'backend': str(backend),
            'period_us': promise.period_us,
            'share_ppm': share_ppm,
            'bound_ppm': bound_ppm,
            'confidence': self._confidence,
        }
        profile = self._profile()
        points = (
            []
            if profile is None
            else certification.contended(profile, backend, promise.period_us)
        )
        if profile is None or not points:
            return _refused(
                'backend %s was not measured under contention at a period '
                'of %d us; "vsched-agent profile error" measures it'
                % (backend, promise.period_us),
                figures,
            )
        found = error.evidence(points, share_ppm, self._confidence)
        figures.update(profile_version=profile.version, samples=found.n)
        differ = certification.differences(profile, self._host)
        if differ:
            return _refused(
                'profile %d was measured with another %s; "vsched-agent '
                'profile error" measures this host anew'
                % (profile.version, ', '.join(differ)),
                figures,
            )
        if found.lower_ppm is None:
            needed = error.samples_needed(self._confidence)
            return _refused(
                'a share of %g %% by %s takes %d samples at each share next '
                'to it and at one that is not above it; the profile has %d'
                % (share_ppm / 10_000, backend, needed, found.n),
                {**figures, 'samples_needed': needed},
            )
        return _refused(
            '%s was measured to fall short by %g %% in one second of a '
            'hundred at a share of %g %% (profile %d), and %g %% may be '
            'missing; no margin of at most %g %% makes up for it'
            % (
                backend,
                -found.lower_ppm / 10_000,
                share_ppm / 10_000,
                profile.version,
                bound_ppm / 10_000,
                policy.most_margin_ppm / 10_000,
            ),
            {**figures, 'measured_p99_lower_ppm': found.lower_ppm},
        )


def _refused(detail: str, figures: dict[str, ty.Any]) -> errors.Refused:
    return errors.Refused(detail, errors.Code.NOT_CERTIFIED, figures)
