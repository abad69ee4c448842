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

"""What an agent makes of what its host has measured, as it tells others.

Whoever decides for a host decides by this: a scheduler with figures of its
own would place instances where they are refused, or not where they fit.
"""

import dataclasses

from vsched_lib.contract import wire
from vsched_lib.model import fit


@dataclasses.dataclass(frozen=True, slots=True)
class HostPolicy(wire.Message):
    """How sure a host must be, and what it takes.

    :param confidence: above 0, below 1: with which measured errors bound
        those to come.
    :param max_margin_ppm: and the next two: see
        :class:`vsched_lib.model.fit.Policy`.
    """

    confidence: float
    max_margin_ppm: int
    max_overhead_ppm: int
    refuse_unpriced: bool

    @property
    def fit(self) -> fit.Policy:
        """As the model sees it."""
        return fit.Policy(self.max_margin_ppm, self.max_overhead_ppm,
                          self.refuse_unpriced)
