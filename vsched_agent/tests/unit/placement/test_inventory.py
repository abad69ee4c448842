# SPDX-License-Identifier: Apache-2.0

"""The desired state of this host's provider."""

from oslotest import base

from vsched_agent.placement import inventory as desired
from vsched_lib.openstack import placement


class TestDesired(base.BaseTestCase):
    def inventory(self, capacity_mcpu, claims=(), held=(), **more):
        return desired.Desired(
            'here', capacity_mcpu, held_mcpu=dict(held), **more
        ).inventory(dict(claims))

    def test_name(self):
        self.assertEqual('here:vsched', desired.Desired('here', 1).name)

    def test_reserve_is_shown(self):
        self.assertEqual(
            placement.Inventory(2000, 500, max_unit=1500),
            self.inventory(1500, reserve_mcpu=500),
        )

    def test_no_capacity(self):
        self.assertEqual(placement.Inventory(1, 1), self.inventory(0))

    def test_held_as_claimed(self):
        found = self.inventory(1500, [('a', 300)], [('a', 300)])
        self.assertEqual(0, found.reserved)

    def test_a_margin_is_reserved(self):
        found = self.inventory(1500, [('a', 300)], [('a', 345)])
        self.assertEqual((1500, 45), (found.total, found.reserved))

    def test_without_a_claim_all_is_reserved(self):
        found = self.inventory(1500, (), [('a', 345)])
        self.assertEqual(345, found.reserved)

    def test_what_is_claimed_and_not_held_stays_claimed(self):
        found = self.inventory(
            1500, [('a', 300), ('building', 400)], [('a', 200)]
        )
        self.assertEqual(0, found.reserved)

    def test_more_held_than_the_capacity(self):
        found = self.inventory(1500, (), [('a', 2000)])
        self.assertEqual((1500, 1500), (found.total, found.reserved))

    def test_traits(self):
        self.assertEqual(
            {
                'CUSTOM_VSCHED_BACKEND_DEADLINE',
                'CUSTOM_VSCHED_BACKEND_CFS',
                'CUSTOM_VSCHED_BALLOON',
                'CUSTOM_VSCHED_X',
            },
            desired.traits(
                ['deadline', 'cfs'],
                frozenset({'CUSTOM_VSCHED_X'}),
                balloon=True,
            ),
        )
