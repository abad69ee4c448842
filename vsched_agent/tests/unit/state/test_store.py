# SPDX-License-Identifier: Apache-2.0

import os
import tempfile
from unittest import mock

from oslotest import base

from vsched_agent.state import store
from vsched_lib.contract import balloons
from vsched_lib.contract import messages

ONE = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'


def _batch(number, samples=0):
    return messages.Report(
        'here',
        number,
        1.0,
        usage=tuple(
            messages.UsageSample(ONE, float(index), 1, 1, 0)
            for index in range(samples)
        ),
    )


class TestJournal(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'a', 'agent.sqlite')
        self.journal = store.Journal(self.path)

    def reopen(self):
        self.journal.close()
        self.journal = store.Journal(self.path)
        self.addCleanup(self.journal.close)

    def test_first_finding_is_kept(self):
        self.journal.remember('u', 'cfs', 10, {11: {'quota_us': -1}})
        self.journal.remember(
            'u', 'cfs', 10, {11: {'quota_us': 5}, 12: {'quota_us': 6}}
        )
        self.reopen()
        found = self.journal.priors('u', 'cfs')
        self.assertEqual({'quota_us': -1}, found[11].found)
        self.assertEqual({'quota_us': 6}, found[12].found)
        self.assertEqual([('u', 'cfs')], self.journal.touched())

    def test_a_new_process_forgets_the_old_ones_threads(self):
        self.journal.remember('u', 'cfs', 10, {11: {}})
        self.journal.remember('u', 'cfs', 20, {21: {}})
        self.assertEqual([21], list(self.journal.priors('u', 'cfs')))

    def test_forget_one_backend(self):
        self.journal.remember('u', 'cfs', 10, {11: {}})
        self.journal.remember('u', 'deadline', 10, {11: {}})
        self.journal.forget('u', 'cfs')
        self.assertEqual([('u', 'deadline')], self.journal.touched())
        self.journal.forget('u')
        self.assertEqual([], self.journal.touched())

    def test_overrides_are_replaced_whole(self):
        one = messages.Override(ONE, 3, 1000, 2000, 'capped')
        two = balloons.BalloonOrder(ONE, 2, 1, True)
        self.journal.replace_overrides(messages.Overrides(3, (one,), (two,)))
        self.reopen()
        self.assertEqual(
            messages.Overrides(3, (one,), (two,)), self.journal.overrides()
        )
        self.journal.replace_overrides(messages.Overrides(4))
        self.assertEqual(messages.Overrides(4), self.journal.overrides())

    def test_reports_survive(self):
        report = messages.ReservationReport(
            ONE, messages.Source.METADATA, messages.State.APPLIED, 2, 5.0
        )
        self.journal.note_reservations([report])
        self.reopen()
        self.assertEqual({ONE: report}, self.journal.reservations())
        self.journal.note_reservations([], [ONE])
        self.assertEqual({}, self.journal.reservations())

    def test_batches_leave_in_order_once_confirmed(self):
        first = self.journal.post(_batch)
        second = self.journal.post(_batch)
        self.assertEqual(first + 1, second)
        self.reopen()
        self.assertEqual(first, self.journal.oldest().batch)
        self.assertEqual(first, self.journal.oldest().batch)
        self.journal.confirm(first)
        self.assertEqual(second, self.journal.oldest().batch)
        self.journal.confirm(second)
        self.assertIsNone(self.journal.oldest())

    def test_numbers_go_on_and_each_run_has_its_epoch(self):
        used, epoch = self.journal.post(_batch), self.journal.epoch
        self.assertEqual(epoch, self.journal.oldest().epoch)
        self.reopen()
        self.assertNotEqual(epoch, self.journal.epoch)
        self.assertEqual(used + 1, self.journal.post(_batch))
        # What waits keeps the epoch that it was numbered in.
        self.assertEqual(epoch, self.journal.oldest().epoch)
        self.journal.confirm(used)
        self.assertEqual(self.journal.epoch, self.journal.oldest().epoch)

    def test_numbers_need_no_clock(self):
        with mock.patch('time.time', autospec=True, return_value=4e9):
            self.assertEqual(1, self.journal.post(_batch))
        self.journal.close()
        os.unlink(self.path)
        self.journal = store.Journal(self.path)
        self.addCleanup(self.journal.close)
        self.assertEqual(1, self.journal.post(_batch))

    def test_a_replaced_epoch_is_left(self):
        for _ in range(3):
            self.journal.post(_batch)
        old = self.journal.epoch
        self.reopen()
        self.journal.post(_batch)
        # An earlier run's: this one's stays.
        new = self.journal.epoch
        self.assertEqual(1, self.journal.replace_epoch(old, 1))
        self.assertEqual(new, self.journal.epoch)
        self.assertEqual(
            (2, new),
            (self.journal.oldest().batch, self.journal.oldest().epoch),
        )
        # This one's.
        self.assertEqual(1, self.journal.replace_epoch(new, 2))
        self.assertNotIn(self.journal.epoch, (old, new))
        for number in (3, 4):
            self.assertEqual(
                (number, self.journal.epoch),
                (self.journal.oldest().batch, self.journal.oldest().epoch),
            )
            self.journal.confirm(number)
        self.assertIsNone(self.journal.oldest())

    def test_a_checkpoint_is_kept_with_its_batch_or_not_at_all(self):
        self.assertIsNone(self.journal.usage_checkpoint())
        self.journal.post(_batch, {'read_ns': 1})
        self.assertRaises(
            ZeroDivisionError,
            self.journal.post,
            lambda number: 1 / 0,
            {'read_ns': 2},
        )
        self.journal.post(_batch)
        self.reopen()
        self.assertEqual({'read_ns': 1}, self.journal.usage_checkpoint())

    def test_trim_drops_the_oldest(self):
        numbers = [
            self.journal.post(lambda number: _batch(number, 2))
            for _ in range(5)
        ]
        self.assertEqual([], self.journal.trim(5))
        dropped = self.journal.trim(3)
        self.assertEqual(numbers[:2], [one.batch for one in dropped])
        self.assertEqual(4, sum(len(one.usage) for one in dropped))
        self.assertEqual(numbers[2], self.journal.oldest().batch)
        self.assertEqual(3, self.journal.waiting())

    def test_a_failed_batch_takes_no_number(self):
        def fail(number):
            raise ZeroDivisionError

        before = self.journal.post(_batch)
        self.assertRaises(ZeroDivisionError, self.journal.post, fail)
        self.assertEqual(before + 1, self.journal.post(_batch))
