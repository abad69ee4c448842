# SPDX-License-Identifier: Apache-2.0

"""The weights and caps that domains had before vsched changed them."""

from collections.abc import Iterable
from collections.abc import Mapping
from collections.abc import Sequence
from fractions import Fraction
import math

from vsched_agent.enforcement import base
from vsched_lib.model import credit
from vsched_lib.model import reservation

#: Parameters by Xen's number of the domain.
Values = dict[int, credit.Parameters]


def record(found: credit.Parameters) -> base.Prior:
    """Return parameters as they are recorded for each vCPU."""
    return {'weight': found.weight, 'cap': found.cap}


def of(
    domains: Mapping[int, Sequence[int]], prior: Mapping[int, base.Prior]
) -> Values:
    """Return what domains had; the default where it is not known.

    :param domains: the numbers of vCPUs by domain, in order. The first one's
        record counts: vCPUs that came later, as the domain had a reservation,
        have the reservation's parameters recorded.
    """
    return {
        domid: next(
            (
                credit.Parameters(
                    int(prior[number]['weight']), int(prior[number]['cap'])
                )
                for number in numbers
                if prior.get(number)
            ),
            credit.DEFAULT,
        )
        for domid, numbers in domains.items()
    }


def does_not_fit(
    domains: Mapping[int, Iterable[int]],
    found: Values,
    former: Values,
    left: Fraction,
) -> base.NotRestored:
    """Return the failure to restore domains for which the CPUs do not suffice.

    :param domains: the numbers of vCPUs by domain.
    :param found: what they keep.
    :param former: what they had.
    :param left: what no domain has, in CPUs.
    """
    numbers = [number for domid in former for number in domains[domid]]
    mcpu = reservation.MCPU_PER_CPU
    figures = {
        'vcpus': len(numbers),
        'found_mcpu': math.ceil(mcpu * credit.total(former.values())),
        'present_mcpu': math.ceil(mcpu * credit.total(found.values())),
        'left_mcpu': math.floor(mcpu * left),
    }
    return base.NotRestored(
        '%(vcpus)d vCPUs keep %(present_mcpu)d mcpu by weight: of the host, '
        '%(left_mcpu)d mcpu are left, too little for the %(found_mcpu)d mcpu '
        'that were found before' % figures,
        numbers,
        figures,
    )
