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

"""What is known of a host's errors, in the form that decides placement.

A profile has every sample's quantiles and tails; to decide where a promise
can be kept it is enough to have, for each measured share, one bound.
"""

import bisect
from collections.abc import Iterable
from collections.abc import Sequence
import dataclasses
import typing as ty

from vsched_lib.model import error
from vsched_lib.model import sharing


@dataclasses.dataclass(frozen=True, slots=True)
class Certificate:
    """Bounds of the errors of one backend and period, at one confidence.

    :param shares_ppm: the measured shares of a CPU, rising, each once.
    :param lowers_ppm: what the errors at each share are not below, but for
        one in a hundred; None when there were too few samples to say.
    :raises ValueError: when they do not belong together.
    """

    shares_ppm: tuple[int, ...]
    lowers_ppm: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if len(self.shares_ppm) != len(self.lowers_ppm):
            raise ValueError('shares_ppm: %d of them, and %d bounds' % (
                len(self.shares_ppm), len(self.lowers_ppm)))
        if any(low >= high for low, high in zip(
                self.shares_ppm, self.shares_ppm[1:], strict=False)):
            raise ValueError('shares_ppm: not rising')
        # Nearly all hosts measure the same shares.
        object.__setattr__(self, 'shares_ppm', sharing.one(self.shares_ppm))

    @classmethod
    def of(cls, points: Iterable[error.Point],
           confidence: float) -> 'Certificate':
        """Sum up points of one backend and period.

        :param points: several of one share all count, the worst decides.
        :param confidence: above 0, below 1.
        """
        by_share: dict[int, list[int | None]] = {}
        for point in points:
            by_share.setdefault(point.share_ppm, []).append(
                point.statistics.lower_ppm(confidence))
        shares_ppm = sorted(by_share)
        return cls(tuple(shares_ppm), tuple(
            _worst(by_share[share_ppm]) for share_ppm in shares_ppm))

    def lower_ppm(self, share_ppm: int) -> int | None:
        """What the errors at a share are not below, but for one in a hundred.

        The same as :func:`vsched_lib.model.error.evidence` says of the
        points that this was made of.

        :param share_ppm: of a CPU, for one vCPU.
        :returns: None when that is not known.
        """
        return self.worst_ppm(*speaking(self.shares_ppm, share_ppm))

    def worst_ppm(self, first: int, end: int) -> int | None:
        """The worst bound of some shares; None when one is not known.

        :param first: and the next: of :func:`speaking`.
        """
        bounds = self.lowers_ppm[first:end]
        if not bounds or None in bounds:
            return None
        return min(ty.cast(tuple[int, ...], bounds))


def speaking(shares: Sequence[int], share_ppm: int) -> tuple[int, int]:
    """Which of the measured shares speak of one: from, and up to.

    Nearly always all hosts measure the same ones, so this need not be found
    out for each.

    :param shares: in ppm of a CPU, rising.
    :returns: two equal ones when none does.
    """
    first = bisect.bisect_right(shares, share_ppm) - 1
    if first < 0:
        return 0, 0
    last = bisect.bisect_left(shares, share_ppm, first)
    if last == len(shares):
        last -= 1
    while first > 0 and error.near(shares[first - 1], share_ppm):
        first -= 1
    while last + 1 < len(shares) and error.near(shares[last + 1], share_ppm):
        last += 1
    return first, last + 1


def _worst(bounds: Iterable[int | None]) -> int | None:
    found = []
    for bound in bounds:
        if bound is None:
            return None
        found.append(bound)
    return min(found)
