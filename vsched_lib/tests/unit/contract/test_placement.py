# SPDX-License-Identifier: Apache-2.0

"""Names and claims in placement."""

from fractions import Fraction
import math

import hypothesis
from oslotest import base

from vsched_lib.contract import placement
from vsched_lib.model import reservation
from vsched_lib.tests import error_profiles
from vsched_lib.tests import strategies


class TestNames(base.BaseTestCase):
    def test_traits(self):
        self.assertEqual(
            'CUSTOM_VSCHED_BACKEND_DEADLINE',
            placement.backend_trait('deadline'),
        )
        self.assertEqual(
            'CUSTOM_VSCHED_CERTIFIED_DEADLINE_20000US_0_5PCT',
            placement.certified_trait('deadline', 20_000, 5_000),
        )
        self.assertEqual(
            'CUSTOM_VSCHED_CERTIFIED_CFS_10000US_10PCT',
            placement.certified_trait('cfs', 10_000, 100_000),
        )

    def test_ours(self):
        for name in (
            'resources_VSCHED:CUSTOM_VSCHED_MCPU',
            'trait_VSCHED:CUSTOM_VSCHED_BALLOON',
        ):
            self.assertTrue(placement.ours(name), name)
        for name in (
            'resources:CUSTOM_VSCHED_MCPU',
            'group_policy',
            'resources_VSCHED:VCPU',
            'vsched:weight',
            'trait_OTHER:CUSTOM_VSCHED_BALLOON',
        ):
            self.assertFalse(placement.ours(name), name)


class TestCertified(base.BaseTestCase):
    def traits(self, sample_ppm, **more):
        point = error_profiles.point(
            [sample_ppm] * 200,
            **{'period_us': 20_000, 'contenders': 4, **more},
        )
        return placement.certified_traits([point], 0.8)

    def test_every_bound_that_is_kept(self):
        self.assertEqual(
            {
                placement.certified_trait('deadline', 20_000, bound_ppm)
                for bound_ppm in (20_000, 50_000, 100_000, 200_000)
            },
            self.traits(15_000),
        )

    def test_too_few_samples_certify_nothing(self):
        point = error_profiles.point([0] * 20, contenders=4)
        self.assertEqual(frozenset(), placement.certified_traits([point], 0.8))

    def test_without_contenders_nothing_is_known(self):
        self.assertEqual(frozenset(), self.traits(0, contenders=0))


class TestRequest(base.BaseTestCase):
    def test_rounded_up_over_all_vcpus(self):
        promise = reservation.Reservation(1_000, 30_000)
        self.assertEqual(67, placement.claim_mcpu(promise, 2))

    def test_extra_specs(self):
        self.assertEqual(
            {'resources_VSCHED:CUSTOM_VSCHED_MCPU': '600'},
            placement.request(reservation.Reservation(6_000, 20_000), 2),
        )
        self.assertEqual(
            {
                'resources_VSCHED:CUSTOM_VSCHED_MCPU': '600',
                'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE': 'required',
            },
            placement.request(
                reservation.Reservation(6_000, 20_000, backend='deadline'), 2
            ),
        )

    def test_what_guarantees_nothing_takes_nothing(self):
        self.assertEqual(
            {},
            placement.request(
                reservation.Reservation(6_000, 20_000, backend='cfs'), 2
            ),
        )
        self.assertEqual({}, placement.request(None, 2))

    @hypothesis.given(
        strategies.reservations(), hypothesis.strategies.integers(1, 64)
    )
    def test_never_less_than_is_promised(self, promise, vcpus):
        claim = placement.claim_mcpu(promise, vcpus)
        exact = Fraction(promise.runtime_us, promise.period_us) * vcpus * 1000
        if promise.backend in (None, *reservation.ADMITTED):
            self.assertEqual(math.ceil(exact), claim)
        else:
            self.assertEqual(0, claim)
