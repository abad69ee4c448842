# SPDX-License-Identifier: Apache-2.0

"""How an agent uses what its host has measured, as it reports it.

All decisions for a host use this policy: a scheduler with another one would
place instances where they are refused, or not where they fit.
"""

import dataclasses

from vsched_lib.contract import bounds
from vsched_lib.contract import wire
from vsched_lib.model import fit


@dataclasses.dataclass(frozen=True, slots=True)
class HostPolicy(wire.Message):
    """The required confidence, and what a host accepts.

    :param confidence: of the bounds of errors, above 0, below 1.
    :param max_margin_ppm: and the next two: see
        :class:`vsched_lib.model.fit.Policy`.
    """

    confidence: bounds.Confidence
    max_margin_ppm: bounds.BoundPpm
    max_overhead_ppm: bounds.BoundPpm
    refuse_unpriced: bool

    @property
    def fit(self) -> fit.Policy:
        """The same for the model."""
        return fit.Policy(
            self.max_margin_ppm, self.max_overhead_ppm, self.refuse_unpriced
        )
