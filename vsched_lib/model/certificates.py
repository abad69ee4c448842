# SPDX-License-Identifier: Apache-2.0

"""Bounds of a host's errors, in the form that placement decisions need.

A profile has quantiles and tails of all samples; to decide where an error
bound can be kept, one bound for each measured share is enough.
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
    :param lowers_ppm: lower bound of 99 of 100 errors at each share; None
        when there were too few samples.
    :raises ValueError: when lengths differ or shares do not rise.
    """

    shares_ppm: tuple[int, ...]
    lowers_ppm: tuple[int | None, ...]

    def __post_init__(self) -> None:
        if len(self.shares_ppm) != len(self.lowers_ppm):
            raise ValueError(
                'shares_ppm: %d of them, and %d bounds'
                % (len(self.shares_ppm), len(self.lowers_ppm))
            )
        if any(
            low >= high
            for low, high in zip(
                self.shares_ppm, self.shares_ppm[1:], strict=False
            )
        ):
            raise ValueError('shares_ppm: not rising')
        # Nearly all hosts measure the same shares.
        object.__setattr__(self, 'shares_ppm', sharing.one(self.shares_ppm))

    @classmethod
    def of(
        cls, points: Iterable[error.Point], confidence: float
    ) -> 'Certificate':
        """Return the certificate of points of one backend and period.

        :param points: of several with one share the worst decides.
        :param confidence: above 0, below 1.
        """
        by_share: dict[int, list[int | None]] = {}
        for point in points:
            by_share.setdefault(point.share_ppm, []).append(
                point.statistics.lower_ppm(confidence)
            )
        shares_ppm = sorted(by_share)
        return cls(
            tuple(shares_ppm),
            tuple(_worst(by_share[share_ppm]) for share_ppm in shares_ppm),
        )

    def lower_ppm(self, share_ppm: int) -> int | None:
        """Return the lower bound of 99 of 100 errors at a share, in ppm.

        The same as :func:`vsched_lib.model.error.evidence` returns for the
        points that this was made of.

        :param share_ppm: of a CPU, for one vCPU.
        :returns: None when that is not known.
        """
        return self.worst_ppm(*relevant(self.shares_ppm, share_ppm))

    def worst_ppm(self, first: int, end: int) -> int | None:
        """Return the worst bound of some shares; None when one is unknown.

        :param first: of the range of :func:`relevant`, like ``end``.
        """
        bounds = self.lowers_ppm[first:end]
        if not bounds or None in bounds:
            return None
        return min(ty.cast(tuple[int, ...], bounds))


def relevant(shares: Sequence[int], share_ppm: int) -> tuple[int, int]:
    """Return the range of measured shares that bound the errors of one.

    Nearly all hosts measure the same shares, so callers can cache it.

    :param shares: in ppm of a CPU, rising.
    :returns: first index and end; equal when there is none.
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
