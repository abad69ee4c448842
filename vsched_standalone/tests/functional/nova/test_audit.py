# SPDX-License-Identifier: Apache-2.0

"""``vsched-manage audit`` on a real Nova and placement."""

import contextlib
import io
import time
from unittest import mock
import uuid as uuids

from vsched_api.cmd import audit as audit_command
from vsched_api.cmd import manage
from vsched_api.db import session as db
from vsched_api.operations import reports
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_lib.tests import openstack_services
from vsched_standalone.tests.functional.nova import test_claims

#: From when on a host counts as down, in seconds; an audit takes a part of it,
#: on a busy machine several.
IMPATIENT_S = 15
#: Only a hang takes longer.
PATIENCE_S = 180


class TestAudit(test_claims.Claiming):
    def setUp(self):
        super().setUp()
        url = databases.SQLite.make(self)
        self.file, self.impatient = (
            openstack_services.write_options(
                self,
                {
                    'database': {'connection': url},
                    'api': {'host_down_after_s': down_after_s},
                },
            )
            for down_after_s in (300, IMPATIENT_S)
        )
        self.database = db.Database(database_options.configuration(url))
        self.addCleanup(self.database.dispose)
        self.batch = 0
        self.with_nova = True
        for name, fake in (
            ('client', lambda conf: self.claims),
            ('_nova', lambda conf: self.nova if self.with_nova else None),
        ):
            patch = mock.patch.object(
                audit_command, name, autospec=True, side_effect=fake
            )
            patch.start()
            self.addCleanup(patch.stop)
        self.own = self.host('node1', 1900)

    def report(self, *running, held_us=6_000, state='applied', bare=()):
        """The agent of node1 tells of these, at 6 ms every 20 ms.

        :param bare: likewise, but without any reservation.
        """
        self.batch += 1
        reports.Storage(self.database).store(
            messages.Report(
                'node1',
                self.batch,
                float(self.batch),
                host_info=messages.HostInfo(
                    '1',
                    '6',
                    'b',
                    'qemu',
                    2,
                    4000,
                    1900,
                    300,
                    0,
                    placement=names.PlacementInfo(
                        names.PlacementState.SYNCED, '', self.own, 1900, 300
                    ),
                ),
                instances=tuple(
                    messages.InstanceInfo(one, 'vm', 1)
                    for one in (*running, *bare)
                ),
                reservations=tuple(
                    messages.ReservationReport(
                        one,
                        messages.Source.METADATA,
                        messages.State(state),
                        1,
                        1.0,
                        runtime_us=6_000,
                        period_us=20_000,
                        mode='capped',
                        enforced_backend='deadline' if held_us else None,
                        enforced_runtime_us=held_us,
                        enforced_period_us=20_000,
                    )
                    for one in running
                ),
            )
        )

    def audit(self, *words, file=None):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = manage.main(
                ['--config-file', file or self.file, 'audit', *words]
            )
        return status, out.getvalue(), err.getvalue()

    def audited_until(self, text, **report):
        """Audit until something is found.

        :param report: what its agent keeps telling; it is dead when empty.
        """
        give_up = time.monotonic() + PATIENCE_S
        while True:
            if report:
                self.report(
                    *report.get('running', ()), bare=report.get('bare', ())
                )
            status, out, _ = self.audit(file=self.impatient)
            if text in out or time.monotonic() > give_up:
                self.assertEqual(1, status)
                self.assertIn(text, out)
                return out
            time.sleep(0.2)

    def leftover(self):
        """A claim of nobody; its consumer."""
        consumer = str(uuids.uuid4())
        self.placement.put(
            '/allocations/' + consumer,
            {
                'allocations': {
                    self.own: {'resources': {names.RESOURCE_CLASS: 100}}
                },
                'project_id': 'p',
                'user_id': 'u',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
            version='1.38',
        )
        self.assertIn(consumer, self.claimed(self.own))
        return consumer

    def test_agreement(self):
        server = self.active(self.promising(6_000))['id']
        self.report(server)
        self.assertEqual((0, '', ''), self.audit())
        # A margin is held beyond what is promised.
        self.report(server, held_us=6_600)
        self.assertEqual(0, self.audit('node1')[0])

    def test_an_agent_that_tells_of_what_nova_has_elsewhere(self):
        invented = str(uuids.uuid4())
        self.report(invented)
        status, out, _ = self.audit()
        self.assertEqual(1, status)
        self.assertIn(
            'node1: foreign: %s its agent reports that 300 mcpu' % invented,
            out,
        )
        self.report()
        self.assertNotIn('foreign', self.audit()[1])

    def test_a_dead_agent(self):
        """A server that was booted there is held by nobody."""
        self.report()
        server = self.active(self.promising(6_000))['id']
        # Nova has only just finished: the agent has time to tell of it.
        self.assertEqual((0, '', ''), self.audit())
        self.audited_until('not_reporting')
        out = self.audited_until(
            'node1: not_enforced: %s ACTIVE in Nova, '
            'claims 300 mcpu, and its agent does not '
            'tell of it' % server
        )
        self.assertRegex(
            out,
            'node1: not_reporting: its agent last '
            'reported [0-9]+ s ago, more than %d s' % IMPATIENT_S,
        )

    def test_a_live_agent_that_does_not_tell(self):
        flavor = self.flavor(**{'vsched:cpu_runtime_us': '6000'})
        for kind in (self.promising(6_000), flavor):
            server = self.active(kind)['id']
            for told in ({'bare': [server]}, {'running': []}):
                out = self.audited_until(
                    'not_enforced: %s ACTIVE in Nova' % server, **told
                )
                self.assertNotIn('not_reporting', out)
            self._delete_server({'id': server})

    def test_a_node_that_no_agent_has_reported_from(self):
        """Its provider outlives the agent, and so does what claims of it."""
        self.report()
        self.start_compute('plain')
        other = self.host('node2', 1900)
        server = self.active(self.promising(6_000), host='node2')['id']
        self.assertEqual({server: 300}, self.claimed(other))
        plain = self.flavor(**{'vsched:cpu_runtime_us': '6000'})
        unclaimed = self.active(plain, host='plain')['id']
        self.active(self.flavor(), host='plain')
        status, out, _ = self.audit()
        self.assertEqual(1, status)
        self.assertEqual(
            'node2: not_reporting: no agent has ever reported from it, its '
            'provider in placement offers 1900 mcpu, and 0 servers there '
            'have a reservation\n',
            out,
        )
        # The one that was booted last.
        out = self.audited_until(
            'plain: not_enforced: %s ACTIVE in Nova, its flavor has a '
            'reservation' % unclaimed,
            running=(),
        )
        self.assertIn(
            'node2: not_enforced: %s ACTIVE in Nova, claims 300 mcpu, and no '
            'agent has ever reported' % server,
            out,
        )
        self.assertIn('offers 0 mcpu, and 1 servers there', out)
        self.assertNotIn('node1', out)
        # Hosts that are named are all that is looked at.
        self.assertEqual((0, '', ''), self.audit('node1'))

    def test_servers_that_promise_nothing(self):
        server = self.active(self.flavor())['id']
        time.sleep(IMPATIENT_S + 0.5)
        self.report(bare=[server])
        self.assertEqual((0, '', ''), self.audit(file=self.impatient))

    def test_a_user_that_does_not_see_all_servers(self):
        """A server of others must not look like one that is gone."""
        server = self.active(self.promising(6_000))['id']
        self.report()
        for roles in ('service', 'reader,member', 'manager,member,reader'):
            self.roles = roles
            status, out, err = self.audit('--fix')
            self.assertEqual((2, ''), (status, out))
            self.assertIn('servers:detail:get_all_tenants', err)
        self.assertEqual({server: 300}, self.claimed(self.own))

    def test_a_stopped_server_keeps_its_claim(self):
        server = self.active(self.promising(6_000))
        self.api.post_server_action(server['id'], {'os-stop': None})
        self._wait_for_state_change(server, 'SHUTOFF')
        self.report()
        self.assertEqual((0, '', ''), self.audit('--fix'))
        # However long ago it was stopped: it is not to be in force.
        time.sleep(IMPATIENT_S + 0.5)
        self.report()
        self.assertEqual((0, '', ''), self.audit(file=self.impatient))
        self.assertEqual({server['id']: 300}, self.claimed(self.own))
        self.with_nova = False
        status, out, _ = self.audit()
        self.assertEqual(1, status)
        self.assertIn('node1: unlisted: %s claims 300' % server['id'], out)

    def test_a_moving_server_keeps_its_claim(self):
        self.start_compute('node2')
        self.offer('node2', 1900)
        server = self.active(self.promising(6_000), host='node1')
        self.report(server['id'])
        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.report()
        held = self.claimed(self.own)
        self.assertEqual(1, len(held))
        self.assertNotIn(server['id'], held)
        self.assertEqual(0, self.audit('--fix', 'node1')[0])
        self.assertEqual(held, self.claimed(self.own))

    def test_a_leftover_is_found_and_healed(self):
        server = self.active(self.promising(6_000))['id']
        self.report(server)
        consumer = self.leftover()
        status, out, _ = self.audit()
        self.assertEqual(
            (
                1,
                'node1: leftover: %s claims 100 mcpu, and Nova '
                'has no such server\n' % consumer,
            ),
            (status, out),
        )
        status, out, _ = self.audit('--fix')
        self.assertEqual(0, status)
        self.assertIn('taken away', out)
        self.assertEqual({server: 300}, self.claimed(self.own))
        self.assertEqual((0, '', ''), self.audit())

    def test_nothing_is_healed_without_nova(self):
        self.report()
        consumer = self.leftover()
        self.with_nova = False
        status, _, err = self.audit('--fix')
        self.assertEqual(2, status)
        self.assertIn('set [nova] auth_type', err)
        self.assertEqual({consumer: 100}, self.claimed(self.own))

    def test_what_the_kernel_does_not_hold(self):
        server = self.active(self.promising(6_000))['id']
        self.report(server, held_us=None, state='refused')
        status, out, _ = self.audit()
        self.assertEqual(
            (
                1,
                'node1: not_held: %s promised 300 mcpu, the '
                'kernel holds 0 (refused)\n' % server,
            ),
            (status, out),
        )

    def test_a_claim_of_another_size(self):
        server = self.active(self.promising(8_000))['id']
        self.report(server)
        status, out, _ = self.audit()
        self.assertEqual(
            (
                1,
                'node1: claim_differs: %s claims 400 mcpu, '
                'promised 300\n' % server,
            ),
            (status, out),
        )

    def test_a_host_nobody_knows(self):
        status, _, err = self.audit('node9')
        self.assertEqual(2, status)
        self.assertIn('node9', err)
