# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""How good a host is for a flavor, in numbers: more is better.

nova-scheduler's weighers and evaluations go by the same ones. What is not
known of a host is neither good nor bad: it counts as the mean of the others.
"""

from collections.abc import Sequence

from vsched_lib.model import fit


def headroom(need: fit.Need, free_mcpu: int, capacity_mcpu: int,
             taken: int = 0) -> float:
    """The part of a host's capacity that would be left.

    :param taken: instances of the same request that are to come there.
    """
    if not capacity_mcpu:
        return 0.0
    return (free_mcpu - need.demand_mcpu * (1 + taken)) / capacity_mcpu


def allocation_error(need: fit.Need) -> float | None:
    """By how much one second of a hundred falls short there, below 0."""
    return None if need.error_ppm is None else float(min(0, need.error_ppm))


def io_overhead(need: fit.Need) -> float | None:
    """What the flavor's I/O would cost there, below 0."""
    return None if need.overhead_mcpu is None else float(-need.overhead_mcpu)


def neutral(values: Sequence[float | None]) -> list[float]:
    """The mean of what is known where nothing is."""
    known = [value for value in values if value is not None]
    mean = sum(known) / len(known) if known else 0.0
    return [mean if value is None else value for value in values]


def normal(values: Sequence[float]) -> list[float]:
    """From 0 for the worst to 1 for the best; 0 when all are alike."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if low == high:
        return [0.0] * len(values)
    return [(value - low) / (high - low) for value in values]
