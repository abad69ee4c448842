# SPDX-License-Identifier: Apache-2.0

"""A journal whose file is damaged or newer."""

import contextlib
import glob
import os
import random
import sqlite3
import tempfile

import hypothesis
from hypothesis import strategies

from vsched_agent.state import records
from vsched_agent.state import schema
from vsched_agent.state import storage
from vsched_agent.state import store
from vsched_agent.tests import storage_case
from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors

Code = errors.Code
U, V = storage_case.U, storage_case.V
Loss = storage.Loss


class TestDamagedFile(storage_case.StorageCase):
    def damage(self, data):
        self.open().close()
        with open(self.path, 'wb') as file:
            file.write(data)

    def assert_rebuilt(self):
        book = self.open()
        self.assertEqual([Code.JOURNAL_REBUILT], self.codes(book))
        self.assertEqual(Loss.DAMAGED, storage_case.take_loss(book))
        self.assertEqual(Loss.NOTHING, storage_case.take_loss(book))
        self.assertEqual([], book.touched())
        book.outbox.post(storage_case.batch)
        (kept,) = glob.glob(self.path + '.corrupt-*')
        book.close()
        book = self.open()
        self.assertEqual([], self.codes(book))
        self.assertEqual(Loss.NOTHING, storage_case.take_loss(book))
        self.assertEqual(1, book.outbox.waiting())
        return kept

    def test_no_database_at_all(self):
        self.damage(b'garbage ' * 2000)
        with open(self.assert_rebuilt(), 'rb') as file:
            self.assertEqual(b'garbage ' * 2000, file.read())

    def test_a_page_of_garbage(self):
        book = self.open()
        storage_case.fill(book)
        book.close()
        with open(self.path, 'r+b') as file:
            file.seek(4096)
            file.write(os.urandom(4096))
        self.assert_rebuilt()

    def test_another_database(self):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute('CREATE TABLE outbox (something TEXT)')
            db.commit()
        self.assert_rebuilt()

    def damage_outbox(self):
        # It is read when there is something to deliver, not before.
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            (page,) = db.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'outbox'"
            ).fetchone()
            (size,) = db.execute('PRAGMA page_size').fetchone()
        with open(self.path, 'r+b') as file:
            file.seek((page - 1) * size)
            file.write(b'\xff' * size)

    def test_a_page_that_is_not_read_at_the_start(self):
        book = self.open()
        storage_case.fill(book)
        book.close()
        self.damage_outbox()
        self.assert_rebuilt()

    def test_found_while_it_runs(self):
        book = self.open()
        storage_case.take_loss(book)
        storage_case.fill(book)
        book.close()
        book = self.open()
        self.damage_outbox()
        book._storage._file.execute('PRAGMA shrink_memory')
        self.assertIsNone(book.outbox.oldest())
        self.assertEqual([Code.JOURNAL_REBUILT], self.codes(book))
        self.assertEqual(Loss.DAMAGED, storage_case.take_loss(book))
        self.assertEqual(1, len([book.outbox.post(storage_case.batch)]))

    def test_few_are_kept(self):
        for _ in range(schema.MOST_KEPT + 3):
            self.damage(b'garbage ' * 2000)
            self.open().close()
        self.assertEqual(
            schema.MOST_KEPT, len(glob.glob(self.path + '.corrupt-*'))
        )

    def test_a_new_one_is_no_damage(self):
        book = self.open()
        self.assertEqual(Loss.NEW, storage_case.take_loss(book))
        self.assertEqual([], self.codes(book))

    @hypothesis.settings(max_examples=60, deadline=None)
    @hypothesis.given(
        strategies.integers(0, 2**32), strategies.integers(1, 60)
    )
    def test_whatever_bytes(self, seed, count):
        chance = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'agent.sqlite')
            book = store.Journal(path)
            storage_case.fill(book)
            book.close()
            size = os.path.getsize(path)
            with open(path, 'r+b') as file:
                for _ in range(count):
                    file.seek(chance.randrange(size))
                    file.write(chance.randbytes(chance.choice((1, 4, 400))))
            try:
                book = store.Journal(path)
            except schema.NewerJournal:
                # Its version number was hit.
                return
            storage_case.read_all(book)
            batch = book.outbox.post(storage_case.batch)
            self.assertEqual(batch, book.outbox.oldest().batch)
            book.close()


