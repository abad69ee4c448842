# SPDX-License-Identifier: Apache-2.0

"""Samples by column are the same samples."""

import json

import ddt
import hypothesis
from oslotest import base

from vsched_lib.contract import messages
from vsched_lib.contract import wire
from vsched_lib.tests import message_strategies

UUIDS = tuple(
    '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4%d' % number for number in range(2)
)
SAMPLES = tuple(
    messages.UsageSample(UUIDS[number % 2], 100.5 + number, 1_000_000, 7, 0)
    for number in range(4)
)
FIVE = messages.HostUsage(1.0, 1_000_000, 2, 3, 4, 5, 6, 7, 8, 9)


def report(**more):
    return messages.Report('node-1', 3, 100.0, **more)


def sent(report):
    """What arrives of a report by column."""
    return json.loads(json.dumps(report.to_dict(by_column=True)))


@ddt.ddt
class TestColumns(base.BaseTestCase):
    def test_there_and_back(self):
        found = report(usage=SAMPLES, host_usage=(FIVE, FIVE))
        self.assertEqual(found, messages.Report.from_dict(sent(found)))

    def test_less_than_half_as_long(self):
        # What five seconds of ten instances are.
        found = report(
            usage=tuple(
                messages.UsageSample(
                    UUIDS[0], *range(1_000_000, 1_000_013), tuple(range(7))
                )
                for _ in range(50)
            ),
            host_usage=(FIVE,) * 5,
        )
        rows, columns = (
            len(json.dumps(found.to_dict(by_column)))
            for by_column in (False, True)
        )
        self.assertLess(columns, rows / 2)

    def test_what_all_have_by_default_is_left_out(self):
        self.assertEqual(
            {'instance_uuid', 'at', 'interval_us', 'guest_us', 'wait_us'},
            set(sent(report(usage=SAMPLES))['usage']),
        )

    def test_no_samples(self):
        raw = sent(report())
        self.assertEqual([], raw['usage'])
        self.assertEqual(report(), messages.Report.from_dict(raw))

    def test_some_have_a_reservation_and_executions(self):
        found = report(
            usage=(
                SAMPLES[0],
                messages.UsageSample(
                    UUIDS[0], 5.0, 9, 8, 7, 6, executions=(1, 2, 3, 4, 5, 6, 7)
                ),
            )
        )
        self.assertEqual(found, messages.Report.from_dict(sent(found)))

    def test_any_report(self):
        @message_strategies.bounded(60)
        @hypothesis.given(message_strategies.valid(messages.Report))
        def check(raw):
            found = messages.Report.from_dict(raw)
            self.assertEqual(found, messages.Report.from_dict(sent(found)))

        check()

    def test_columns_of_a_newer_release_are_ignored(self):
        raw = sent(report(usage=SAMPLES))
        raw['usage']['new'] = 'anything'
        self.assertEqual(SAMPLES, messages.Report.from_dict(raw).usage)

    @ddt.data(
        ({'at': 5.0}, 'at is not a list'),
        ({'at': [1.0, 2.0]}, '2 values of at are not 4'),
        ({'at': None}, 'at is missing'),
        ({'at': [1.0, 2.0, float('nan'), 3.0]}, 'UsageSample.at: nan'),
        ({'at': [1.0, 2.0, 3.0, '4']}, "UsageSample.at: '4'"),
        ({'guest_us': [1, 2, 3, True]}, 'UsageSample.guest_us: True'),
        ({'guest_us': [1, 2, 3, -1]}, 'UsageSample.guest_us: -1'),
        ({'instance_uuid': ['a'] * 4}, "UsageSample.instance_uuid: 'a'"),
        ({'instance_uuid': [[]] * 4}, 'UsageSample.instance_uuid: []'),
    )
    @ddt.unpack
    def test_what_is_refused(self, changes, message):
        raw = sent(report(usage=SAMPLES))
        for name, value in changes.items():
            raw['usage'][name] = value
            if value is None:
                del raw['usage'][name]
        problem = self.assertRaises(
            wire.MalformedMessage, messages.Report.from_dict, raw
        )
        self.assertIn(message, str(problem))

    @ddt.data({}, {'at': []}, {'new': [1]})
    def test_nothing_is_no_list_by_column(self, usage):
        raw = {**sent(report()), 'usage': usage}
        problem = self.assertRaises(
            wire.MalformedMessage, messages.Report.from_dict, raw
        )
        self.assertIn('Report.usage', str(problem))

    def test_too_many(self):
        raw = sent(report())
        raw['usage'] = {'at': [1.0] * (messages.Report.MAX_ITEMS + 1)}
        problem = self.assertRaises(
            wire.MalformedMessage, messages.Report.from_dict, raw
        )
        self.assertIn('Report.usage has the most', str(problem))
