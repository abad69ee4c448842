# SPDX-License-Identifier: Apache-2.0

"""What a host's newest profiles say, for the admission of reservations."""

from vsched_agent.profiling import io_prices
from vsched_agent.profiling import margins as error_margins
from vsched_agent.reservations import admission
from vsched_lib.contract import errors
from vsched_lib.model import fit


class HostMeasurements:
    """What a host's newest profiles say.

    :param margins: of its errors.
    :param prices: of I/O.
    :param policy: what is made of both.
    """

    def __init__(
        self,
        margins: error_margins.Margins,
        prices: io_prices.Prices,
        policy: fit.Policy,
    ) -> None:
        self._margins = margins
        self._prices = prices
        self._policy = policy

    def measured(self) -> admission.Measured:
        """What is known now."""
        usable = self._prices.usable()
        return admission.Measured(
            self._margins.certified(),
            None if usable is None else usable.fit,
            self._policy,
        )

    def refusal(
        self, need: fit.Need, problem: fit.Problem, ask: fit.Ask
    ) -> errors.Refused:
        """The problem with the figures of the profile."""
        if problem.cause is fit.Cause.OVERHEAD:
            return self._prices.refusal(need, problem)
        if (
            need.backend is None
            or ask.promise is None
            or (ask.bound_ppm is None)
        ):
            return errors.Refused(
                problem.detail, admission.CODES[problem.cause]
            )
        return self._margins.refusal(
            ask.promise, need.backend, ask.bound_ppm, self._policy
        )
