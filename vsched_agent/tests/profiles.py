# SPDX-License-Identifier: Apache-2.0

"""Error profiles for tests."""

import dataclasses
import uuid as uuids

from vsched_agent.profiling import margins as margins_of
from vsched_lib.model import fit
from vsched_lib.model import reservation
from vsched_lib.tests import error_profiles

CPUS = 2
FACTS = {'kernel': '6.18.0', 'tick_us': 4000, 'cpus': CPUS, 'features': {}}


def point(samples, backend='deadline', share_pct=10, contenders=4, **where):
    """A point with these samples, in ppm."""
    return error_profiles.point(
        samples,
        backend=backend,
        share_ppm=share_pct * 10_000,
        contenders=contenders,
        **where,
    )


def profile(*points, **changes):
    """A profile of these points, each a new one."""
    return error_profiles.profile(
        points,
        **{'uuid': str(uuids.uuid4()), 'version': 1, **FACTS, **changes},
    )


def granted(
    margins: margins_of.Margins,
    promise: reservation.Reservation,
    backend: reservation.Backend,
    bound_ppm: int,
    cpus: int = CPUS,
) -> reservation.Reservation:
    """Return a reservation with the runtime that keeps its error bound.

    :param margins: of the host's errors.
    :param bound_ppm: what may be missing in one second of a hundred, in ppm
        of the reservation.
    :param cpus: of the host.
    :raises errors.Refused: when the host cannot show the bound.
    """
    need = fit.need_by(
        backend,
        fit.Ask(1, promise, bound_ppm),
        promise,
        fit.Host(
            cpus,
            0,
            0,
            frozenset((backend,)),
            margins.certified(),
            None,
            fit.DEFAULT,
        ),
    )
    for problem in need.problems:
        if problem.cause is fit.Cause.ERROR:
            raise margins.refusal(promise, backend, bound_ppm, fit.DEFAULT)
    return dataclasses.replace(promise, runtime_us=need.runtime_us)
