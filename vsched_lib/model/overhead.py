# SPDX-License-Identifier: Apache-2.0

"""The cost of the host's work for an instance's I/O, and its demand.

The host spends CPU time on a packet or a block that a guest moves, and on
waking up for it: batched traffic wakes a thread once for many packets, so
its cost is linear in events *and* wakeups and not in events alone. Govindan
et al. (VEE 2007, section 3.3) price page flips by four profiling runs; here
the prices are the coefficients of a linear model that cannot be negative.

Costs are in nanoseconds of CPU time per event.
"""

from collections.abc import Mapping
from collections.abc import Sequence
import dataclasses
import math
import typing as ty

from vsched_lib.model import reservation

#: Events that are counted and priced.
EVENTS = ('net_rx', 'net_tx', 'disk_read', 'disk_write')
#: Wakeups of the host's threads by a guest and its devices.
WAKEUPS = 'wakeups'
#: Use of the host's threads without I/O, per second.
IDLE = 'idle_s'
TERMS = (*EVENTS, WAKEUPS, IDLE)

#: The lowest r2 of a fit that is used for prices.
GOOD_R2 = 0.9
#: Coefficients smaller than this part of the largest count as none.
_NOTHING = 1e-12
_MOST_STEPS = 100


@dataclasses.dataclass(frozen=True, slots=True)
class Observation:
    """The counts of one interval, and their cost.

    :param counts: by term; missing terms count as 0.
    :param cost_ns: CPU time of the host's threads.
    """

    counts: Mapping[str, float]
    cost_ns: float


@dataclasses.dataclass(frozen=True, slots=True)
class Price:
    """What one event of a kind costs.

    :param cost_ns: never below 0.
    :param error_ns: its standard error; infinite when the observations do
        not distinguish it from others.
    """

    cost_ns: float
    error_ns: float


class Tariff(ty.NamedTuple):
    """The cost of events with the wakeups that they cause, in ns.

    :param idle_ns: of a second without I/O.
    """

    net_rx_ns: float
    net_tx_ns: float
    disk_read_ns: float
    disk_write_ns: float
    idle_ns: float


@dataclasses.dataclass(frozen=True, slots=True)
class Fit:
    """Prices, and how well they explain the observations.

    :param prices: by term.
    :param r2: the part of the costs' variance that they explain; 1 when
        there is neither variance nor a residual.
    :param residual_ns: the root mean square of the residuals.
    :param n: observations.
    """

    prices: Mapping[str, Price]
    r2: float
    residual_ns: float
    n: int

    @property
    def good(self) -> bool:
        """Whether it may be used for prices."""
        return self.n > len(self.prices) and self.r2 >= GOOD_R2

    def tariff(self, wakeups_per_event: float = 1.0) -> Tariff:
        """Return the prices in the form for :func:`cost_mcpu`.

        :param wakeups_per_event: 1 when nothing is batched, the worst case.
        """

        def cost_ns(term: str) -> float:
            price = self.prices.get(term)
            return 0.0 if price is None else price.cost_ns

        wakeup_ns = wakeups_per_event * cost_ns(WAKEUPS)
        return Tariff._make(
            (*(cost_ns(event) + wakeup_ns for event in EVENTS), cost_ns(IDLE))
        )

    def predict_ns(self, counts: Mapping[str, float]) -> float:
        """Return the cost of an interval with these counts."""
        return sum(
            price.cost_ns * counts.get(term, 0.0)
            for term, price in self.prices.items()
        )


