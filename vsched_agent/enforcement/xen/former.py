# SPDX-License-Identifier: Apache-2.0

"""The parameters that vCPUs of Xen had before vsched changed them."""

from collections.abc import Mapping
from fractions import Fraction
import math

from vsched_agent.enforcement import base
from vsched_lib.model import reservation
from vsched_lib.model import rtds

#: Parameters by the number of the vCPU.
Values = dict[int, rtds.Parameters]


def of(found: Values, prior: Mapping[int, base.Prior]) -> Values:
    """Return what vCPUs had; the default where it is not known."""
    return {
        number: rtds.Parameters(
            int(former['period_us']),
            int(former['budget_us']),
            bool(former['extratime']),
        )
        if (former := prior.get(number))
        else rtds.DEFAULT
        for number in found
    }


def total(values: Values) -> Fraction:
    """Return the sum of the budgets, in CPUs, exact."""
    return sum((one.utilisation for one in values.values()), Fraction(0))


def does_not_fit(
    found: Values, former: Values, left: Fraction
) -> base.NotRestored:
    """Return the failure to restore vCPUs for which the CPUs do not suffice.

    :param found: what they keep.
    :param former: what they had.
    :param left: what no vCPU has, in CPUs.
    """
    figures = {
        'vcpus': len(former),
        'found_mcpu': math.ceil(reservation.MCPU_PER_CPU * total(former)),
        'present_mcpu': math.ceil(reservation.MCPU_PER_CPU * total(found)),
        'left_mcpu': math.floor(reservation.MCPU_PER_CPU * left),
    }
    return base.NotRestored(
        '%(vcpus)d vCPUs keep %(present_mcpu)d mcpu: of the host, '
        '%(left_mcpu)d mcpu are left, too little for the %(found_mcpu)d mcpu '
        'that were found before' % figures,
        former,
        figures,
    )
