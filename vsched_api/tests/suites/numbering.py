# SPDX-License-Identifier: Apache-2.0

"""Whose batches are stored under which number, on any database."""

import sqlalchemy as sa

from vsched_api.cmd import manage
from vsched_api.db import models
from vsched_api.operations import events
from vsched_api.operations import hosts
from vsched_api.operations import numbering
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import wire

CURRENT = collector_replies.EpochState.CURRENT
UNOPENED = collector_replies.EpochState.UNOPENED
REPLACED = collector_replies.EpochState.REPLACED
DAY_MS = 86_400_000
#: What an agent without epochs begins to number with, a day too late.
AHEAD = int(base.NOW * 1000) + DAY_MS


class Journal:
    """One journal of one agent, as the collector sees it."""

    def __init__(self, collector, letter, number=0):
        self.collector = collector
        self.epoch = letter * 32
        self.number = number
        self.after = None

    def send(self, number=None, **parts):
        """Send one batch, whatever comes of it."""
        reply = base.deliver(
            self.collector,
            messages.Report(
                base.HOST,
                number or self.number,
                base.NOW,
                **{'epoch': self.epoch, 'after': self.after, **parts},
            ),
        )
        self.after = reply.last_batch
        return reply

    def deliver(self, **parts):
        """Send the next batch; begin the epoch if asked to."""
        self.number += 1
        reply = self.send(**parts)
        if reply.epoch_state is UNOPENED:
            reply = self.send(**parts)
        return reply


