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

"""What placement calls the things that vsched puts there, and how hosts
stand with it.

A host has one provider of ours, below that of its compute node. Flavors ask
of it by a request group of their own, so that the claim falls there and
nowhere else.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum

from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import error
from vsched_lib.model import reservation

#: What is claimed: milli-CPU of guaranteed bandwidth.
RESOURCE_CLASS = 'CUSTOM_VSCHED_MCPU'

#: The request group of flavors.
GROUP = '_VSCHED'

#: Every trait of ours begins so.
TRAIT_PREFIX = 'CUSTOM_VSCHED_'

#: vCPUs can be taken offline and brought back there.
BALLOON_TRAIT = TRAIT_PREFIX + 'BALLOON'

#: A host is certified for these bounds of its error, in ppm.
BOUNDS_PPM = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)


class PlacementState(enum.StrEnum):
    """How a host stands with placement."""

    OFF = 'off'
    WAITING = 'waiting'
    SYNCED = 'synced'
    FAILED = 'failed'


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementInfo(wire.Message):
    """How a host stands with placement.

    :param detail: what it waits for, or why it failed.
    :param provider_uuid: of the host's own provider; this and the figures
        are as of the last success.
    :param offered_mcpu: what instances may claim in total.
    :param claimed_mcpu: what they claim.
    """

    state: PlacementState
    detail: str = ''
    provider_uuid: str | None = None
    offered_mcpu: int | None = None
    claimed_mcpu: int | None = None


def provider_name(compute_name: str) -> str:
    """What our provider below a compute node's is called."""
    return compute_name + ':vsched'


def backend_trait(backend: str) -> str:
    """The host can use this backend."""
    return '%sBACKEND_%s' % (TRAIT_PREFIX, backend.upper())


def certified_trait(backend: str, period_us: int, bound_ppm: int) -> str:
    """The host's errors keep within a bound.

    E.g. ``CUSTOM_VSCHED_CERTIFIED_DEADLINE_20000US_0_5PCT``.
    """
    bound = ('%g' % (bound_ppm / 10_000)).replace('.', '_')
    return '%sCERTIFIED_%s_%dUS_%sPCT' % (
        TRAIT_PREFIX, backend.upper(), period_us, bound)


def certified_traits(points: Iterable[profiles.ErrorPoint],
                     confidence: float) -> frozenset[str]:
    """What an error profile certifies.

    Only points measured among contenders count; every measured share from
    :data:`vsched_lib.model.error.JUDGED_FROM_PPM` on has to keep the bound.

    :param points: of any backends and periods.
    :param confidence: above 0, below 1.
    """
    groups: dict[tuple[str, int], list[profiles.ErrorPoint]] = {}
    for point in points:
        if point.contenders > 0:
            groups.setdefault((point.backend, point.period_us), []).append(
                point)
    return frozenset(
        certified_trait(backend, period_us, bound_ppm)
        for (backend, period_us), group in groups.items()
        for bound_ppm in BOUNDS_PPM
        if error.certified(group, bound_ppm, confidence))


def claim_mcpu(promise: reservation.Reservation | None, vcpus: int) -> int:
    """What an instance claims: ΣQ/P over its vCPUs, rounded up.

    What its host adds to it, a margin for measured errors or the cost of
    I/O, differs from host to host; the host's agent takes that out of its
    inventory. A backend that guarantees nothing takes nothing.
    """
    if promise is None or (
            promise.backend is not None and
            promise.backend not in reservation.GUARANTEES):
        return 0
    return promise.bandwidth_mcpu(vcpus)


def request(promise: reservation.Reservation | None,
            vcpus: int) -> Mapping[str, str]:
    """The extra specs that make a flavor claim its reservation."""
    claim = claim_mcpu(promise, vcpus)
    if promise is None or not claim:
        return {}
    found = {'resources%s:%s' % (GROUP, RESOURCE_CLASS): str(claim)}
    if promise.backend is not None:
        found['trait%s:%s' % (
            GROUP, backend_trait(promise.backend))] = 'required'
    return found


def ours(name: str) -> bool:
    """Whether an extra spec belongs to our request group."""
    kind, colon, rest = name.partition(':')
    return bool(colon) and kind in _KINDS and rest.startswith(TRAIT_PREFIX)


_KINDS = ('resources' + GROUP, 'trait' + GROUP)
