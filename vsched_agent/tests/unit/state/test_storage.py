# SPDX-License-Identifier: Apache-2.0

"""A journal whose file cannot be written or is removed."""

import contextlib
import glob
import os
import shutil
import sqlite3


from vsched_agent.state import outbox
from vsched_agent.state import schema
from vsched_agent.state import storage
from vsched_agent.state import store
from vsched_agent.state import transfer
from vsched_agent.tests import storage_case
from vsched_lib.contract import errors

Code = errors.Code
U, V = storage_case.U, storage_case.V
Loss = storage.Loss


class TestDiskFull(storage_case.StorageCase):
    def setUp(self):
        super().setUp()
        self.book = self.open()
        storage_case.take_loss(self.book)
        self.last = storage_case.fill(self.book)
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
                self.book.outbox.post(
                    lambda number: storage_case.batch(number, 40)
                )
            )
        return posted

    def test_nothing_is_lost_or_repeated(self):
        self.fill_disk()
        posted = [self.last - 1, self.last, *self.post_until_full()]
        self.assertEqual([Code.JOURNAL_STORAGE_LOST], self.codes(self.book))
        posted += [
            self.book.outbox.post(storage_case.batch) for _ in range(10)
        ]
        self.now_s += storage.RETRY_S
        posted.append(self.book.outbox.post(storage_case.batch))
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
        posted.append(self.book.outbox.post(storage_case.batch))
        self.assertFalse(self.book.degraded)
        self.assertEqual([Code.JOURNAL_STORAGE_BACK], self.codes(self.book))
        self.book.close()
        book = self.open()
        while (report := book.outbox.oldest()) is not None:
            delivered.append(report.batch)
            book.outbox.confirm(report.batch)
        self.assertEqual(posted, delivered)
        self.assertEqual([(V, 'deadline')], book.touched())
        self.assertEqual(Loss.NOTHING, storage_case.take_loss(book))

    def test_memory_is_bounded(self):
        self.fill_disk()
        self.post_until_full()
        self.useFixture(_Patched(outbox, 'MEMORY_BATCHES', 10))
        in_file = self.book.outbox.waiting()
        dropped = []
        for _ in range(50):
            self.book.outbox.post(storage_case.batch)
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


class TestRemovedFile(storage_case.StorageCase):
    """The agent runs on; its file is gone."""

    def setUp(self):
        super().setUp()
        self.book = self.open()
        storage_case.take_loss(self.book)
        self.last = storage_case.fill(self.book)

    def assert_kept(self):
        """Nothing is lost, for a later agent either; returns the epochs."""
        last = self.book.outbox.post(storage_case.batch)
        self.assertFalse(self.book.degraded)
        self.assertEqual(
            [Code.JOURNAL_STORAGE_LOST, Code.JOURNAL_STORAGE_BACK],
            self.codes(self.book),
        )
        self.book.outbox.confirm(self.last - 1)
        self.book.close()
        book = self.open()
        self.assertEqual(Loss.NOTHING, storage_case.take_loss(book))
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
            other.outbox.post(storage_case.batch)
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
            self.book.outbox.post(storage_case.batch)
            self.assertTrue(self.book.degraded)
            self.assertEqual(waiting, self.book.outbox.waiting())
            clock[0] += storage.RETRY_S
        os.unlink(folder)
        self.book.outbox.post(storage_case.batch)
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
            self.book.outbox.post(storage_case.batch)
            self.assertTrue(self.book.degraded)
            self.assertEqual(waiting, self.book.outbox.waiting())
            clock[0] += storage.RETRY_S
        self.book.outbox.post(storage_case.batch)
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
            book.outbox.post(storage_case.batch)
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
