# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

import os
import tempfile

from oslotest import base

from vsched_agent import journal
from vsched_lib.contract import balloons
from vsched_lib.contract import messages


def _batch(number, samples=0):
    return messages.Report('here', number, 1.0, usage=tuple(
        messages.UsageSample('u', float(index), 1, 1, 0)
        for index in range(samples)))


class TestJournal(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'a', 'agent.sqlite')
        self.journal = journal.Journal(self.path)

    def reopen(self):
        self.journal.close()
        self.journal = journal.Journal(self.path)
        self.addCleanup(self.journal.close)

    def test_first_finding_is_kept(self):
        self.journal.remember('u', 'cfs', 10, {11: {'quota_us': -1}})
        self.journal.remember('u', 'cfs', 10, {11: {'quota_us': 5},
                                               12: {'quota_us': 6}})
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
        one = messages.Override('u', 3, 1000, 2000, 'capped')
        two = balloons.BalloonOrder('u', 2, 1, True)
        self.journal.replace_overrides(messages.Overrides(3, (one,), (two,)))
        self.reopen()
        self.assertEqual(messages.Overrides(3, (one,), (two,)),
                         self.journal.overrides())
        self.journal.replace_overrides(messages.Overrides(4))
        self.assertEqual(messages.Overrides(4), self.journal.overrides())

    def test_reports_survive(self):
        said = messages.ReservationReport(
            'u', messages.Source.METADATA, messages.State.APPLIED, 2, 5.0)
        self.journal.note_reservations([said])
        self.reopen()
        self.assertEqual({'u': said}, self.journal.reservations())
        self.journal.note_reservations([], ['u'])
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

    def test_numbers_are_never_used_twice(self):
        used = self.journal.post(_batch)
        self.journal.confirm(used)
        self.reopen()
        self.assertGreater(self.journal.post(_batch), used)
        self.journal.close()
        os.unlink(self.path)
        self.journal = journal.Journal(self.path)
        self.addCleanup(self.journal.close)
        self.assertGreater(self.journal.post(_batch), used)

    def test_trim_drops_the_oldest(self):
        numbers = [self.journal.post(lambda number: _batch(number, 2))
                   for _ in range(5)]
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
