# SPDX-License-Identifier: Apache-2.0

"""What a benchmark is to reach, and whether it did."""

from collections.abc import Sequence
import dataclasses
import enum
import statistics


class Comparison(enum.Enum):
    """How a figure compares with its bound."""

    AT_MOST = '≤'
    AT_LEAST = '≥'
    WITHIN = '±'


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A bound for one metric, set before it was measured.

    :param metric: the metric's name.
    :param comparison: how it compares.
    :param bound: the bound, in the metric's unit.
    :param unit: as text.
    :param source: where the bound comes from: an issue, a paper, or, if it is
        of this project's choice, ``our own`` and the reason.
    :param tolerance: by how much the figure may differ from the bound;
        ``WITHIN`` only.
    """

    metric: str
    comparison: Comparison
    bound: float
    unit: str
    source: str
    tolerance: float = 0.0

    def missed_by(self, value: float) -> float:
        """By how much a figure misses the target; 0 if it is met."""
        if self.comparison is Comparison.AT_MOST:
            return max(0.0, value - self.bound)
        if self.comparison is Comparison.AT_LEAST:
            return max(0.0, self.bound - value)
        return max(0.0, abs(value - self.bound) - self.tolerance)

    def text(self) -> str:
        """The target, as in ``≤ 2 %``."""
        unit = ' ' + self.unit if self.unit else ''
        if self.comparison is Comparison.WITHIN:
            if not self.tolerance:
                return '= %s%s' % (number(self.bound), unit)
            return '%s ± %s%s' % (
                number(self.bound),
                number(self.tolerance),
                unit,
            )
        return '%s %s%s' % (self.comparison.value, number(self.bound), unit)


def at_most(metric: str, bound: float, unit: str, source: str) -> Target:
    """Make a target that larger figures miss."""
    return Target(metric, Comparison.AT_MOST, bound, unit, source)


def at_least(metric: str, bound: float, unit: str, source: str) -> Target:
    """Make a target that smaller figures miss."""
    return Target(metric, Comparison.AT_LEAST, bound, unit, source)


def within(
    metric: str, bound: float, tolerance: float, unit: str, source: str
) -> Target:
    """Make a target that figures miss on both sides."""
    return Target(metric, Comparison.WITHIN, bound, unit, source, tolerance)


def number(value: float) -> str:
    """Format a figure with four significant digits, or all before a point."""
    form = '%.0f' if abs(value) >= 10_000 else '%.4g'
    return form % value if isinstance(value, float) else str(value)


def spread(values: Sequence[float]) -> str:
    """Format figures of several runs: median, least to most, count."""
    if not values:
        return ''
    if len(values) == 1:
        return '%s (1 run)' % number(values[0])
    return '%s (%s to %s, %d runs)' % (
        number(statistics.median(values)),
        number(min(values)),
        number(max(values)),
        len(values),
    )


def verdict(
    target: Target, current: Sequence[float], former: Sequence[float]
) -> str:
    """Say whether a target is met.

    :param target: the target
    :param current: figures of the newest run and of others of the same
        sources; their median decides
    :param former: figures of runs of other sources; they are counted beside
    :returns: ``met`` or by how much it is missed
    """
    if not current:
        return 'not measured'
    off = target.missed_by(statistics.median(current))
    text = (
        'missed by %s%s'
        % (number(off), ' ' + target.unit if target.unit else '')
        if off
        else ('met')
    )
    everything = [*current, *former]
    met = sum(not target.missed_by(one) for one in everything)
    if (
        met not in (0, len(everything))
        or (met and off)
        or (not met and not off)
    ):
        text += '; %d of all %d runs met it' % (met, len(everything))
    return text
