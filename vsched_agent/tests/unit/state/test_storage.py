# SPDX-License-Identifier: Apache-2.0
"""A journal whose file is damaged, newer, or cannot be written."""

import contextlib
import glob
import os
import random
import shutil
import sqlite3
import tempfile

import hypothesis
from hypothesis import strategies
from oslotest import base

from vsched_agent.state import outbox
from vsched_agent.state import records
from vsched_agent.state import schema
from vsched_agent.state import storage
from vsched_agent.state import store
from vsched_agent.state import transfer
from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code
U = '00000000-0000-4000-8000-000000000001'
V = '00000000-0000-4000-8000-000000000002'
Loss = storage.Loss


def _batch(number, samples=1):
    return messages.Report(
        'here',
        number,
        1.0,
        usage=tuple(
            messages.UsageSample(U, float(index), 1, 1, 0)
            for index in range(samples)
        ),
    )


def _fill(book):
    """Give a journal something of everything; returns the last batch."""
    book.remember(U, 'cfs', 10, {11: {'quota_us': -1}})
    book.note_balloon(U, {'instance_uuid': U})
    book.replace_overrides(
        collector_replies.Overrides(
            3,
            (collector_replies.Override(U, 3, 1000, 2000, 'capped'),),
            (balloons.BalloonOrder(U, 2, 1, True),),
        )
    )
    book.note_reservations(
        [
            messages.ReservationReport(
                U, messages.Source.METADATA, messages.State.APPLIED, 2, 5.0
            )
        ]
    )
    book.outbox.post(_batch)
    return book.outbox.post(_batch)


def _read_all(book):
    book.priors(U, 'cfs')
    book.touched()
    book.balloons()
    book.overrides()
    book.reservations()
    book.outbox.waiting()
    while (report := book.outbox.oldest()) is not None:
        book.outbox.confirm(report.batch)


def _quarantined(book):
    return [
        source
        for (source,) in book._storage.rows('SELECT source FROM quarantine')
    ]


def _take_loss(book):
    loss = book.loss()
    book.accept_loss()
    return loss


class JournalCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'agent.sqlite')

    def open(self):
        book = store.Journal(self.path)
        self.addCleanup(book.close)
        return book

    def codes(self, book):
        return [one.code for one in book.notices()]

    def change(self, *statement):
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute(*statement)
            db.commit()


class TestDamagedFile(JournalCase):
    def damage(self, data):
        self.open().close()
        with open(self.path, 'wb') as file:
            file.write(data)

    def assert_rebuilt(self):
        book = self.open()
        self.assertEqual([Code.JOURNAL_REBUILT], self.codes(book))
        self.assertEqual(Loss.DAMAGED, _take_loss(book))
        self.assertEqual(Loss.NOTHING, _take_loss(book))
        self.assertEqual([], book.touched())
        book.outbox.post(_batch)
        (kept,) = glob.glob(self.path + '.corrupt-*')
        book.close()
        book = self.open()
        self.assertEqual([], self.codes(book))
        self.assertEqual(Loss.NOTHING, _take_loss(book))
        self.assertEqual(1, book.outbox.waiting())
        return kept

    def test_no_database_at_all(self):
        self.damage(b'garbage ' * 2000)
        with open(self.assert_rebuilt(), 'rb') as file:
            self.assertEqual(b'garbage ' * 2000, file.read())

    def test_a_page_of_garbage(self):
        book = self.open()
        _fill(book)
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
        _fill(book)
        book.close()
        self.damage_outbox()
        self.assert_rebuilt()

    def test_found_while_it_runs(self):
        book = self.open()
        _take_loss(book)
        _fill(book)
        book.close()
        book = self.open()
        self.damage_outbox()
        book._storage._file.execute('PRAGMA shrink_memory')
        self.assertIsNone(book.outbox.oldest())
        self.assertEqual([Code.JOURNAL_REBUILT], self.codes(book))
        self.assertEqual(Loss.DAMAGED, _take_loss(book))
        self.assertEqual(1, len([book.outbox.post(_batch)]))

    def test_few_are_kept(self):
        for _ in range(schema.MOST_KEPT + 3):
            self.damage(b'garbage ' * 2000)
            self.open().close()
        self.assertEqual(
            schema.MOST_KEPT, len(glob.glob(self.path + '.corrupt-*'))
        )

    def test_a_new_one_is_no_damage(self):
        book = self.open()
        self.assertEqual(Loss.NEW, _take_loss(book))
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
            _fill(book)
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
            _read_all(book)
            batch = book.outbox.post(_batch)
            self.assertEqual(batch, book.outbox.oldest().batch)
            book.close()


