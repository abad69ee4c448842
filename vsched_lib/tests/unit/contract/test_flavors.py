# SPDX-License-Identifier: Apache-2.0

"""Flavors that claim what they promise."""

from oslotest import base

from vsched_lib.contract import errors
from vsched_lib.contract import flavors

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
TRAIT = 'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE'
RUNTIME = 'vsched:cpu_runtime_us'


class TestClaiming(base.BaseTestCase):
    def claiming(self, specs, vcpus=1):
        change = flavors.claiming(vcpus, specs)
        return dict(change.added), set(change.removed)

    def test_what_is_missing_is_added(self):
        self.assertEqual(
            ({CLAIM: '600', 'group_policy': 'none'}, set()),
            self.claiming({RUNTIME: '6000'}, 2),
        )

    def test_right_already(self):
        change = flavors.claiming(
            1, {RUNTIME: '6000', CLAIM: '300', 'group_policy': 'none'}
        )
        self.assertFalse(change)

    def test_another_policy_does_as_well(self):
        self.assertEqual(
            ({CLAIM: '300'}, set()),
            self.claiming({RUNTIME: '6000', 'group_policy': 'isolate'}),
        )

    def test_what_claims_too_much_must_go(self):
        self.assertEqual(
            ({}, {CLAIM, TRAIT, 'group_policy'}),
            self.claiming(
                {CLAIM: '300', TRAIT: 'required', 'group_policy': 'none'}
            ),
        )

    def test_the_policy_of_others_stays(self):
        self.assertEqual(
            ({}, {CLAIM}),
            self.claiming(
                {CLAIM: '300', 'resources1:VGPU': '1', 'group_policy': 'none'}
            ),
        )

    def test_a_backend_that_guarantees_nothing_claims_nothing(self):
        self.assertEqual(
            ({}, set()),
            self.claiming({RUNTIME: '6000', 'vsched:backend': 'cfs'}),
        )

    def test_nothing_of_ours(self):
        self.assertFalse(
            flavors.claiming(
                1, {'hw:cpu_policy': 'dedicated', 'group_policy': 'none'}
            )
        )

    def test_nonsense(self):
        self.assertRaises(
            errors.InvalidExtraSpecs, flavors.claiming, 1, {RUNTIME: '30000'}
        )


class TestChanged(base.BaseTestCase):
    def changed(self, specs, **asked):
        change = flavors.changed(
            1, specs, {'vsched:' + key: text for key, text in asked.items()}
        )
        return dict(change.added), set(change.removed)

    def test_keys_and_claim_in_one(self):
        self.assertEqual(
            ({RUNTIME: '6000', CLAIM: '300', 'group_policy': 'none'}, set()),
            self.changed({}, cpu_runtime_us='6000'),
        )

    def test_only_what_differs(self):
        before = {RUNTIME: '6000', CLAIM: '300', 'group_policy': 'none'}
        self.assertEqual(
            ({}, set()),
            self.changed(before, cpu_runtime_us='6000', weight=None),
        )
        self.assertEqual(
            ({'vsched:backend': 'deadline', TRAIT: 'required'}, set()),
            self.changed(before, backend='deadline'),
        )

    def test_the_promise_is_taken_away(self):
        self.assertEqual(
            ({}, {RUNTIME, CLAIM, 'group_policy'}),
            self.changed(
                {RUNTIME: '6000', CLAIM: '300', 'group_policy': 'none'},
                cpu_runtime_us=None,
            ),
        )

    def test_rules_between_keys(self):
        self.assertRaises(
            errors.InvalidExtraSpecs,
            self.changed,
            {RUNTIME: '6000', 'vsched:cpu_mode': 'capped'},
            cpu_runtime_us=None,
        )
