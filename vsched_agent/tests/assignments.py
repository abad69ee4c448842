# SPDX-License-Identifier: Apache-2.0

"""Assignments of reservations to threads."""

from collections.abc import Iterable

from vsched_agent.enforcement import base
from vsched_lib.model import reservation


def alike(
    targets: Iterable[base.Target], reserved: reservation.Reservation
) -> list[base.Assignment]:
    """Return the assignment of one reservation to each of these threads."""
    return [(target, reserved) for target in targets]
