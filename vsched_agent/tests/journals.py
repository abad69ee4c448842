# SPDX-License-Identifier: Apache-2.0

"""Tests with a journal on disk."""

import os

import fixtures
from oslotest import base

from vsched_agent.state import store


class JournalCase(base.BaseTestCase):
    """A test with a journal in a folder of its own."""

    def setUp(self):
        super().setUp()
        self.new_journal()

    def new_journal(self):
        """Begin with an empty journal; its folder does not exist yet."""
        folder = self.useFixture(fixtures.TempDir()).path
        self.path = os.path.join(folder, 'a', 'agent.sqlite')
        self.open_journal()

    def open_journal(self):
        self.journal = store.Journal(self.path)
        self.addCleanup(self.journal.close)

    def reopen(self):
        """Close the journal and open it again, as the next agent does."""
        self.journal.close()
        self.open_journal()
