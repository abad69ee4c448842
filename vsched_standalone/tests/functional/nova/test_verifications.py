# SPDX-License-Identifier: Apache-2.0

"""What hosts report, compared with a real Nova and a real placement."""

import time
from unittest import mock

from vsched_api.db import session as db
from vsched_api.operations import events
from vsched_api.operations import hosts
from vsched_api.operations import instances
from vsched_api.operations import reports
from vsched_api.operations import verifications
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import placement as names
from vsched_standalone.tests.functional.nova import test_claims

#: CPUs of a compute of Nova's fake driver.
CPUS = 10


class TestVerifications(test_claims.Claiming):
    def setUp(self):
        super().setUp()
        url = databases.SQLite.make(self)
        self.conf = database_options.configuration(url)
        self.database = db.Database(self.conf)
        self.addCleanup(self.database.dispose)
        # The frame knows users by headers, which no plugin sends.
        for group in ('nova', 'placement'):
            self.conf.set_override('auth_type', 'admin_token', group)
        patch = mock.patch.object(
            verifications.openstack_session,
            'connect',
            autospec=True,
            side_effect=lambda conf, group: (
                self.nova_adapter if group == 'nova' else self.claims._adapter
            ),
        )
        patch.start()
        self.addCleanup(patch.stop)
        self.now = time.time()
        self.batches = {}
        self.own = {name: self.host(name, 1900) for name in ('node1', 'node2')}

    def report(self, name, *listed, **info):
        number = self.batches[name] = self.batches.get(name, 0) + 1
        reports.Storage(self.database, now=lambda: self.now).store(
            messages.Report(
                name,
                number,
                self.now,
                host_info=base.host_info(
                    **{
                        'cpus': CPUS,
                        'placement': names.PlacementInfo(
                            names.PlacementState.SYNCED,
                            '',
                            self.own.get(name),
                            1900,
                            0,
                        ),
                        **info,
                    }
                ),
                instances=tuple(
                    messages.InstanceInfo(one, 'vm', 1) for one in listed
                ),
            )
        )

    def verify(self):
        self.now += self.conf.collector.verification_interval_s + 1
        for name, number in self.batches.items():
            self.batches[name] = number + 1
            reports.Storage(self.database, now=lambda: self.now).store(
                messages.Report(name, number + 1, self.now)
            )
        return verifications.verify(self.database, self.conf, self.now)

    def codes(self, name):
        found = hosts.get(self.database, name, self.now, 30)
        return [code for code, _ in found.verification.contradictions]

    def capacity(self, name):
        return hosts.get(self.database, name, self.now, 30).info.capacity_mcpu

    def test_what_is_true_is_not_contradicted(self):
        server = self.active(self.promising(6_000), host='node1')['id']
        self.report('node1', server)
        self.report('node2')
        self.assertEqual(2, self.verify())
        self.assertEqual(([], []), (self.codes('node1'), self.codes('node2')))
        found = hosts.get(self.database, 'node1', self.now, 30)
        self.assertEqual(CPUS, found.verification.cpus)
        self.assertEqual([], events.page(self.database, 10))

    def test_capacity_beyond_the_cpus(self):
        self.report('node1', cpus=1_000, capacity_mcpu=900_000)
        self.report('node2')
        self.assertEqual(2, self.verify())
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes('node1'))
        self.assertEqual(1_000 * CPUS, self.capacity('node1'))
        self.report('node1', cpus=1_000, capacity_mcpu=900_000)
        self.assertEqual(1_000 * CPUS, self.capacity('node1'))
        self.assertEqual(
            ([], 1800), (self.codes('node2'), self.capacity('node2'))
        )

    def test_an_inventory_beyond_the_cpus(self):
        self.offer('node1', 1_000 * CPUS + 1)
        self.report('node1')
        self.verify()
        self.assertEqual([errors.Code.HOST_OVERSTATED], self.codes('node1'))

    def test_a_host_without_a_compute_service(self):
        self.report('node9', placement=None)
        self.report('node1')
        self.assertEqual(2, self.verify())
        self.assertEqual([errors.Code.HOST_NOT_IN_NOVA], self.codes('node9'))
        self.assertEqual([], self.codes('node1'))
        (found,) = events.page(self.database, 10)
        self.assertEqual(
            ('node9', errors.Code.HOST_NOT_IN_NOVA), (found.host, found.code)
        )

    def test_the_provider_of_another_host(self):
        self.own['node2'] = self.own['node1']
        self.report('node2')
        self.verify()
        self.assertEqual(
            [errors.Code.HOST_WRONG_PROVIDER], self.codes('node2')
        )

    def test_a_server_of_another_host(self):
        server = self.active(self.promising(6_000), host='node1')['id']
        self.report('node1', server)
        self.now += 1
        self.report('node2', server)
        where = lambda: instances.get(self.database, server).host  # noqa: E731
        self.assertEqual('node2', where())
        self.assertEqual(2, self.verify())
        self.assertEqual(
            ([], [errors.Code.INSTANCE_FOREIGN]),
            (self.codes('node1'), self.codes('node2')),
        )
        self.assertEqual('node1', where())

    def test_a_server_that_moves(self):
        server = self.active(self.promising(6_000), host='node1')
        self.api.post_server_action(server['id'], {'migrate': None})
        self._wait_for_state_change(server, 'VERIFY_RESIZE')
        self.report('node1', server['id'])
        self.report('node2', server['id'])
        self.assertEqual(2, self.verify())
        self.assertEqual(([], []), (self.codes('node1'), self.codes('node2')))
        self.api.post_server_action(server['id'], {'confirmResize': None})
        self._wait_for_state_change(server, 'ACTIVE')
        self.assertEqual(2, self.verify())
        self.assertEqual(
            ([errors.Code.INSTANCE_FOREIGN], []),
            (self.codes('node1'), self.codes('node2')),
        )

    def test_a_user_that_nova_does_not_let_see_all(self):
        self.report('node9')
        self.roles = 'reader,member'
        self.assertEqual(0, self.verify())
        self.assertIsNone(
            hosts.get(self.database, 'node9', self.now, 30).verification
        )