class Numbering:
    """The tests."""

    def setUp(self):
        super().setUp()
        self.served = self.collector()
        (self.one,) = base.uuids(1)
        self.at = base.NOW

    def journal(self, letter, number=0):
        return Journal(self.served, letter, number)

    def sample(self):
        self.at += 1
        return {'usage': (base.sample(self.one, self.at),)}

    def full(self):
        return {
            'host_info': base.host_info(),
            'instances': (),
            **self.sample(),
        }

    def samples(self):
        return len(usage.page(self.database, 1000))

    def codes(self):
        return [one.code for one in events.page(self.database, 100)]

    def last_batch(self):
        return hosts.get(self.database, base.HOST, 0, 1).last_batch

    def told(self, reply):
        return reply.epoch_state, reply.duplicate

    def test_a_host_begins_with_its_first_batch(self):
        journal = self.journal('a')
        reply = journal.deliver(**self.full())
        self.assertEqual(
            (CURRENT, False, 1), (*self.told(reply), reply.last_batch)
        )
        self.assertTrue(journal.send(**self.sample()).duplicate)
        self.assertFalse(journal.deliver(**self.sample()).resync)
        self.assertEqual(2, self.samples())
        self.assertEqual([], self.codes())

    def test_an_agent_that_restarts_goes_on(self):
        first = self.journal('a')
        first.deliver(**self.full())
        second = self.journal('b', first.number)
        second.number += 1
        refused = second.send(**self.sample())
        self.assertEqual((UNOPENED, False), self.told(refused))
        self.assertEqual(0, self.samples() - 1)
        self.assertEqual(
            (CURRENT, False), self.told(second.send(**self.sample()))
        )
        self.assertEqual(2, self.last_batch())
        self.assertEqual([], self.codes())

    def test_a_lost_journal_loses_no_report(self):
        for number in range(5):
            if not number:
                journal = self.journal('a')
                journal.deliver(**self.full())
            journal.deliver(**self.sample())
        new = self.journal('b')
        reply = new.deliver(**self.sample())
        self.assertEqual((CURRENT, False), self.told(reply))
        self.assertTrue(reply.resync)
        new.deliver(**self.sample())
        self.assertEqual(8, self.samples())
        self.assertEqual(8, self.last_batch())
        self.assertEqual([errors.Code.JOURNAL_NEW], self.codes())

    def test_a_clock_that_was_ahead_loses_no_report(self):
        # A release whose numbers began at the clock.
        old = self.journal('x', AHEAD)
        old.epoch = None
        old.deliver(**self.full())
        new = self.journal('a')
        for _ in range(3):
            self.assertEqual(
                (CURRENT, False), self.told(new.deliver(**self.sample()))
            )
        self.assertEqual(4, self.samples())

    def test_an_upgraded_agent_goes_on_with_its_numbers(self):
        old = self.journal('x', AHEAD)
        old.epoch = None
        old.deliver(**self.full())
        new = self.journal('a', old.number)
        # The last one of the old release, of which no answer came.
        self.assertTrue(new.send(**self.sample()).duplicate)
        reply = new.deliver(**self.sample())
        self.assertEqual(
            (CURRENT, False, False), (*self.told(reply), reply.resync)
        )
        self.assertEqual(AHEAD + 2, self.last_batch())
        self.assertEqual([], self.codes())

    def test_an_agent_may_be_downgraded(self):
        new = self.journal('a')
        new.deliver(**self.full())
        old = self.journal('x', new.number)
        old.epoch = None
        self.assertFalse(old.deliver(**self.sample()).duplicate)
        self.assertTrue(old.send(**self.sample()).duplicate)
        again = self.journal('b', old.number)
        self.assertEqual(
            (CURRENT, False), self.told(again.deliver(**self.sample()))
        )
        self.assertEqual(3, self.samples())

    def test_a_replaced_epoch_does_not_come_back(self):
        old, new = self.journal('a'), self.journal('b')
        old.deliver(**self.full())
        old.deliver(**self.sample())
        new.deliver(**self.sample())
        for number, duplicate in ((1, True), (2, True), (3, False)):
            reply = old.send(number, **self.sample())
            self.assertEqual(
                (REPLACED, duplicate, 2),
                (*self.told(reply), reply.epoch_batch),
            )
        self.assertEqual(3, self.samples())
        self.assertEqual(
            [errors.Code.JOURNAL_REPLACED, errors.Code.JOURNAL_NEW],
            sorted(self.codes(), reverse=True),
        )

    def test_a_recorded_report_does_not_begin_its_epoch_again(self):
        journals = [
            self.journal('%x' % (number % 16))
            for number in range(numbering.MAX_REPLACED + 4)
        ]
        recorded = []
        for number, journal in enumerate(journals):
            journal.epoch = '%032x' % number
            parts = self.full()
            self.assertFalse(journal.deliver(**parts).duplicate)
            recorded.append(
                messages.Report(
                    base.HOST,
                    journal.number,
                    base.NOW,
                    epoch=journal.epoch,
                    after=number,
                    **parts,
                )
            )
        stored = self.samples()
        for report in recorded:
            reply = self.served.on_report(report)
            self.assertTrue(reply.duplicate or reply.epoch_state is UNOPENED)
        self.assertEqual(stored, self.samples())
        row = self.database.read(
            lambda session: session.query(models.Host).one()
        )
        self.assertEqual(numbering.MAX_REPLACED, len(row.replaced_epochs))

    def test_two_agents_of_one_host_are_noticed_and_lose_nothing(self):
        one, two = self.journal('a'), self.journal('b')
        one.deliver(**self.full())
        sent = 1
        for number in range(6):
            for journal in (one, two):
                reply = journal.deliver(**self.sample())
                if reply.epoch_state is REPLACED:
                    # As the agent does.
                    journal.epoch = '%032x' % (
                        number * 2 + (journal is two) + 1
                    )
                    reply = journal.send(**self.sample())
                    if reply.epoch_state is UNOPENED:
                        reply = journal.send(**self.sample())
                self.assertEqual((CURRENT, False), self.told(reply))
                sent += 1
        self.assertEqual(sent, self.samples())
        self.assertEqual(1, self.codes().count(errors.Code.JOURNAL_REPLACED))

    def test_sums_follow_over_epochs(self):
        self.journal('a', AHEAD).deliver(**self.full())
        rollups.fold(self.database, 100, lambda: False)
        self.journal('b').deliver(**self.sample())
        rollups.fold(self.database, 100, lambda: False)

        def total(session):
            return session.execute(
                sa.select(sa.func.sum(models.UsageBucket.guest_us)).where(
                    models.UsageBucket.length_s == 60
                )
            ).scalar()

        self.assertEqual(1_200_000, self.database.read(total))

    def test_numbers_do_not_run_out(self):
        journal = self.journal('a', 2**53 - 2)
        journal.deliver(**self.full())
        journal.deliver(**self.sample())
        error = self.assertRaises(
            wire.MalformedMessage, journal.deliver, **self.sample()
        )
        self.assertIn('Report.batch', str(error))
        for letter in 'bcdef':
            self.assertFalse(
                self.journal(letter).deliver(**self.sample()).duplicate
            )
            self.assertFalse(
                self.journal(letter, 2**53 - 1).send(**self.sample()).duplicate
            )
        self.assertLess(self.last_batch(), 2**55)

    def test_an_epoch_is_hexadecimal(self):
        journal = self.journal('a')
        journal.epoch = 'x' * 32
        error = self.assertRaises(wire.MalformedMessage, journal.deliver)
        self.assertIn('Report.epoch', str(error))
        self.assertEqual([], self.codes())

    def test_an_operator_has_the_next_report_accepted(self):
        stuck = self.journal('x', AHEAD)
        stuck.epoch = None
        stuck.deliver(**self.full())
        late = self.journal('x', AHEAD - DAY_MS)
        late.epoch = None
        self.assertTrue(late.deliver(**self.sample()).duplicate)
        options = databases.write(
            self,
            '[database]\nconnection = %s\n' % (self.conf.database.connection),
        )
        reset = ('--config-file', options, 'host', 'reset-batches')
        self.assertEqual(0, manage.main([*reset, base.HOST]))
        for _ in range(2):
            self.assertFalse(late.deliver(**self.sample()).duplicate)
        self.assertEqual(3, self.samples())
        self.assertEqual(1, manage.main([*reset, 'nowhere']))

    def test_a_poisoned_number_is_reset(self):
        journal = self.journal('a')
        journal.deliver(**self.full())
        rollups.fold(self.database, 100, lambda: False)

        def poison(session):
            session.execute(
                sa.update(models.Host).values(last_batch=2**63 - 1, epoch=None)
            )

        self.database.write(poison)
        self.assertEqual(1, numbering.reset(self.database, base.HOST))
        new = self.journal('b')
        self.assertFalse(new.deliver(**self.sample()).duplicate)
        self.assertEqual(2, self.samples())
        self.assertEqual(2, self.last_batch())
