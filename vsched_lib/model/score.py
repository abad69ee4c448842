# SPDX-License-Identifier: Apache-2.0

"""Scores of a host for a flavor: more is better.

nova-scheduler's weighers and evaluations share them. What is unknown of a
host is neutral: it counts as the mean of the others.
"""

from collections.abc import Sequence

from vsched_lib.model import fit


def headroom(
    need: fit.Need, free_mcpu: int, capacity_mcpu: int, taken: int = 0
) -> float:
    """Return the part of a host's capacity that would be left.

    :param taken: instances of the same request already assigned to it.
    """
    if not capacity_mcpu:
        return 0.0
    return (free_mcpu - need.demand_mcpu * (1 + taken)) / capacity_mcpu


def allocation_error(need: fit.Need) -> float | None:
    """Return the shortfall of one second of a hundred, below 0."""
    return None if need.error_ppm is None else float(min(0, need.error_ppm))


def io_overhead(need: fit.Need) -> float | None:
    """Return what the flavor's I/O would cost there, below 0."""
    return None if need.overhead_mcpu is None else float(-need.overhead_mcpu)


def neutral(values: Sequence[float | None]) -> list[float]:
    """Return the values, with their mean in place of unknown ones."""
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known else 0.0
    return [mean if value is None else value for value in values]


def normal(values: Sequence[float]) -> list[float]:
    """Scale to 0 for the worst to 1 for the best; 0 when all are equal."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [0.0] * len(values)
    return [(value - low) / (high - low) for value in values]
