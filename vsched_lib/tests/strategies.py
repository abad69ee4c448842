# SPDX-License-Identifier: Apache-2.0

"""What hypothesis draws: reservations, claims and hosts."""

from fractions import Fraction

from hypothesis import strategies as st

from vsched_lib.model import admission
from vsched_lib.model import error
from vsched_lib.model import host
from vsched_lib.model import reservation

MAX_US = 4_194_304

MODES = st.sampled_from(reservation.Mode)
BACKENDS = st.none() | st.sampled_from(reservation.Backend)


@st.composite
def reservations(
    draw,
    period_us_min=1,
    period_us_max=MAX_US,
    runtime_us_min=1,
    backends=BACKENDS,
):
    period_us = draw(
        st.integers(max(period_us_min, runtime_us_min), period_us_max)
    )
    return reservation.Reservation(
        draw(st.integers(runtime_us_min, period_us)),
        period_us,
        draw(MODES),
        draw(backends),
    )


#: Shares of one CPU, exact.
UTILISATIONS = reservations().map(lambda one: one.utilisation)


def claims(cpus):
    """Claims on a host, some vCPUs pinned to one of its CPUs."""
    pins = st.lists(
        st.none() | st.integers(0, cpus - 1), min_size=1, max_size=4
    )
    return st.builds(admission.Claim, reservations(), pins.map(tuple))


@st.composite
def capacities(draw):
    cpus = draw(st.integers(1, 8))
    share = Fraction(draw(st.integers(0, 1000)), 1000)
    return host.Capacity(cpus, cpus * share, draw(st.integers(0, 1000)))


#: Errors of some windows, in ppm; those at which a histogram's bin ends.
ERRORS_PPM = st.lists(
    st.integers(-error.PPM, 6 * error.PPM) | st.sampled_from(error.EDGES_PPM),
    min_size=1,
)

CONFIDENCES = st.integers(1, 999).map(lambda one: one / 1000)