def fit(
    observations: Sequence[Observation],
    terms: Sequence[str] = TERMS,
    floor: float | None = None,
) -> Fit:
    """Fit prices to observations, none below 0.

    Non-negative least squares by active sets (Lawson and Hanson, Solving
    Least Squares Problems, chapter 23). Terms that never occur cost 0.

    :param floor: residuals count in proportion to the costs, each with this
        part of the mean cost added; above 0. None weights all equally, and a
        few expensive observations dominate. ``r2`` and ``residual_ns`` are
        of the unweighted costs, either way.
    :raises ValueError: when there are no observations.
    """
    if not observations:
        raise ValueError('there are no observations')
    rows = [
        [float(one.counts.get(term, 0.0)) for term in terms]
        for one in observations
    ]
    costs = [float(one.cost_ns) for one in observations]
    mean = sum(costs) / len(costs)
    weights = [
        1.0 if floor is None or not mean else mean / (cost + floor * mean)
        for cost in costs
    ]
    given, rows = (
        rows,
        [
            [value * weight for value in row]
            for row, weight in zip(rows, weights, strict=True)
        ],
    )
    # Columns of equal norm, or sums of squares of rare terms vanish.
    scales = [
        math.sqrt(sum(row[index] ** 2 for row in rows)) or 1.0
        for index in range(len(terms))
    ]
    scaled = [
        [value / scale for value, scale in zip(row, scales, strict=True)]
        for row in rows
    ]
    found = _nnls(scaled, list(map(_product, costs, weights)))
    prices = [
        value / scale for value, scale in zip(found, scales, strict=True)
    ]
    residuals = [
        cost - sum(map(_product, row, prices))
        for row, cost in zip(given, costs, strict=True)
    ]
    total = sum((cost - mean) ** 2 for cost in costs)
    left = sum(residual**2 for residual in residuals)
    errors = _standard_errors(
        scaled, found, sum(map(_square, map(_product, residuals, weights)))
    )
    return Fit(
        {
            term: Price(price, error / scale)
            for term, price, error, scale in zip(
                terms, prices, errors, scales, strict=True
            )
        },
        1 - left / total
        if total
        else float(left <= _NOTHING * max(1.0, mean**2)),
        math.sqrt(left / len(costs)),
        len(costs),
    )


def _product(left: float, right: float) -> float:
    return left * right


def _square(value: float) -> float:
    return value * value


def _nnls(rows: list[list[float]], costs: list[float]) -> list[float]:
    width = len(rows[0])
    gram = [
        [sum(row[i] * row[j] for row in rows) for j in range(width)]
        for i in range(width)
    ]
    target = [
        sum(row[i] * cost for row, cost in zip(rows, costs, strict=True))
        for i in range(width)
    ]
    tolerance = _NOTHING * max(map(abs, target), default=1.0)
    found = [0.0] * width
    free: set[int] = set()
    for _ in range(_MOST_STEPS):
        slope = [
            target[i] - sum(map(_product, gram[i], found))
            for i in range(width)
        ]
        left = [
            i for i in range(width) if i not in free and slope[i] > tolerance
        ]
        if not left:
            break
        free.add(max(left, key=slope.__getitem__))
        while True:
            trial = _solve_free(gram, target, sorted(free))
            if trial is None:
                # Two terms that always occur together: keep one.
                free.discard(max(left, key=slope.__getitem__))
                return found
            if all(trial[i] > 0 for i in free):
                found = trial
                break
            step = min(
                found[i] / (found[i] - trial[i]) for i in free if trial[i] <= 0
            )
            found = [
                old + step * (new - old)
                for old, new in zip(found, trial, strict=True)
            ]
            free = {i for i in free if found[i] > _NOTHING and trial[i] > 0}
            found = [
                value if i in free else 0.0 for i, value in enumerate(found)
            ]
            if not free:
                break
    return found


def _solve_free(
    gram: list[list[float]], target: list[float], free: list[int]
) -> list[float] | None:
    small = [[gram[i][j] for j in free] for i in free]
    solved = _solve(small, [[target[i]] for i in free])
    if solved is None:
        return None
    found = [0.0] * len(target)
    for index, row in zip(free, solved, strict=True):
        found[index] = row[0]
    return found


def _solve(
    matrix: list[list[float]], right: list[list[float]]
) -> list[list[float]] | None:
    """Solve by elimination with pivots; None when the matrix is singular."""
    size = len(matrix)
    rows = [[*left, *more] for left, more in zip(matrix, right, strict=True)]
    for column in range(size):
        pivot = max(
            range(column, size), key=lambda row: abs(rows[row][column])
        )
        if abs(rows[pivot][column]) < 1e-10:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row != column:
                factor = rows[row][column] / rows[column][column]
                rows[row] = [
                    value - factor * other
                    for value, other in zip(
                        rows[row], rows[column], strict=True
                    )
                ]
    return [
        [value / row[index] for value in row[size:]]
        for index, row in enumerate(rows)
    ]


def _standard_errors(
    rows: list[list[float]], found: list[float], left: float
) -> list[float]:
    """Return those of ordinary least squares over the free coefficients."""
    free = [index for index, value in enumerate(found) if value > 0]
    spare = len(rows) - len(free)
    errors = [math.inf] * len(found)
    if spare <= 0 or not free:
        return errors
    gram = [[sum(row[i] * row[j] for row in rows) for j in free] for i in free]
    inverse = _solve(
        gram,
        [[float(i == j) for j in range(len(free))] for i in range(len(free))],
    )
    if inverse is not None:
        for place, index in enumerate(free):
            errors[index] = math.sqrt(
                max(0.0, inverse[place][place]) * left / spare
            )
    return errors


