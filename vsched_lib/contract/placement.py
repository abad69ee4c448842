# SPDX-License-Identifier: Apache-2.0

"""Names of vsched's resources in placement, and the state of hosts there.

A host has one provider of ours, below that of its compute node. Flavors
claim of it by a request group of their own, so that the claim is made there
and nowhere else.
"""

from collections.abc import Iterable
from collections.abc import Mapping
import dataclasses
import enum
import re

from vsched_lib.contract import bounds
from vsched_lib.contract import profiles
from vsched_lib.contract import wire
from vsched_lib.model import error
from vsched_lib.model import reservation

#: What is claimed: milli-CPU of guaranteed bandwidth.
RESOURCE_CLASS = 'CUSTOM_VSCHED_MCPU'

#: The request group of flavors.
GROUP = '_VSCHED'

#: Prefix of all traits of ours.
TRAIT_PREFIX = 'CUSTOM_VSCHED_'

#: vCPUs can be taken offline and brought back there.
BALLOON_TRAIT = TRAIT_PREFIX + 'BALLOON'

#: A host is certified for these bounds of its error, in ppm.
BOUNDS_PPM = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)


class PlacementState(enum.StrEnum):
    """The state of a host in placement."""

    OFF = 'off'
    WAITING = 'waiting'
    SYNCED = 'synced'
    FAILED = 'failed'


@dataclasses.dataclass(frozen=True, slots=True)
class PlacementInfo(wire.Message):
    """The state of a host in placement.

    :param detail: what it waits for, or why it failed.
    :param provider_uuid: of the host's own provider; this and the figures
        are as of the last success.
    :param offered_mcpu: what instances may claim in total.
    :param claimed_mcpu: what they claim.
    """

    state: PlacementState
    detail: bounds.Sentence = ''
    provider_uuid: bounds.Uuid | None = None
    offered_mcpu: bounds.Mcpu | None = None
    claimed_mcpu: bounds.Mcpu | None = None


def provider_name(compute_name: str) -> str:
    """Return the name of our provider below a compute node's."""
    return compute_name + ':vsched'


def backend_trait(backend: str) -> str:
    """Return the trait of hosts that can use this backend."""
    return '%sBACKEND_%s' % (TRAIT_PREFIX, backend.upper())


def certified_trait(backend: str, period_us: int, bound_ppm: int) -> str:
    """Return the trait of hosts whose errors keep within a bound.

    E.g. ``CUSTOM_VSCHED_CERTIFIED_DEADLINE_20000US_0_5PCT``.
    """
    bound = ('%g' % (bound_ppm / 10_000)).replace('.', '_')
    return '%sCERTIFIED_%s_%dUS_%sPCT' % (
        TRAIT_PREFIX,
        backend.upper(),
        period_us,
        bound,
    )


def certified_traits(
    points: Iterable[profiles.ErrorPoint], confidence: float
) -> frozenset[str]:
    """Return the traits that an error profile certifies.

    Only points measured under contention count; every measured share from
    :data:`vsched_lib.model.error.JUDGED_FROM_PPM` on has to keep the bound.

    :param points: of any backends and periods.
    :param confidence: above 0, below 1.
    """
    groups: dict[tuple[str, int], list[profiles.ErrorPoint]] = {}
    for point in points:
        if point.contenders > 0:
            groups.setdefault((point.backend, point.period_us), []).append(
                point
            )
    return frozenset(
        certified_trait(backend, period_us, bound_ppm)
        for (backend, period_us), group in groups.items()
        for bound_ppm in BOUNDS_PPM
        if error.certified(group, bound_ppm, confidence)
    )


def claim_mcpu(reserved: reservation.Reservation | None, vcpus: int) -> int:
    """Return what an instance claims: ΣQ/P over its vCPUs, rounded up.

    What its host adds, a margin for measured errors or the cost of I/O,
    differs from host to host; the host's agent reserves it in its inventory.
    A backend that takes none of a host's capacity claims nothing.
    """
    if reserved is None or (
        reserved.backend is not None
        and reserved.backend not in reservation.ADMITTED
    ):
        return 0
    return reserved.bandwidth_mcpu(vcpus)


def certifying(
    reserved: reservation.Reservation, bound_ppm: int
) -> str | None:
    """Return the weakest trait that implies a bound; None without one.

    :param reserved: without a backend it is enforced by ``deadline``, the
        only one here that guarantees anything.
    :param bound_ppm: of the error.
    """
    kept = [one for one in BOUNDS_PPM if one <= bound_ppm]
    if not kept:
        return None
    return certified_trait(
        str(reserved.backend or reservation.Backend.DEADLINE),
        reserved.period_us,
        max(kept),
    )


def request(
    reserved: reservation.Reservation | None,
    vcpus: int,
    bound_ppm: int | None = None,
    io_mcpu: int = 0,
) -> Mapping[str, str]:
    """Return the extra specs with which a flavor claims its reservation.

    :param bound_ppm: of the errors that a host may have shown.
    :param io_mcpu: the cost of I/O on top.
    """
    claim = claim_mcpu(reserved, vcpus)
    if reserved is None or not claim:
        return {}
    claim += io_mcpu
    found = {_CLAIM: str(claim)}
    if reserved.backend is not None:
        found['trait%s:%s' % (GROUP, backend_trait(reserved.backend))] = (
            'required'
        )
    certified = None if bound_ppm is None else certifying(reserved, bound_ppm)
    if certified is not None:
        found['trait%s:%s' % (GROUP, certified)] = 'required'
    return found


def ours(name: str) -> bool:
    """Return whether an extra spec belongs to our request group."""
    kind, colon, rest = name.partition(':')
    return bool(colon) and kind in _KINDS and rest.startswith(TRAIT_PREFIX)


def claimed_mcpu(specs: Mapping[str, str]) -> int:
    """Return what a flavor claims of a host, in mcpu.

    :param specs: all that it has.
    """
    text = specs.get(_CLAIM, '')
    return int(text) if _COUNT.fullmatch(text) else 0


_CLAIM = 'resources%s:%s' % (GROUP, RESOURCE_CLASS)
_COUNT = re.compile('[0-9]{1,9}')

_KINDS = ('resources' + GROUP, 'trait' + GROUP)
