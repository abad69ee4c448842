# SPDX-License-Identifier: Apache-2.0

"""Lost, restored and cloned journals, over a real broker and database."""

import os
import shutil
import time
import uuid

import fixtures

from vsched_agent.reporting import collector_session
from vsched_agent.state import store
from vsched_api.operations import events
from vsched_api.operations import host_keys
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import bus_case
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import signing
from vsched_lib.tests import bus_keys

#: Long enough for any machine; a test that passes never waits for it.
PATIENCE_S = 120


class Agent:
    """What an agent reports with."""

    def __init__(self, path, transport):
        self.journal = store.Journal(path)
        self._reporter = collector_session.Reporter(
            base.HOST,
            self.journal,
            collector_rpc.CollectorClient(
                transport,
                PATIENCE_S,
                signing.Signer(
                    signing.Mode.REQUIRED,
                    base.HOST,
                    lambda: bus_keys.key(base.HOST),
                    lambda: self.journal.outbox.epoch,
                ),
            ),
            self.journal.replace_overrides,
            lambda: None,
            lambda jobs: None,
        )

    def post(self, at, **parts):
        """Keep a report with one sample until it is delivered."""
        self.journal.outbox.post(
            lambda number: messages.Report(
                base.HOST,
                number,
                at,
                usage=(base.sample(str(uuid.uuid4()), at),),
                **parts,
            )
        )

    def deliver(self):
        """Deliver what waits."""
        self._reporter.deliver()

    def close(self):
        """End as a killed agent does."""
        self.journal.close()


class TestJournals(bus_case.BusTestCase):
    """Every sample that an agent took is stored once."""

    def setUp(self):
        super().setUp()
        host_keys.issue(self.database, base.HOST, base.NOW)
        self.serve()
        self.path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'agent.sqlite'
        )
        # The collector believes no time that is to come.
        self.at = time.time() - 10_000
        self.taken = 0

    def agent(self, path=None):
        agent = Agent(path or self.path, self.transport)
        self.addCleanup(agent.close)
        return agent

    def post(self, agent, **parts):
        self.at += 1
        self.taken += 1
        agent.post(self.at, **parts)

    def check(self, *codes):
        """All samples that were taken are stored, and these events."""
        self.assertEqual(self.taken, len(usage.page(self.database, 1000)))
        self.assertEqual(
            sorted(codes),
            sorted(one.code for one in events.page(self.database, 1000)),
        )

    def copy(self, path):
        for end in ('', '-wal', '-shm'):
            if os.path.exists(self.path + end):
                shutil.copy(self.path + end, path + end)
        return path

    def test_a_first_installation_with_the_clock_a_day_ahead(self):
        # As the release before numbered: from its clock on.
        ahead = int((self.at + 86_400) * 1000)
        collector_rpc.CollectorClient(
            self.transport, PATIENCE_S, bus_keys.signer(base.HOST)
        ).report(
            messages.Report(
                base.HOST,
                ahead,
                self.at,
                host_info=base.host_info(),
                instances=(),
            )
        )
        agent = self.agent()
        for _ in range(3):
            self.post(agent)
            agent.deliver()
        self.check(errors.Code.JOURNAL_NEW)

    def test_an_agent_that_is_killed_between_reports(self):
        for _ in range(3):
            agent = self.agent()
            for _ in range(2):
                self.post(agent)
            agent.deliver()
            self.post(agent)
            agent.close()
        agent = self.agent()
        agent.deliver()
        self.check()

    def test_a_lost_journal(self):
        agent = self.agent()
        for _ in range(5):
            self.post(agent)
            agent.deliver()
        agent.close()
        shutil.rmtree(os.path.dirname(self.path))
        agent = self.agent()
        for _ in range(3):
            self.post(agent)
            agent.deliver()
        self.check(errors.Code.JOURNAL_NEW)

    def test_a_journal_that_is_restored_from_a_copy(self):
        agent = self.agent()
        self.post(agent)
        agent.deliver()
        # In the copy two reports wait that are delivered later on.
        for _ in range(2):
            self.post(agent)
        copy = self.copy(self.path + '.copy')
        agent.deliver()
        for _ in range(3):
            self.post(agent)
            agent.deliver()
        agent.close()
        agent = self.agent(copy)
        for _ in range(2):
            self.post(agent)
        agent.deliver()
        self.check(errors.Code.JOURNAL_NEW)

    def test_a_copy_that_comes_back_after_the_agent_was_restarted(self):
        agent = self.agent()
        self.post(agent)
        self.post(agent)
        agent.deliver()
        self.post(agent)
        copy = self.copy(self.path + '.copy')
        agent.close()
        agent = self.agent()
        self.post(agent)
        agent.deliver()
        agent.close()
        agent = self.agent(copy)
        self.post(agent)
        agent.deliver()
        self.check(errors.Code.JOURNAL_NEW, errors.Code.JOURNAL_REPLACED)

    def test_two_agents_with_one_journal(self):
        agent = self.agent()
        self.post(agent)
        agent.deliver()
        clone = self.agent(self.copy(self.path + '.copy'))
        for _ in range(4):
            for one in (agent, clone):
                self.post(one)
                one.deliver()
        self.check(errors.Code.JOURNAL_NEW, errors.Code.JOURNAL_REPLACED)