class Refinement:
    """Prices that follow observations, one interval after the other.

    Recursive least squares with a forgetting factor (Ljung, System
    Identification, section 11.2); prices that would fall below 0 stay there.

    :param start: the first prices.
    :param forgetting: below 1; an interval n intervals ago has its n-th
        power as weight.
    :param trust: the larger, the less one interval changes the start.
    """

    def __init__(
        self, start: Fit, forgetting: float = 0.999, trust: float = 1.0
    ) -> None:
        if not 0 < forgetting <= 1:
            raise ValueError('forgetting: %r is outside 0..1' % forgetting)
        self._terms = tuple(start.prices)
        self._forgetting = forgetting
        # In units of the start's own prices, so that one gain fits all.
        self._units = [
            max(1.0, price.cost_ns) for price in start.prices.values()
        ]
        self._values = [
            price.cost_ns / unit
            for price, unit in zip(
                start.prices.values(), self._units, strict=True
            )
        ]
        self._spread = [
            [(1.0 / trust) * (i == j) for j in range(len(self._terms))]
            for i in range(len(self._terms))
        ]

    @property
    def prices_ns(self) -> dict[str, float]:
        """The current prices by term."""
        return {
            term: value * unit
            for term, value, unit in zip(
                self._terms, self._values, self._units, strict=True
            )
        }

    def observe(self, one: Observation) -> float:
        """Take one interval into account.

        :returns: by how much its cost exceeded what was expected, ns.
        """
        row = [
            one.counts.get(term, 0.0) * unit
            for term, unit in zip(self._terms, self._units, strict=True)
        ]
        size = math.sqrt(sum(value * value for value in row))
        if not size:
            return one.cost_ns
        surprise = one.cost_ns - sum(map(_product, row, self._values))
        # Normalised, so that intervals with more events do not weigh more.
        row = [value / size for value in row]
        spread_row = [sum(map(_product, line, row)) for line in self._spread]
        gain_base = self._forgetting + sum(map(_product, row, spread_row))
        gain = [value / gain_base for value in spread_row]
        self._values = [
            max(0.0, value + step * surprise / size)
            for value, step in zip(self._values, gain, strict=True)
        ]
        self._spread = [
            [
                (self._spread[i][j] - gain[i] * spread_row[j])
                / self._forgetting
                for j in range(len(row))
            ]
            for i in range(len(row))
        ]
        return surprise


@dataclasses.dataclass(frozen=True, slots=True)
class Rates:
    """The I/O that a flavor expects of an instance, per second."""

    net_rx_pps: int = 0
    net_tx_pps: int = 0
    disk_read_iops: int = 0
    disk_write_iops: int = 0


def cost_mcpu(rates: tuple[int, int, int, int], tariff: Tariff) -> int:
    """Return what the host spends on a flavor's I/O.

    :param rates: the fields of :class:`Rates`.
    :param tariff: :meth:`Fit.tariff`; of one wake-up for each event when
        nothing is batched, the worst case.
    :returns: milli-CPU, rounded up.
    """
    net_rx, net_tx, disk_read, disk_write = rates
    net_rx_ns, net_tx_ns, disk_read_ns, disk_write_ns, idle_ns = tariff
    cost_ns = (
        net_rx * net_rx_ns
        + net_tx * net_tx_ns
        + disk_read * disk_read_ns
        + disk_write * disk_write_ns
        + idle_ns
    )
    # Absorbs the error of the floating-point sum.
    return math.ceil(cost_ns * _MCPU_PER_NS - _SLACK_MCPU)


_MCPU_PER_NS = reservation.MCPU_PER_CPU / 1e9
_SLACK_MCPU = 1e-6


def total_mcpu(own_mcpu: int, overhead: int, charged: bool) -> int:
    """Return the bandwidth that an instance needs of a host, in milli-CPU.

    :param own_mcpu: ΣQ/P over its vCPUs, margins included.
    :param overhead: see :func:`cost_mcpu`.
    :param charged: the overhead comes out of the guest's own reservation
        (``io_charging = charge``) and not on top of it.
    """
    if not charged:
        return own_mcpu + overhead
    return own_mcpu if own_mcpu > overhead else overhead
