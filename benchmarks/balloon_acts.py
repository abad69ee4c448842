# SPDX-License-Identifier: Apache-2.0

"""What an agent's reports tell of balloons."""

from collections.abc import Sequence
import dataclasses
import itertools

from vsched_lib.contract import errors
from vsched_lib.contract import messages

_ACTS = (
    errors.Code.BALLOON_TAKEN,
    errors.Code.BALLOON_RETURNED,
    errors.Code.BALLOON_FAILED,
)
#: The time of day is read a moment after the clock that only grows; samples
#: that are this far apart follow each other.
_MOMENT_S = 0.05


@dataclasses.dataclass(frozen=True)
class Acts:
    """What was done to one VM.

    :param taken_s: when vCPUs were taken, from the run's begin on.
    :param gaps_s: before each but a first one: since anything was done.
    :param done: all that was done, giving back and failures included.
    :param failed: of these.
    """

    taken_s: tuple[float, ...]
    gaps_s: tuple[float, ...]
    done: int
    failed: int

    @classmethod
    def of(
        cls, events: Sequence[messages.Event], configured: int, began: float
    ) -> 'Acts':
        """From the events of one VM, oldest first.

        :param configured: its vCPUs.
        :param began: seconds since the epoch.
        """
        taken_s, gaps_s = [], []
        vcpus = configured
        last: float | None = None
        acts = [event for event in events if event.code in _ACTS]
        for event in acts:
            now_vcpus = int(event.figures['vcpus'])
            # A balloon that gets smaller is told like a new one.
            if now_vcpus < vcpus:
                taken_s.append(event.at - began)
                if last is not None:
                    gaps_s.append(event.at - last)
            vcpus, last = now_vcpus, event.at
        return cls(
            tuple(taken_s),
            tuple(gaps_s),
            len(acts),
            sum(event.code == errors.Code.BALLOON_FAILED for event in acts),
        )


def by_part(taken_s: Sequence[float], seconds: float, parts: int) -> list[int]:
    """How many balloons there were in each part of the run."""
    counts = [0] * parts
    for at_s in taken_s:
        counts[min(parts - 1, int(parts * at_s / seconds))] += 1
    return counts


def missing_s(samples: Sequence[messages.UsageSample]) -> float:
    """What lies between samples and is in none of them."""
    gaps_s = [
        later.at - earlier.at - later.interval_us / 1e6
        for earlier, later in itertools.pairwise(samples)
    ]
    return sum(gap_s for gap_s in gaps_s if gap_s > _MOMENT_S)
