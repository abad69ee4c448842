# SPDX-License-Identifier: Apache-2.0

"""Clocks of hosts, and hosts that go, on SQLite; who Nova lacks."""

import json
import urllib.parse

from keystoneauth1 import loading

from vsched_api.operations import host_deletion
from vsched_api.tests import base
from vsched_api.tests.suites import host_lives
from vsched_lib.tests import http_answers


class TestClocks(host_lives.Clocks, base.TestCase):
    """The suite, on a file."""


class TestDeletion(host_lives.Deletion, base.TestCase):
    """The suite, on a file."""


class TestAbsence(base.TestCase):
    """Nova's API is a server of our own; it knows one compute service."""

    def setUp(self):
        super().setUp()
        asked = self.asked = []
        known = {'node2'}
        self.status = 200

        def answer(path, headers):
            url = urllib.parse.urlsplit(path)
            query = urllib.parse.parse_qs(url.query)
            asked.append((url.path, *query.get('host', ())))
            services = [
                {'host': name} for name in known if [name] == query.get('host')
            ]
            return self.status, json.dumps({'services': services}).encode(), {}

        url = http_answers.serve(self, answer)
        self.conf.set_override('auth_type', 'admin_token', 'nova')
        # As loading the plugin does, later.
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options('admin_token'), 'nova'
        )
        self.conf.set_override('endpoint', url, 'nova')
        self.conf.set_override('token', 'secret', 'nova')
        for name in ('node1', 'node2', 'node3'):
            (one,) = base.uuids(1)
            self.agent(name).first(one)

    def hosts(self):
        return [
            one['name'] for one in self.client().get('/v1/hosts').json['hosts']
        ]

    def sweep(self):
        return host_deletion.delete_absent(self.database, self.conf, self.now)

    def test_who_is_absent_and_unknown_to_nova(self):
        self.assertEqual(0, self.sweep())
        self.now += 29 * 86_400
        self.assertEqual(0, self.sweep())
        self.assertEqual([], self.asked)
        self.now += 2 * 86_400
        self.conf.set_override('absent_host_days', 0, 'collector')
        self.assertEqual(0, self.sweep())
        self.conf.clear_override('absent_host_days', 'collector')
        self.status = 500
        self.assertEqual(0, self.sweep())
        self.assertEqual(['node1', 'node2', 'node3'], self.hosts())
        self.status = 200
        self.assertEqual(2, self.sweep())
        self.assertEqual(['node2'], self.hosts())
        self.assertEqual(0, self.sweep())
