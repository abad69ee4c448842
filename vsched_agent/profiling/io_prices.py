# SPDX-License-Identifier: Apache-2.0

"""What the host's overhead profile means for an instance that does I/O."""

from collections.abc import Callable
from collections.abc import Mapping
import typing as ty

from vsched_lib.contract import certification
from vsched_lib.contract import errors
from vsched_lib.contract import profiles
from vsched_lib.model import fit


class Prices:
    """Says what a flavor's I/O takes of the host.

    :param profile: the host's newest one by the benchmark, if any.
    :param host: facts of the kernel now, as in a profile; a profile with
        others is about another host.
    """

    def __init__(
        self,
        profile: Callable[[], profiles.OverheadProfile | None],
        host: Mapping[str, ty.Any],
    ) -> None:
        self._profile = profile
        self._host = host

    def usable(self) -> profiles.OverheadProfile | None:
        """The profile that prices are taken from."""
        return None if self.problem() else self._profile()

    def problem(self) -> str | None:
        """Why there are no prices; None when there are."""
        found = self._profile()
        if found is None:
            return 'what I/O costs was not measured on this host'
        differ = certification.differences(found, self._host)
        if differ:
            return 'overhead profile %d was measured with another %s' % (
                found.version,
                ', '.join(differ),
            )
        if not found.good:
            return (
                'overhead profile %d explains only %.0f %% of what was '
                'measured' % (found.version, 100 * found.r2)
            )
        return None

    def refusal(self, need: fit.Need, problem: fit.Problem) -> errors.Refused:
        """Why an instance's I/O is not taken, with the figures.

        :param problem: with what it would cost, or that it has no price.
        """
        found = self.usable()
        if found is None:
            return errors.Refused(
                self.problem() or problem.detail, errors.Code.DOES_NOT_FIT
            )
        return errors.Refused(
            problem.detail,
            errors.Code.DOES_NOT_FIT,
            {
                'overhead_mcpu': need.overhead_mcpu,
                'promised_mcpu': need.guest_mcpu,
                'profile_version': found.version,
            },
        )
