# SPDX-License-Identifier: Apache-2.0

"""What an instance can be left with, and why not."""

import json

from oslotest import base

from vsched_lib.contract import balloons
from vsched_lib.contract import errors
from vsched_lib.tests import balloon_reports

Code = errors.Code


class RefusalTestCase(base.BaseTestCase):
    def code(self, target_vcpus, **fields):
        found = balloons.refusal(
            target_vcpus, balloon_reports.report('i', **fields)
        )
        if found is None:
            return None
        json.dumps(found.figures)
        self.assertIn('%d vCPUs' % target_vcpus, found.detail)
        return found.code

    def test_everything_between_floor_and_ceiling(self):
        for target_vcpus in (2, 3, 4):
            self.assertIsNone(
                self.code(target_vcpus, min_vcpus=2, floor_vcpus=2)
            )

    def test_outside(self):
        for target_vcpus in (0, -1, 5):
            self.assertEqual(
                Code.BALLOON_OUT_OF_BOUNDS, self.code(target_vcpus)
            )
        self.assertEqual(
            Code.BALLOON_OUT_OF_BOUNDS,
            self.code(1, min_vcpus=2, floor_vcpus=2),
        )

    def test_a_minimum_above_what_it_has(self):
        self.assertIsNone(self.code(4, min_vcpus=8, floor_vcpus=4))
        self.assertEqual(
            Code.BALLOON_OUT_OF_BOUNDS,
            self.code(3, min_vcpus=8, floor_vcpus=4),
        )

    def test_a_reservation_needs_more(self):
        self.assertEqual(
            Code.BALLOON_DOES_NOT_FIT, self.code(2, floor_vcpus=3)
        )

    def test_a_guest_that_must_not_be_asked_or_can_not(self):
        for fields, code in (
            ({'auto': False}, Code.BALLOON_EXCLUDED),
            ({'pinned': True}, Code.BALLOON_EXCLUDED),
            ({'dry_run': True}, Code.BALLOON_DRY_RUN),
            ({'guest_answers': False}, Code.BALLOON_GUEST_AGENT_UNAVAILABLE),
        ):
            self.assertEqual(code, self.code(2, **fields))

    def test_nobody_has_to_ask_it_for_what_it_does(self):
        for fields in ({'dry_run': True}, {'guest_answers': False}):
            self.assertIsNone(self.code(2, online_vcpus=2, **fields))

    def test_a_guest_that_was_not_asked_yet(self):
        self.assertIsNone(self.code(2, guest_answers=None))


class WholeTestCase(base.BaseTestCase):
    def test_the_last_word_on_each(self):
        one, two = (balloon_reports.change(name) for name in 'ab')
        last = balloon_reports.change('a', uuid=one.uuid, detail='x')
        self.assertEqual([last, two], balloons.whole([one, two, last]))
