# SPDX-License-Identifier: Apache-2.0

"""Tests of a journal whose file is damaged or cannot be written."""

import contextlib
import os
import sqlite3
import tempfile

from oslotest import base

from vsched_agent.state import storage
from vsched_agent.state import store
from vsched_lib.contract import balloons
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.contract import messages

Code = errors.Code
U = '00000000-0000-4000-8000-000000000001'
V = '00000000-0000-4000-8000-000000000002'
Loss = storage.Loss


def batch(number, samples=1):
    """Return a batch with samples."""
    return messages.Report(
        'here',
        number,
        1.0,
        usage=tuple(
            messages.UsageSample(U, float(index), 1, 1, 0)
            for index in range(samples)
        ),
    )


def fill(book):
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
    book.outbox.post(batch)
    return book.outbox.post(batch)


def read_all(book):
    """Read each table, and confirm all batches."""
    book.priors(U, 'cfs')
    book.touched()
    book.balloons()
    book.overrides()
    book.reservations()
    book.outbox.waiting()
    while (report := book.outbox.oldest()) is not None:
        book.outbox.confirm(report.batch)


def quarantined(book):
    """Return the tables of records that were set aside."""
    return [
        source
        for (source,) in book._storage.rows('SELECT source FROM quarantine')
    ]


def take_loss(book):
    """Return which records were lost, and clear it."""
    loss = book.loss()
    book.accept_loss()
    return loss


class StorageCase(base.BaseTestCase):
    """A test of one file."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'agent.sqlite')

    def open(self):
        """Return a journal of the file."""
        book = store.Journal(self.path)
        self.addCleanup(book.close)
        return book

    def codes(self, book):
        """Return the codes of its notices."""
        return [one.code for one in book.notices()]

    def change(self, *statement):
        """Execute a statement on the file, beside the journal."""
        with contextlib.closing(sqlite3.connect(self.path)) as db:
            db.execute(*statement)
            db.commit()
