# SPDX-License-Identifier: Apache-2.0

"""Hosts that are gone, and what a real Nova says of them."""

import time
from unittest import mock

from vsched_api.db import session as db
from vsched_api.operations import errors
from vsched_api.operations import host_deletion
from vsched_api.operations import hosts
from vsched_api.operations import reports
from vsched_api.operations import retention
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import messages
from vsched_standalone.tests.functional.nova import cloud

_DAY_S = 86_400.0


class TestAbsence(cloud.Cloud):
    def setUp(self):
        super().setUp()
        url = databases.SQLite.make(self)
        self.database = db.Database(database_options.configuration(url))
        self.addCleanup(self.database.dispose)
        self.conf = database_options.configuration(url)
        # The frame knows users by headers, which no plugin sends.
        self.conf.set_override('auth_type', 'admin_token', 'nova')
        patch = mock.patch.object(
            host_deletion.openstack_session,
            'connect',
            autospec=True,
            side_effect=lambda conf, group: self.nova_adapter,
        )
        patch.start()
        self.addCleanup(patch.stop)
        self.now = time.time()
        for name in ('node1', 'node2'):
            self.host(name, 1900)
            reports.Storage(self.database, now=lambda: self.now).store(
                messages.Report(name, 1, self.now, instances=())
            )
        self.days = self.conf.collector.absent_host_days

    def service(self, name):
        """What Nova says of a compute service."""
        (one,) = [
            one
            for one in self.api.get_services(binary='nova-compute')
            if one['host'] == name
        ]
        return one

    def known(self):
        return [
            one.name
            for one in hosts.page(self.database, 10, None, self.now, 30)
        ]

    def sweep(self):
        """As the collector's retention does."""
        return retention.purge(self.database, self.conf, self.now)['hosts']

    def test_an_absent_host_is_deleted_when_nova_agrees(self):
        # The node is switched off; Nova sees that it is.
        self.computes['node1'].stop()
        self.api.put_service(
            self.service('node1')['id'],
            {'forced_down': True, 'status': 'disabled'},
        )
        self.assertEqual('down', self.service('node1')['state'])
        self.now += (self.days + 1) * _DAY_S
        reports.Storage(self.database, now=lambda: self.now).store(
            messages.Report('node2', 2, self.now, instances=())
        )
        self.assertEqual(0, self.sweep())
        self.assertEqual(['node1', 'node2'], self.known())

        self.api.api_delete('/os-services/' + self.service('node1')['id'])
        # It takes our provider along with the compute's own.
        for name in ('node1', 'node1:vsched'):
            self.assertIsNone(self.claims.provider(name))
        # A user that Nova does not tell is not told that there is none.
        self.roles = 'reader,member'
        self.assertEqual(0, self.sweep())
        self.assertEqual(['node1', 'node2'], self.known())
        del self.roles
        self.assertEqual(1, self.sweep())
        self.assertEqual(['node2'], self.known())
        self.assertRaises(
            errors.NotFound, hosts.get, self.database, 'node1', self.now, 30
        )

    def test_before_its_time_it_is_kept_whatever_nova_says(self):
        self.api.api_delete('/os-services/' + self.service('node1')['id'])
        self.now += (self.days - 1) * _DAY_S
        self.assertEqual(0, self.sweep())
        self.now += 2 * _DAY_S
        self.assertEqual(1, self.sweep())
        # Of the other one Nova still has the service.
        self.assertEqual(['node2'], self.known())
