# SPDX-License-Identifier: Apache-2.0

"""Agents and collectors of two releases, on one broker and one database.

The earlier one is the last commit before signatures and epochs, which was
never released: its database is not upgraded, so both use the tables of this
release. That tables of releases are upgraded is tested in
``vsched_api.tests.suites.migrations``.
"""

import os
import time
import uuid

import fixtures

from vsched_agent.reporting import collector_session
from vsched_agent.state import store
from vsched_api.collector import service
from vsched_api.operations import host_keys
from vsched_api.operations import hosts
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rabbitmq
from vsched_standalone.tests import releases

PATIENCE_S = 120

#: What an agent of the earlier release does: journal, reporter and client
#: are its own.
_OLD_AGENT = """
import json, sys, uuid
from oslo_config import cfg
from vsched_agent import journal, reporter
from vsched_lib.contract import messages, rpc
url, path, host, instance, count, at = sys.argv[1:]
conf = cfg.ConfigOpts()
conf([], default_config_files=[])
transport = rpc.get_transport(conf, url)
kept = journal.Journal(path)
told = []
one = reporter.Reporter(
    host, kept, rpc.CollectorClient(transport, 60), told.append,
    lambda: None, told.append)
for number in range(int(count)):
    kept.post(lambda batch: messages.Report(
        host, batch, float(at), usage=(messages.UsageSample(
            instance, float(at) + number, 1000000, 600000, 0),)))
one.deliver()
one.fetch_overrides()
one.fetch_jobs()
one.deliver()
assert kept.waiting() == 0
print(json.dumps([each.to_dict() for each in told]))
transport.cleanup()
"""


class Upgrades:
    """The tests, on a database with the tables of this release."""

    def setUp(self):
        super().setUp()
        self.bus = rabbitmq.make_vhost(self)
        self.transport = rpc.get_transport(self.conf, self.bus)
        self.addCleanup(self.transport.cleanup)
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.conf.set_override(
            'master_key_file',
            bus_keys.write(self.folder, 'master.key', bus_keys.MASTER),
            'bus',
        )
        self.conf.set_override('authentication', 'permissive', 'bus')
        host_keys.issue(self.database, base.HOST, base.NOW)
        self.old = self.useFixture(releases.Release())
        self.instance = str(uuid.uuid4())
        self.taken = 0
        # The collector believes no time that is to come.
        self.began_at = time.time() - 10_000

    def new_collector(self):
        collector = service.Service(self.conf, self.transport, 'new')
        collector.start()
        self.addCleanup(collector.stop)

    def old_collector(self):
        options = databases.write(
            self,
            '[DEFAULT]\ntransport_url = %s\n'
            '[database]\nconnection = %s\n'
            % (self.bus, self.conf.database.connection),
        )
        releases.read_until(
            self.old.start(
                'vsched_api.cmd.collector', '--config-file', options
            ),
            'takes reports',
        )

    def old_agent(self, count=3):
        told = self.old.run(
            _OLD_AGENT,
            self.bus,
            os.path.join(self.folder, 'agent.sqlite'),
            base.HOST,
            self.instance,
            str(count),
            str(self.began_at + self.taken),
        )
        self.taken += count
        return told

    def new_agent(self, mode=signing.Mode.PERMISSIVE):
        kept = store.Journal(os.path.join(self.folder, 'agent.sqlite'))
        self.addCleanup(kept.close)
        return kept, collector_session.Reporter(
            base.HOST,
            kept,
            collector_rpc.CollectorClient(
                self.transport,
                PATIENCE_S,
                signing.Signer(
                    mode,
                    base.HOST,
                    lambda: bus_keys.key(base.HOST),
                    lambda: kept.outbox.epoch,
                ),
            ),
            kept.replace_overrides,
            lambda: None,
            lambda jobs: None,
        )

    def post(self, kept, count=3, **parts):
        for _ in range(count):
            at = self.began_at + self.taken
            self.taken += 1
            kept.outbox.post(
                lambda batch, at=at: messages.Report(
                    base.HOST,
                    batch,
                    at,
                    usage=(
                        messages.UsageSample(
                            self.instance, at, 1_000_000, 600_000, 0
                        ),
                    ),
                    **parts,
                )
            )

    def check(self):
        self.assertEqual(self.taken, len(usage.page(self.database, 1000)))

    def test_an_old_agent_with_a_new_collector(self):
        self.new_collector()
        self.old_agent()
        self.old_agent()
        self.check()

    def test_an_old_agent_is_refused_when_signatures_are_required(self):
        self.conf.set_override('authentication', 'required', 'bus')
        self.new_collector()
        error = self.assertRaises(AssertionError, self.old_agent)
        self.assertIn('Unauthenticated', str(error))
        # What it could not deliver waits, and the new agent delivers it.
        self.taken += 3
        kept, agent = self.new_agent(signing.Mode.REQUIRED)
        self.post(kept)
        agent.deliver()
        self.check()

    def test_a_new_agent_with_an_old_collector(self):
        self.old_collector()
        kept, agent = self.new_agent()
        self.post(
            kept,
            1,
            host_info=base.host_info(),
            instances=(messages.InstanceInfo(self.instance, 'vm', 1),),
        )
        agent.deliver()
        agent.fetch_overrides()
        agent.fetch_jobs()
        self.post(kept)
        agent.deliver()
        self.check()
        self.assertEqual(
            4, hosts.get(self.database, base.HOST, 0, 1).last_batch
        )

    def test_a_new_agent_that_requires_signatures_of_an_old_collector(self):
        self.old_collector()
        kept, agent = self.new_agent(signing.Mode.REQUIRED)
        self.post(kept)
        self.assertRaises(errors.Unauthenticated, agent.deliver)
        self.assertEqual(3, kept.outbox.waiting())

    def test_collectors_and_agent_one_by_one(self):
        self.old_collector()
        self.old_agent()
        # The tables are those of this release all the time. One of two
        # collectors is upgraded.
        self.new_collector()
        for _ in range(2):
            self.old_agent()
        # The agent is upgraded, with reports of the old one waiting, and is
        # restarted once more.
        for _ in range(2):
            kept, agent = self.new_agent()
            for _ in range(5):
                self.post(kept)
                agent.deliver()
            self.post(kept)
            kept.close()
        kept, agent = self.new_agent()
        agent.deliver()
        self.check()


class TestUpgradesOnPostgreSQL(Upgrades, base.TestCase):
    """The tests on PostgreSQL."""

    kind = databases.PostgreSQL


class TestUpgradesOnMariaDB(Upgrades, base.TestCase):
    """The tests on MariaDB."""

    kind = databases.MariaDB
