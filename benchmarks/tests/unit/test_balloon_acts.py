# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from benchmarks import balloon_acts
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code


def event(at, code, vcpus):
    return messages.Event(
        'event',
        at,
        code,
        messages.Severity.INFO,
        'told',
        figures={'vcpus': vcpus},
    )


class ActsTest(base.BaseTestCase):
    def test_gaps_are_from_whatever_was_done_before(self):
        acts = balloon_acts.Acts.of(
            [
                event(105.0, Code.BALLOON_TAKEN, 1),
                event(113.0, Code.BALLOON_KEPT, 1),
                event(120.0, Code.BALLOON_RETURNED, 4),
                event(151.0, Code.BALLOON_TAKEN, 2),
            ],
            4,
            100.0,
        )
        self.assertEqual((5.0, 51.0), acts.taken_s)
        self.assertEqual((31.0,), acts.gaps_s)
        self.assertEqual((3, 0), (acts.done, acts.failed))

    def test_a_balloon_that_gets_larger_takes_nothing(self):
        acts = balloon_acts.Acts.of(
            [
                event(1.0, Code.BALLOON_TAKEN, 1),
                event(2.0, Code.BALLOON_TAKEN, 2),
                event(3.0, Code.BALLOON_TAKEN, 2),
                event(7.0, Code.BALLOON_TAKEN, 1),
            ],
            4,
            0.0,
        )
        self.assertEqual((1.0, 7.0), acts.taken_s)
        self.assertEqual((4.0,), acts.gaps_s)

    def test_failures_count(self):
        acts = balloon_acts.Acts.of(
            [event(1.0, Code.BALLOON_FAILED, 4)], 4, 0.0
        )
        self.assertEqual(((), 1), (acts.taken_s, acts.failed))


class PartsTest(base.BaseTestCase):
    def test_the_end_belongs_to_the_last(self):
        self.assertEqual(
            [1, 0, 2], balloon_acts.by_part([0.0, 8.0, 9.0], 9.0, 3)
        )


class MissingTest(base.BaseTestCase):
    def test_between_samples(self):
        samples = [
            messages.UsageSample('vm', at, 1_000_000, 0, 0)
            for at in (1.0, 2.01, 4.51)
        ]
        self.assertAlmostEqual(1.5, balloon_acts.missing_s(samples))
