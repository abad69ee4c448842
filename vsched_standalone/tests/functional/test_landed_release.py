# SPDX-License-Identifier: Apache-2.0

"""From the last landed commit to this tree, without a full stop.

Agents, collectors and REST services of both are paired on one broker and one
database, which the landed commit has made and filled. Every request on the
bus is signed. What is asserted of an agent on a real host is in
``test_landed_agent``.
"""

import json
import os
import time
import uuid

import fixtures
from oslotest import base

from vsched_api.tests import databases
from vsched_lib.tests import rabbitmq
from vsched_standalone.tests import deployment
from vsched_standalone.tests import outages
from vsched_standalone.tests import releases

#: Only a hang takes longer, in seconds.
_LIMIT_S = 1500
#: Longer than a machine that other tests use as well stands still, or tables
#: change.
_OPTIONS = {'database': {'lock_timeout_s': '60', 'statement_timeout_s': '120'}}

# Samples and reports of one agent; it runs in both releases. Journal,
# reporter, signatures and messages are those of the release.
_AGENT = """
import json, sys, time, uuid
from oslo_config import cfg
from vsched_agent.reporting import collector_session
from vsched_agent.state import store
from vsched_api.tests import base
from vsched_lib.contract import collector_rpc, messages, rpc, signing
try:
    from vsched_lib.contract.signing_keys import HostKey
except ImportError:
    # The landed release has the keys beside the signatures.
    from vsched_lib.contract.signing import HostKey
from vsched_lib.tests import balloon_reports
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

task = json.loads(sys.argv[1])
conf = cfg.ConfigOpts()
conf([], default_config_files=[])
transport = rpc.get_transport(conf, task['bus'])
journal = store.Journal(task['journal'])
with open(task['key'], encoding='ascii') as file:
    fields = json.load(file)
key = HostKey(
    fields['host'], fields['serial'], bytes.fromhex(fields['key']))
overrides, jobs, resyncs = [], [], []
reporter = collector_session.Reporter(
    task['host'], journal,
    collector_rpc.CollectorClient(
        transport, 180, signing.Signer(
            signing.Mode.REQUIRED, task['host'], lambda: key,
            lambda: journal.outbox.epoch)),
    overrides.append, lambda: resyncs.append(1), jobs.append)
instance = task['instance']


def post(at, **parts):
    journal.outbox.post(lambda batch: messages.Report(
        task['host'], batch, at, usage=(base.sample(instance, at),),
        host_usage=(base.host_usage(at),), **parts))


times = [task['at'] + number for number in range(task['count'])]
if task['full']:
    at = times.pop(0)
    post(
        at,
        host_info=base.host_info(),
        instances=(messages.InstanceInfo(instance, 'vm', 4),),
        reservations=(
            base.reservation(instance, since=at, attested_at=at),),
        events=(base.event(at),),
        balloons=(balloon_reports.report(instance, since=at),),
        all_balloons=True,
        balloon_changes=(balloon_reports.change(
            instance, started_at=at),),
        error_profiles=(error_profiles.profile(
            [error_profiles.point(error_profiles.samples('tight', 1, 50))],
            uuid=str(uuid.uuid4())),),
        overhead_profiles=(overhead_profiles.profile(
            uuid=str(uuid.uuid4())),),
    )
print('started', flush=True)
for at in times:
    post(at)
    if task['deliver']:
        reporter.deliver()
        time.sleep(task['pause_s'])
if task['deliver']:
    reporter.fetch_overrides()
    reporter.fetch_jobs()
    reporter.deliver()
    assert journal.outbox.waiting() == 0
else:
    # The counterpart would be missed.
    assert journal.outbox.waiting() >= len(times)
print(json.dumps({
    'overrides': [one.to_dict() for one in overrides],
    'jobs': [one.to_dict() for one in jobs],
    'resyncs': len(resyncs),
}))
transport.cleanup()
journal.close()
"""


# The sums of samples, which the collector makes once a minute; and a
# comparison with Nova, which is not here.
_FOLD = """
import sys, time
from vsched_api.db import models, session
from vsched_api.operations import rollups, slowdowns
from vsched_api.tests import databases

database = session.Database(databases.configuration(sys.argv[1]))
rollups.fold(database, 1000)
slowdowns.learn(database, time.time(), 60)


def compare(work):
    host = work.query(models.Host).one()
    work.add(models.HostVerification(
        host_id=host.id, checked_at=time.time(), cpus=2, reported_mcpu=1900,
        contradictions=[{'code': 'vsched.host.overstated', 'detail': 'x'}]))


database.write(compare)
database.dispose()
"""


