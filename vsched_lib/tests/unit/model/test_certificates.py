# SPDX-License-Identifier: Apache-2.0

"""A certificate says what the points it was made of say."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from vsched_lib.model import certificates
from vsched_lib.model import error
from vsched_lib.tests import strategies

SHARES_PPM = st.integers(1, error.PPM)


@dataclasses.dataclass(frozen=True)
class Point:
    share_ppm: int
    statistics: error.Statistics


POINTS = st.lists(
    st.builds(
        Point,
        SHARES_PPM | st.sampled_from(error.PAPER_SHARES_PPM),
        strategies.ERRORS_PPM.map(error.statistics),
    ),
    min_size=1,
    max_size=8,
)


class TestCertificate(base.BaseTestCase):
    """Against the evidence of whole points."""

    @given(POINTS, SHARES_PPM, st.sampled_from((0.05, 0.5, 0.8)))
    def test_says_what_its_points_say(self, points, share_ppm, confidence):
        made = certificates.Certificate.of(points, confidence)
        self.assertEqual(
            error.evidence(points, share_ppm, confidence).lower_ppm,
            made.lower_ppm(share_ppm),
        )

    @given(POINTS, st.sampled_from((0.05, 0.8)))
    def test_says_so_at_the_measured_shares_too(self, points, confidence):
        made = certificates.Certificate.of(points, confidence)
        for point in points:
            self.assertEqual(
                error.evidence(points, point.share_ppm, confidence).lower_ppm,
                made.lower_ppm(point.share_ppm),
            )

    def test_no_points_no_evidence(self):
        self.assertIsNone(certificates.Certificate.of((), 0.8).lower_ppm(1))

    def test_what_does_not_belong_together(self):
        self.assertRaises(
            ValueError, certificates.Certificate, (1, 2), (None,)
        )
        self.assertRaises(ValueError, certificates.Certificate, (2, 1), (0, 0))