class TestVersions(JournalCase):
    def test_a_newer_one_is_refused_and_left_alone(self):
        self.open().close()
        self.change('PRAGMA user_version = %d' % (schema.VERSION + 1))
        problem = self.assertRaises(
            schema.NewerJournal, store.Journal, self.path
        )
        self.assertIn('schema version %d' % (schema.VERSION + 1), str(problem))
        self.assertEqual([], glob.glob(self.path + '.corrupt-*'))

    def test_one_without_a_version_keeps_its_records(self):
        last = _fill(self.open())
        self.change('DROP TABLE quarantine')
        self.change('PRAGMA user_version = 0')
        book = self.open()
        self.assertEqual(last - 1, book.outbox.oldest().batch)
        self.assertEqual(3, book.overrides().generation)
        self.assertEqual([(U, 'cfs')], book.touched())
        self.assertEqual([], _quarantined(book))

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


class TestUnreadableRecords(JournalCase):
    def test_a_batch_is_set_aside_and_the_next_one_comes(self):
        book = self.open()
        last = _fill(book)
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
            book.outbox.post(_batch)
            last = book.outbox.post(_batch)
        self.assertEqual(['outbox'] * 5, _quarantined(book))

    def test_overrides_are_asked_for_again(self):
        book = self.open()
        _fill(book)
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
        _fill(book)
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
        self.assertEqual(records.MOST_QUARANTINED, len(_quarantined(book)))


class TestDiskFull(JournalCase):
    def setUp(self):
        super().setUp()
        self.book = self.open()
        _take_loss(self.book)
        self.last = _fill(self.book)
        self.now_s = 100.0
        self.book._storage._clock = lambda: self.now_s

    def fill_disk(self):
        # SQLite's own bound: it answers as with a full disk.
        db = self.book._storage._file
        (pages,) = db.execute('PRAGMA page_count').fetchone()
        db.execute('PRAGMA max_page_count = %d' % pages)
        connect = schema.connect

        def refuse(path):
            db = connect(path)
            db.execute('PRAGMA max_page_count = %d' % pages)
            return db

        self.useFixture(_Patched(schema, 'connect', refuse))

    def free_disk(self):
        self.useFixture(_Patched(schema, 'connect', _CONNECT))
        self.now_s += storage.RETRY_S

    def post_until_full(self):
        posted = []
        while not self.book.degraded:
            posted.append(
                self.book.outbox.post(lambda number: _batch(number, 40))
            )
        return posted

    def test_nothing_is_lost_or_repeated(self):
        self.fill_disk()
        posted = [self.last - 1, self.last, *self.post_until_full()]
        self.assertEqual([Code.JOURNAL_STORAGE_LOST], self.codes(self.book))
        posted += [self.book.outbox.post(_batch) for _ in range(10)]
        self.now_s += storage.RETRY_S
        posted.append(self.book.outbox.post(_batch))
        self.assertTrue(self.book.degraded)
        self.assertEqual(sorted(set(posted)), posted)
        self.assertEqual(len(posted), self.book.outbox.waiting())
        delivered = []
        for _ in range(len(posted) - 5):
            delivered.append(self.book.outbox.oldest().batch)
            self.book.outbox.confirm(delivered[-1])
        # And everything else works as ever.
        self.book.remember(V, 'deadline', 20, {21: {'nice': 3}})
        self.book.forget(U)
        self.assertEqual([(V, 'deadline')], self.book.touched())
        self.book.note_balloon(V, {'instance_uuid': V})
        self.free_disk()
        posted.append(self.book.outbox.post(_batch))
        self.assertFalse(self.book.degraded)
        self.assertEqual([Code.JOURNAL_STORAGE_BACK], self.codes(self.book))
        self.book.close()
        book = self.open()
        while (report := book.outbox.oldest()) is not None:
            delivered.append(report.batch)
            book.outbox.confirm(report.batch)
        self.assertEqual(posted, delivered)
        self.assertEqual([(V, 'deadline')], book.touched())
        self.assertEqual(Loss.NOTHING, _take_loss(book))

    def test_memory_is_bounded(self):
        self.fill_disk()
        self.post_until_full()
        self.useFixture(_Patched(outbox, 'MEMORY_BATCHES', 10))
        in_file = self.book.outbox.waiting()
        dropped = []
        for _ in range(50):
            self.book.outbox.post(_batch)
            dropped += self.book.outbox.trim(20_000)
        self.assertEqual(in_file - 1 + 10, self.book.outbox.waiting())
        self.assertEqual(41, len(dropped))
        self.useFixture(_Patched(outbox, 'MEMORY_BYTES', 1))
        self.book.outbox.trim(20_000)
        self.assertEqual(in_file - 1, self.book.outbox.waiting())

    def test_the_whole_outbox_has_its_bound_as_well(self):
        self.fill_disk()
        posted = [self.last - 1, self.last, *self.post_until_full()]
        self.assertEqual(
            posted[:-3], [one.batch for one in self.book.outbox.trim(3)]
        )
        self.assertEqual(posted[-3], self.book.outbox.oldest().batch)

    def test_an_end_in_between_repeats_but_loses_nothing_delivered(self):
        self.fill_disk()
        self.post_until_full()
        self.book.outbox.confirm(self.last - 1)
        # Killed: nothing is written any more.
        other = store.Journal(self.path)
        self.addCleanup(other.close)
        self.assertEqual(self.last - 1, other.outbox.oldest().batch)