class TestVersions(storage_case.StorageCase):
    def test_a_newer_one_is_refused_and_left_alone(self):
        self.open().close()
        self.change('PRAGMA user_version = %d' % (schema.VERSION + 1))
        problem = self.assertRaises(
            schema.NewerJournal, store.Journal, self.path
        )
        self.assertIn('schema version %d' % (schema.VERSION + 1), str(problem))
        self.assertEqual([], glob.glob(self.path + '.corrupt-*'))

    def test_one_without_a_version_keeps_its_records(self):
        last = storage_case.fill(self.open())
        self.change('DROP TABLE quarantine')
        self.change('PRAGMA user_version = 0')
        book = self.open()
        self.assertEqual(last - 1, book.outbox.oldest().batch)
        self.assertEqual(3, book.overrides().generation)
        self.assertEqual([(U, 'cfs')], book.touched())
        self.assertEqual([], storage_case.quarantined(book))

    def test_a_migration_is_whole_or_not_at_all(self):
        self.open().close()

        def fail(db):
            db.execute('CREATE TABLE more (x)')
            raise ZeroDivisionError

        with contextlib.closing(
            sqlite3.connect(self.path, isolation_level=None)
        ) as db:
            before = schema.MIGRATIONS, schema.VERSION
            schema.MIGRATIONS = (*before[0], fail)
            schema.VERSION = before[1] + 1
            try:
                self.assertRaises(
                    ZeroDivisionError, schema.migrate, db, self.path
                )
            finally:
                schema.MIGRATIONS, schema.VERSION = before
            self.assertEqual(
                [],
                db.execute(
                    "SELECT * FROM sqlite_master WHERE name = 'more'"
                ).fetchall(),
            )


class TestUnreadableRecords(storage_case.StorageCase):
    def test_a_batch_is_set_aside_and_the_next_one_comes(self):
        book = self.open()
        last = storage_case.fill(book)
        for body in (
            '{"host": ',
            '[]',
            '{"host": "here"}',
            '[' * 5000,
            '{"host": "here", "batch": 1, "at": 1.0, "events": '
            '[{"severity": "purple"}]}',
        ):
            self.change(
                'UPDATE outbox SET body = ? WHERE batch = ?',
                (body, book.outbox.oldest().batch),
            )
            self.assertEqual(last, book.outbox.oldest().batch)
            self.assertEqual(
                [Code.JOURNAL_RECORD_UNREADABLE], self.codes(book)
            )
            book.outbox.confirm(last)
            self.assertEqual(0, book.outbox.waiting())
            book.outbox.post(storage_case.batch)
            last = book.outbox.post(storage_case.batch)
        self.assertEqual(['outbox'] * 5, storage_case.quarantined(book))

    def test_overrides_are_asked_for_again(self):
        book = self.open()
        storage_case.fill(book)
        self.change("UPDATE override SET body = 'x'")
        self.assertEqual(
            collector_replies.Overrides(
                -1, (), (balloons.BalloonOrder(U, 2, 1, True),)
            ),
            book.overrides(),
        )
        self.assertEqual(-1, book.overrides_generation())

    def test_what_was_found_becomes_the_default(self):
        book = self.open()
        storage_case.fill(book)
        self.change("UPDATE prior SET found = '[1'")
        self.assertEqual({11: store.Prior(10, {})}, book.priors(U, 'cfs'))
        self.assertEqual([Code.JOURNAL_RECORD_UNREADABLE], self.codes(book))
        self.assertEqual({11: store.Prior(10, {})}, book.priors(U, 'cfs'))
        self.assertEqual([], self.codes(book))

    def test_memory_of_them_is_bounded(self):
        book = self.open()
        for number in range(records.MOST_QUARANTINED + 5):
            book._records.set_aside(
                'outbox', str(number), 'x', ValueError('y')
            )
        self.assertEqual(
            records.MOST_QUARANTINED, len(storage_case.quarantined(book))
        )
