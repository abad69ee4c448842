# SPDX-License-Identifier: Apache-2.0

"""What one-second windows of usage say about a promise."""

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
    """A phase in figures; shares in CPUs, errors as fractions.

    :param error_p99: 99th percentile of \\|got − promised\\|/promised.
    :param settle_s: seconds from the change until every later window was
        within 5 % of the promise; None when that never came.
    """

    windows: int
    promised: float
    got_mean: float
    error_mean: float
    error_p99: float
    error_max: float
    settle_s: float | None


#: A window within this fraction of the promise counts as settled.
SETTLED = 0.05

#: After a change, windows that end within this many seconds still hold
#: time from before it, so they tell how fast it settled, not how well.
SETTLING_S = 3.0


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile.

    :param values: at least one, in any order.
    :param share: 0..1.
    """
    ranked = sorted(values)
    return ranked[max(0, math.ceil(share * len(ranked)) - 1)]


def summarise(
    windows: Iterable[Window], promised: float, changed_at: float
) -> Summary | None:
    """Describe a phase.

    :param windows: every window that ended after the change.
    :param promised: CPUs promised in the phase.
    :param changed_at: when the change was asked for.
    :returns: None when no window is left after settling.
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
        max(errors),
        settled,
    )