class LandedRelease:
    """The tests, on a database that the landed commit has made."""

    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: each starts a dozen
        # processes, one after the other.
        self.useFixture(fixtures.Timeout(_LIMIT_S, gentle=True))
        self.bus = rabbitmq.make_vhost(self)
        self.old = self.useFixture(releases.Release(releases.LANDED))
        self.new = releases.Present()
        self.services = self.useFixture(
            deployment.Deployment(
                self.bus,
                self.kind.make(self, migrated=False),
                options=_OPTIONS,
                parts=('collector', 'api'),
                release=self.old,
            )
        )
        self.instance = str(uuid.uuid4())
        # A collector corrects times that are to come.
        self.began_at = float(int(time.time()) - 10_000)
        self.taken = 0

    def begin_agent(
        self, tree, count=3, full=False, deliver=True, pause_s=0.0
    ):
        task = {
            'bus': self.bus,
            'journal': os.path.join(self.services.folder, 'agent.sqlite'),
            'key': self.services.host_key_file,
            'host': self.services.host,
            'instance': self.instance,
            'at': self.began_at + self.taken,
            'count': count,
            'full': full,
            'deliver': deliver,
            'pause_s': pause_s,
        }
        self.taken += count
        return tree.begin(_AGENT, json.dumps(task))

    def agent(self, tree, **options):
        """Run an agent; returns what the collector told it."""
        output = releases.result(self.begin_agent(tree, **options))
        return json.loads(output.splitlines()[-1])

    def replace(self, name):
        """Restart one service with the programs of this tree."""
        self.services.stop(name)
        self.services.release = None
        self.services.start(name)

    def fill(self):
        """Have the landed commit fill its database."""
        self.agent(self.old, full=True)
        self.change(6_000)
        for path, body in (
            ('/v1/balloons', {'target_vcpus': 2}),
            ('/v1/hosts/%s/profiles/error' % self.services.host, None),
        ):
            reply = self.services.request(
                'POST',
                path,
                json={}
                if body is None
                else {'instance_uuid': self.instance, **body},
            )
            self.assertEqual(202, reply.status_code, reply.text)

    def change(self, runtime_us):
        reply = self.services.request(
            'PATCH',
            '/v1/reservations/' + self.instance,
            json={'runtime_us': runtime_us},
        )
        self.assertEqual(202, reply.status_code, reply.text)

    def check_samples(self):
        self.assertEqual(
            [self.began_at + number for number in range(self.taken)],
            [
                outages.seconds(one['at'])
                for one in self.services.usage(self.instance)
            ],
        )

    def override_of(self, told):
        """The runtime that an agent was told."""
        (override,) = told['overrides'][-1]['overrides']
        return override['runtime_us']

    def test_no_row_of_a_filled_database_is_lost(self):
        self.fill()
        self.services.stop('collector')
        self.services.stop('api')
        self.old.run(_FOLD, self.services.connection)
        tables, before = databases.content(self.services.connection)
        # Rows that a test does not have are not seen to survive. What is
        # learnt of neighbours needs hours of them.
        self.assertEqual(
            {'slowdowns'},
            {name for name, found in before.items() if not found},
        )
        self.services.release = None
        self.services.manage('db', 'sync')
        self.assertEqual(
            before, databases.content(self.services.connection, tables)[1]
        )
        self.services.start('collector')
        self.services.start('api')
        self.check_samples()
        reservation = self.services.reservation(self.instance)
        self.assertEqual(6_000, reservation['runtime_us'])
        for path, count in (
            ('/v1/events?code=vsched.agent.started', 1),
            ('/v1/balloons', 1),
            ('/v1/jobs', 1),
        ):
            body = self.services.get(path)
            (found,) = (
                value for name, value in body.items() if name != 'links'
            )
            self.assertEqual(count, len(found), path)
        told = self.agent(self.new)
        self.assertEqual(6_000, self.override_of(told))
        self.assertEqual(1, len(told['jobs'][-1]['orders']))

    def test_tables_change_while_the_landed_release_works(self):
        self.fill()
        running = self.begin_agent(self.old, count=40, pause_s=0.1)
        releases.read_until(running, 'started')
        release = self.services.release
        self.services.release = None
        self.services.manage('db', 'sync')
        self.services.release = release
        releases.result(running)
        self.check_samples()
        # Its services go on, with the tables of this tree.
        self.change(5_000)
        self.assertEqual(5_000, self.override_of(self.agent(self.old)))
        self.services.stop('collector')
        self.services.start('collector')
        self.assertEqual(5_000, self.override_of(self.agent(self.new)))
        self.check_samples()

    def test_one_part_after_the_other(self):
        self.fill()
        self.services.release = None
        self.services.manage('db', 'sync')
        # An agent and a REST service of the landed commit, with a collector
        # of this tree.
        self.replace('collector')
        self.change(5_000)
        self.assertEqual(5_000, self.override_of(self.agent(self.old)))
        # The REST service follows.
        self.replace('api')
        self.change(4_000)
        self.assertEqual(4_000, self.override_of(self.agent(self.old)))
        # The agent follows; its predecessor left reports.
        self.agent(self.old, count=5, deliver=False)
        self.assertEqual(4_000, self.override_of(self.agent(self.new)))
        self.check_samples()
        # And back.
        self.agent(self.new, count=5, deliver=False)
        self.assertEqual(4_000, self.override_of(self.agent(self.old)))
        self.check_samples()

    def test_an_agent_that_was_upgraded_first(self):
        # The guide says otherwise; nothing is lost then.
        self.fill()
        self.agent(self.old, count=5, deliver=False)
        for _ in range(2):
            self.assertEqual(
                6_000, self.override_of(self.agent(self.new, full=True))
            )
        self.check_samples()

    def test_two_collectors_of_two_releases(self):
        self.fill()
        self.services.release = None
        self.services.manage('db', 'sync')
        self.addCleanup(self.services.stop, 'second collector')
        self.services.start('second collector')
        for number in range(4):
            told = self.agent(self.old if number % 2 else self.new, count=10)
            self.assertEqual(6_000, self.override_of(told))
        self.check_samples()
        for name in ('collector', 'second collector'):
            self.assertTrue(self.services.alive(name), name)


class TestLandedReleaseOnPostgreSQL(LandedRelease, base.BaseTestCase):
    """The tests on PostgreSQL."""

    kind = databases.PostgreSQL


class TestLandedReleaseOnMariaDB(LandedRelease, base.BaseTestCase):
    """The tests on MariaDB."""

    kind = databases.MariaDB
