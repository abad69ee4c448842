# SPDX-License-Identifier: Apache-2.0

"""What stands between a simulated compute and its agent."""

import json

import fixtures
from oslotest import base

from vsched_standalone.tests.region import domains
from vsched_standalone.tests.region import networks


class TestFolder(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        path = self.useFixture(fixtures.TempDir()).join('domains')
        self.written = domains.Folder(path)
        self.read = domains.Folder(path)

    def test_what_begins_runs_until_it_ends(self):
        self.assertEqual({}, self.read.running())
        self.written.begin('a', 'one', 2, {'vsched:cpu_runtime_us': '4000'})
        self.written.begin('b', 'two', 1, {})
        found = self.read.running()
        self.assertEqual({'a', 'b'}, set(found))
        self.assertEqual(
            ('one', 2, {'vsched:cpu_runtime_us': '4000'}),
            (found['a'].name, found['a'].vcpus, found['a'].extra_specs),
        )
        self.written.end('a')
        self.assertEqual({'b'}, set(self.read.running()))

    def test_a_new_start_is_another_one(self):
        self.written.begin('a', 'one', 1, {})
        first = self.read.running()['a']
        self.written.begin('a', 'one', 1, {})
        self.assertEqual(first, self.read.running()['a'])
        self.written.end('a')
        self.written.begin('a', 'one', 1, {})
        self.assertNotEqual(first.start, self.read.running()['a'].start)

    def test_what_does_not_run_may_end(self):
        self.written.end('a')
        self.assertEqual({}, self.read.running())


class TestNetworks(base.BaseTestCase):
    def ask(self, path, method='GET'):
        said = []
        body = networks.application(
            {'PATH_INFO': path, 'REQUEST_METHOD': method},
            lambda status, headers: said.append(status),
        )
        return said[0], json.loads(b''.join(body))

    def test_there_are_none(self):
        self.assertEqual(('200 OK', {'ports': []}), self.ask('/v2.0/ports'))
        self.assertEqual(
            ('200 OK', {'security_groups': []}),
            self.ask('/v2.0/security-groups'),
        )

    def test_none_can_be_made_or_found(self):
        self.assertEqual('404 Not Found', self.ask('/v2.0/ports', 'POST')[0])
        self.assertEqual('404 Not Found', self.ask('/v2.0/ports/a')[0])
