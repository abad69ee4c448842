# SPDX-License-Identifier: Apache-2.0

import os
from unittest import mock


from vsched_agent.tests import journals
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


class TestOutbox(journals.JournalCase):
    def test_who_waits_for_batches_is_woken(self):
        posted = self.journal.outbox.posted
        self.assertFalse(posted.is_set())
        self.journal.outbox.post(_batch)
        self.assertTrue(posted.is_set())

    def test_batches_leave_in_order_once_confirmed(self):
        first = self.journal.outbox.post(_batch)
        second = self.journal.outbox.post(_batch)
        self.assertEqual(first + 1, second)
        self.reopen()
        self.assertEqual(first, self.journal.outbox.oldest().batch)
        self.assertEqual(first, self.journal.outbox.oldest().batch)
        self.journal.outbox.confirm(first)
        self.assertEqual(second, self.journal.outbox.oldest().batch)
        self.journal.outbox.confirm(second)
        self.assertIsNone(self.journal.outbox.oldest())

    def test_a_batch_and_the_reservations_in_it_are_one(self):
        one = messages.ReservationReport(
            ONE, messages.Source.METADATA, messages.State.APPLIED, 2, 5.0
        )

        def failing(batch):
            raise ValueError(batch)

        self.assertRaises(
            ValueError, self.journal.outbox.post, failing, reservations=[one]
        )
        self.assertEqual({}, self.journal.reservations())
        self.journal.outbox.post(_batch, reservations=[one])
        self.reopen()
        self.assertEqual({one.instance_uuid: one}, self.journal.reservations())

    def test_numbers_go_on_and_each_run_has_its_epoch(self):
        used, epoch = (
            self.journal.outbox.post(_batch),
            self.journal.outbox.epoch,
        )
        self.assertEqual(epoch, self.journal.outbox.oldest().epoch)
        self.reopen()
        self.assertNotEqual(epoch, self.journal.outbox.epoch)
        self.assertEqual(used + 1, self.journal.outbox.post(_batch))
        # What waits keeps the epoch that it was numbered in.
        self.assertEqual(epoch, self.journal.outbox.oldest().epoch)
        self.journal.outbox.confirm(used)
        self.assertEqual(
            self.journal.outbox.epoch, self.journal.outbox.oldest().epoch
        )

    def test_numbers_need_no_clock(self):
        with mock.patch('time.time', autospec=True, return_value=4e9):
            self.assertEqual(1, self.journal.outbox.post(_batch))
        self.journal.close()
        os.unlink(self.path)
        self.open_journal()
        self.assertEqual(1, self.journal.outbox.post(_batch))

    def test_a_replaced_epoch_is_left(self):
        for _ in range(3):
            self.journal.outbox.post(_batch)
        old = self.journal.outbox.epoch
        self.reopen()
        self.journal.outbox.post(_batch)
        # An earlier run's: this one's stays.
        new = self.journal.outbox.epoch
        self.assertEqual(1, self.journal.outbox.replace_epoch(old, 1))
        self.assertEqual(new, self.journal.outbox.epoch)
        self.assertEqual(
            (2, new),
            (
                self.journal.outbox.oldest().batch,
                self.journal.outbox.oldest().epoch,
            ),
        )
        # This one's.
        self.assertEqual(1, self.journal.outbox.replace_epoch(new, 2))
        self.assertNotIn(self.journal.outbox.epoch, (old, new))
        for number in (3, 4):
            self.assertEqual(
                (number, self.journal.outbox.epoch),
                (
                    self.journal.outbox.oldest().batch,
                    self.journal.outbox.oldest().epoch,
                ),
            )
            self.journal.outbox.confirm(number)
        self.assertIsNone(self.journal.outbox.oldest())

    def test_a_checkpoint_is_kept_with_its_batch_or_not_at_all(self):
        self.assertIsNone(self.journal.outbox.usage_checkpoint())
        self.journal.outbox.post(_batch, {'read_ns': 1})
        self.assertRaises(
            ZeroDivisionError,
            self.journal.outbox.post,
            lambda number: 1 / 0,
            {'read_ns': 2},
        )
        self.journal.outbox.post(_batch)
        self.reopen()
        self.assertEqual(
            {'read_ns': 1}, self.journal.outbox.usage_checkpoint()
        )

    def test_trim_drops_the_oldest(self):
        numbers = [
            self.journal.outbox.post(lambda number: _batch(number, 2))
            for _ in range(5)
        ]
        self.assertEqual([], self.journal.outbox.trim(5))
        dropped = self.journal.outbox.trim(3)
        self.assertEqual(numbers[:2], [one.batch for one in dropped])
        self.assertEqual(4, sum(len(one.usage) for one in dropped))
        self.assertEqual(numbers[2], self.journal.outbox.oldest().batch)
        self.assertEqual(3, self.journal.outbox.waiting())

    def test_a_failed_batch_takes_no_number(self):
        def fail(number):
            raise ZeroDivisionError

        before = self.journal.outbox.post(_batch)
        self.assertRaises(ZeroDivisionError, self.journal.outbox.post, fail)
        self.assertEqual(before + 1, self.journal.outbox.post(_batch))
