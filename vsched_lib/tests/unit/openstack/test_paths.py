# SPDX-License-Identifier: Apache-2.0

"""No text leaves its place in a path; requests go where they are meant to."""

import hypothesis
from hypothesis import strategies as st
from keystoneauth1 import adapter
from keystoneauth1 import session as sessions
from keystoneauth1 import token_endpoint
from oslotest import base

from vsched_lib.openstack import compute
from vsched_lib.openstack import paths
from vsched_lib.openstack import placement
from vsched_lib.tests import http_answers

EVIL = '../../allocations/1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f?x=#y'


class PathsTestCase(base.BaseTestCase):
    @hypothesis.given(
        st.lists(
            st.text(st.characters(codec='utf-8'), min_size=1).filter(
                lambda text: text not in ('.', '..')
            ),
            min_size=1,
        )
    )
    def test_as_many_segments_as_were_given(self, segments):
        found = paths.of(*segments)
        self.assertEqual(len(segments), found.count('/'))
        self.assertFalse(set('?#\\\r\n ') & set(found))

    def test_what_no_quoting_helps(self):
        for text in ('', '.', '..'):
            self.assertRaises(ValueError, paths.of, 'servers', text)


class RequestsTestCase(base.BaseTestCase):
    """With the token, over HTTP."""

    def setUp(self):
        super().setUp()
        seen = self.seen = []

        def answer(path, headers):
            seen.append(path)
            return (
                200,
                b'{"versions": [{"max_version": "1.39"}], '
                b'"allocations": {}, "traits": [], '
                b'"inventories": {}, "server": {}, "migrations": [], '
                b'"resource_provider_generation": 1}',
                {},
            )

        url = http_answers.serve(self, answer) + '/base'
        self.adapter = adapter.Adapter(
            sessions.Session(token_endpoint.Token(url, 'secret')),
            endpoint_override=url,
        )

    def test_a_provider_stays_in_its_place(self):
        claims = placement.Placement(self.adapter)
        claims.claims(EVIL, 'CUSTOM_X')
        claims.traits(EVIL)
        claims.inventories(EVIL)
        self.assertEqual(
            {
                '/base/',
                *(
                    '/base/resource_providers/..%2F..%2Fallocations'
                    '%2F1d4c5e1c-30b5-4a51-9e67-6ad57c5b4b4f'
                    '%3Fx%3D%23y/' + what
                    for what in ('allocations', 'traits', 'inventories')
                ),
            },
            set(self.seen),
        )

    def test_a_server_stays_in_its_place(self):
        compute.Compute(self.adapter).knows(EVIL)
        for path in self.seen:
            self.assertTrue(path.startswith('/base/servers/..%2F'), path)
