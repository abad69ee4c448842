# SPDX-License-Identifier: Apache-2.0

"""Compare one-second windows of usage with a reservation."""

from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import math


@dataclasses.dataclass(frozen=True, slots=True)
class Window:
    """One usage sample of one instance.

    :param at: end of the window, seconds since the epoch.
    :param got: CPUs the guest got.
    """

    at: float
    got: float


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of a phase; shares in CPUs, errors as fractions.

    :param error_p99: 99th percentile of \\|got − reserved\\|/reserved.
    :param settle_s: seconds from the change until all later windows were
        within 5 % of the reservation; None when they never were.
    """

    windows: int
    promised: float
    got_mean: float
    error_mean: float
    error_p99: float
    settle_s: float | None


#: Relative error up to which a window counts as converged.
SETTLED = 0.05

#: Windows that end within this many seconds after a change still contain time
#: from before it. They count for the time of convergence only, not for the
#: errors.
SETTLING_S = 3.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile.

    :param values: at least one, in any order.
    :param share: 0..1.
    """
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def summarise(
    windows: Iterable[Window], promised: float, changed_at: float
) -> Summary | None:
    """Return the statistics of a phase.

    :param windows: all windows that ended after the change.
    :param promised: the reserved CPUs in the phase.
    :param changed_at: time of the request for the change.
    :returns: None when there is no window for the errors.
    """
    every = sorted(windows, key=lambda one: one.at)
    steady = [one for one in every if one.at > changed_at + SETTLING_S]
    if not steady:
        return None
    errors = [abs(one.got - promised) / promised for one in steady]
    settled: float | None = None
    for one in reversed(every):
        if abs(one.got - promised) / promised > SETTLED:
            break
        settled = max(0.0, one.at - changed_at)
    return Summary(
        len(steady),
        promised,
        sum(one.got for one in steady) / len(steady),
        sum(errors) / len(errors),
        percentile(errors, 0.99),
        settled,
    )
