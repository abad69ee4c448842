# SPDX-License-Identifier: Apache-2.0

"""What flavors claim in placement, with the cost of I/O on the hosts."""

from collections.abc import Callable
from collections.abc import Mapping
import dataclasses
import statistics

from vsched_api.operations import errors
from vsched_lib.contract import errors as contract_errors
from vsched_lib.contract import extra_specs
from vsched_lib.contract import flavors
from vsched_lib.contract import placement
from vsched_lib.model import fit
from vsched_lib.model import reservation

#: Claims for I/O are multiples of this, in mcpu.
STEP_MCPU = 10

#: A host on which I/O costs more than this many times the median of all hosts
#: decides no claim: it has measured wrongly, or what it reports is wrong.
OUTLIER = 4
_NAMED = 5

#: Returns all hosts whose stored data can be read, by name.
Hosts = Callable[[], Mapping[str, fit.Host]]


@dataclasses.dataclass(frozen=True, slots=True)
class IoPrice:
    """The cost of I/O that comes on top of a reservation.

    :param note: what a reader of the figure has to know, or None.
    """

    mcpu: int
    note: str | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Claim:
    """What a flavor has to claim.

    :param extra_specs: those of the flavor with this claim.
    :param agrees: whether the flavor has just this claim.
    :param guest_mcpu: the part of its vCPUs.
    :param overhead_mcpu: the part of the host's work on its I/O.
    :param notes: what placement cannot check, and what is not known of hosts.
    """

    reservation: reservation.Reservation | None
    extra_specs: Mapping[str, str]
    agrees: bool
    guest_mcpu: int
    overhead_mcpu: int
    notes: tuple[str, ...]


def io_price(ask: fit.Ask, hosts: Mapping[str, fit.Host]) -> IoPrice:
    """Return the cost of I/O on the most expensive host.

    Outliers are left out: one host must not make all flavors claim more than
    any other host has. On such a host the filters check what a claim lacks.
    """
    costs = {
        host: one
        for host, known in hosts.items()
        if (one := fit.Asking(ask).cost_mcpu(known)) is not None
    }
    if not costs:
        return IoPrice(
            0, 'no host has measured what I/O costs: the claim is without it'
        )
    most = OUTLIER * max(STEP_MCPU, statistics.median_low(costs.values()))
    highest = max(one for one in costs.values() if one <= most)
    beyond = sorted(host for host in costs if costs[host] > most)
    note = None
    if beyond:
        note = (
            'on %d hosts I/O costs more than %d mcpu, %d times as much as on '
            'others: the claim is without them: %s%s'
            % (
                len(beyond),
                most,
                OUTLIER,
                ', '.join(beyond[:_NAMED]),
                '' if len(beyond) <= _NAMED else ', ...',
            )
        )
    # A new measurement of the same host should change no claim.
    return IoPrice(-(-highest // STEP_MCPU) * STEP_MCPU, note)


def claim(vcpus: int, specs: Mapping[str, str], hosts: Hosts) -> Claim:
    """Return what a flavor has to claim.

    :param specs: all that the flavor has.
    :param hosts: called only when the cost of I/O is a part of the claim.
    :raises errors.Invalid: when no host could hold the reservation.
    """
    price = IoPrice(0)
    guest_mcpu = 0

    def io_mcpu(ask: fit.Ask) -> int:
        nonlocal price
        # A backend that guarantees nothing claims nothing for I/O either.
        if guest_mcpu:
            price = io_price(ask, hosts())
        return price.mcpu

    try:
        reserved = extra_specs.parse(specs).reservation
        guest_mcpu = placement.claim_mcpu(reserved, vcpus)
        change = flavors.claiming(vcpus, specs, io_mcpu)
        unclaimed = flavors.unclaimed(vcpus, specs)
    except contract_errors.InvalidExtraSpecs as problem:
        raise errors.Invalid(problem.detail, problem.code) from None
    after = {
        name: text
        for name, text in specs.items()
        if name not in change.removed
    }
    after.update(change.added)
    return Claim(
        reserved,
        after,
        not change,
        guest_mcpu,
        price.mcpu,
        tuple(text for text in (price.note, unclaimed) if text is not None),
    )
