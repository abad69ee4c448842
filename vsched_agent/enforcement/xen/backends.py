# SPDX-License-Identifier: Apache-2.0

"""The backends of a Xen host."""

from collections.abc import Iterable

from vsched_agent.enforcement import base
from vsched_agent.enforcement.xen import credit
from vsched_agent.enforcement.xen import rtds
from vsched_agent.enforcement.xen import scheduler
from vsched_lib.model import reservation


def make(names: Iterable[reservation.Backend]) -> list[base.Backend]:
    """Return backends, which share what the toolstack reports.

    :param names: of Xen's backends, in order.
    """
    found = scheduler.Scheduler()
    return [
        rtds.RtdsBackend(found)
        if name is reservation.Backend.RTDS
        else credit.CreditBackend(name, found)
        for name in names
    ]
