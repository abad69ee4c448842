# SPDX-License-Identifier: Apache-2.0


from vsched_agent.tests import journals
from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import messages

ONE = '1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'


class TestJournal(journals.JournalCase):
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

    def test_another_boot_of_the_host_forgets_all_threads(self):
        self.assertEqual(0, self.journal.begin_boot('first'))
        self.journal.remember('u', 'rtds', 10, {11: {}, 12: {}})
        self.reopen()
        self.assertEqual(0, self.journal.begin_boot('first'))
        self.assertEqual(0, self.journal.begin_boot(''))
        self.assertEqual([11, 12], list(self.journal.priors('u', 'rtds')))
        self.reopen()
        self.assertEqual(2, self.journal.begin_boot('second'))
        self.assertEqual([], self.journal.touched())

    def test_records_of_an_unknown_boot_are_kept(self):
        """Those of an agent that did not record the boot."""
        self.journal.remember('u', 'rtds', 10, {11: {}})
        self.assertEqual(0, self.journal.begin_boot('first'))
        self.assertEqual([('u', 'rtds')], self.journal.touched())

    def test_forget_one_backend(self):
        self.journal.remember('u', 'cfs', 10, {11: {}})
        self.journal.remember('u', 'deadline', 10, {11: {}})
        self.journal.forget('u', 'cfs')
        self.assertEqual([('u', 'deadline')], self.journal.touched())
        self.journal.forget('u')
        self.assertEqual([], self.journal.touched())

    def test_overrides_are_replaced_whole(self):
        one = collector_replies.Override(ONE, 3, 1000, 2000, 'capped')
        two = balloons.BalloonOrder(ONE, 2, 1, True)
        self.journal.replace_overrides(
            collector_replies.Overrides(3, (one,), (two,))
        )
        self.reopen()
        self.assertEqual(
            collector_replies.Overrides(3, (one,), (two,)),
            self.journal.overrides(),
        )
        self.journal.replace_overrides(collector_replies.Overrides(4))
        self.assertEqual(
            collector_replies.Overrides(4), self.journal.overrides()
        )

    def test_reports_survive(self):
        report = messages.ReservationReport(
            ONE, messages.Source.METADATA, messages.State.APPLIED, 2, 5.0
        )
        self.journal.note_reservations([report])
        self.reopen()
        self.assertEqual({ONE: report}, self.journal.reservations())
        self.journal.note_reservations([], [ONE])
        self.assertEqual({}, self.journal.reservations())