class TestRemovedFile(JournalCase):
    """The agent runs on; its file is gone."""

    def setUp(self):
        super().setUp()
        self.book = self.open()
        _take_loss(self.book)
        self.last = _fill(self.book)

    def assert_kept(self):
        """Nothing is lost, for a later agent either; returns the epochs."""
        last = self.book.outbox.post(_batch)
        self.assertFalse(self.book.degraded)
        self.assertEqual(
            [Code.JOURNAL_STORAGE_LOST, Code.JOURNAL_STORAGE_BACK],
            self.codes(self.book),
        )
        self.book.outbox.confirm(self.last - 1)
        self.book.close()
        book = self.open()
        self.assertEqual(Loss.NOTHING, _take_loss(book))
        self.assertEqual([(U, 'cfs')], book.touched())
        delivered = []
        while (report := book.outbox.oldest()) is not None:
            delivered.append(report.batch)
            book.outbox.confirm(report.batch)
        self.assertEqual([self.last, last], delivered)

    def remove(self, *suffixes):
        for suffix in suffixes:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path + suffix)

    def test_removed(self):
        self.remove('', '-wal', '-shm')
        self.assert_kept()

    def test_without_the_files_beside_it(self):
        self.remove('')
        self.assert_kept()

    def test_with_its_folder(self):
        folder = os.path.dirname(self.path)
        os.rename(folder, folder + '.away')
        self.addCleanup(shutil.rmtree, folder + '.away')
        self.assert_kept()

    def test_replaced_by_another_one(self):
        other = store.Journal(self.path + '.other')
        for _ in range(9):
            other.outbox.post(_batch)
        other.remember(V, 'deadline', 20, {21: {'nice': 3}})
        other.close()
        self.remove('-wal', '-shm')
        os.replace(self.path + '.other', self.path)
        self.assert_kept()

    def test_and_no_other_can_be_made(self):
        clock = [100.0]
        self.book._storage._clock = lambda: clock[0]
        folder = os.path.dirname(self.path)
        shutil.rmtree(folder)
        with open(folder, 'w'):
            pass
        for waiting in (3, 4):
            self.book.outbox.post(_batch)
            self.assertTrue(self.book.degraded)
            self.assertEqual(waiting, self.book.outbox.waiting())
            clock[0] += storage.RETRY_S
        os.unlink(folder)
        self.book.outbox.post(_batch)
        self.assertFalse(self.book.degraded)
        self.assertEqual(5, self.book.outbox.waiting())

    def test_and_the_disk_is_full(self):
        clock = [100.0]
        self.book._storage._clock = lambda: clock[0]
        self.remove('', '-wal', '-shm')
        failing = [True, True]

        def merge(*args):
            if failing and failing.pop():
                error = sqlite3.OperationalError('database or disk is full')
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
            _MERGE(*args)

        self.useFixture(_Patched(transfer, 'merge', merge))
        for waiting in (3, 4):
            self.book.outbox.post(_batch)
            self.assertTrue(self.book.degraded)
            self.assertEqual(waiting, self.book.outbox.waiting())
            clock[0] += storage.RETRY_S
        self.book.outbox.post(_batch)
        self.assertFalse(self.book.degraded)
        self.assertEqual(5, self.book.outbox.waiting())
        self.assertEqual([], glob.glob(self.path + '.corrupt-*'))

    def test_what_is_no_file_is_not_read(self):
        """A device or a pipe has no end."""
        for name in ('/dev/zero', '/dev/full'):
            path = self.path + name.replace('/', '.')
            os.symlink(name, path)
            book = store.Journal(path)
            self.addCleanup(book.close)
            self.assertTrue(book.degraded)
            book.outbox.post(_batch)
            self.assertEqual(1, book.outbox.waiting())


_CONNECT = schema.connect
_MERGE = transfer.merge


class _Patched:
    """A fixture for one attribute."""

    def __init__(self, owner, name, value):
        self._what = owner, name, value

    def setUp(self):
        owner, name, value = self._what
        self._before = getattr(owner, name)
        setattr(owner, name, value)

    def cleanUp(self):
        owner, name, _ = self._what
        setattr(owner, name, self._before)

    def getDetails(self):
        return {}
