# SPDX-License-Identifier: Apache-2.0

"""How long to wait before something that failed is tried again."""

import typing as ty

#: A pause is multiplied by a random number from this range, so that many
#: clients do not try again at the same moment.
SPREAD = (0.75, 1.25)


class RetryPause:
    """Pauses that double with each failure since the last success.

    :param first_s: the first pause in seconds.
    :param longest_s: the longest one, before it is spread.
    :param uniform: returns a random number of a range.
    """

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        uniform: ty.Callable[[float, float], float],
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._uniform = uniform
        self._next_s = first_s

    def failed(self) -> float:
        """Record a failure and return the pause after it, in seconds."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, self._longest_s)
        return pause_s * self._uniform(*SPREAD)

    def succeeded(self) -> None:
        """Begin with the first pause again."""
        self._next_s = self._first_s
