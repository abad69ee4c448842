# SPDX-License-Identifier: Apache-2.0

"""Requests to Nova, and its answers."""

from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import noauth
from keystoneauth1 import session
from oslotest import base
import requests
from requests_mock.contrib import fixture

from vsched_client import errors
from vsched_client import extra_specs as own
from vsched_client import nova
from vsched_client.tests import fake_nova
from vsched_lib.contract import placement
from vsched_lib.contract import spec_values

URL = 'http://nova.example/v2.1'


class NovaTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.api = self.useFixture(fixture.Fixture())
        self.nova = nova.Nova(
            adapter.Adapter(
                session.Session(noauth.NoAuth(URL)), service_type='compute'
            )
        )

    def flavor(self, **changes):
        return {
            'id': '1',
            'name': 'm1',
            'vcpus': 2,
            'extra_specs': {},
            **changes,
        }

    def test_requests(self):
        self.api.get(
            URL + '/flavors/detail', json={'flavors': [self.flavor()]}
        )
        flavor = self.nova.flavor('m1')
        self.assertEqual(('1', 'm1', 2, {}), flavor)
        self.assertEqual(['none'], self.api.last_request.qs['is_public'])
        self.assertEqual(
            'compute ' + nova.MICROVERSION,
            self.api.last_request.headers['OpenStack-API-Version'],
        )
        self.api.post(URL + '/flavors/1/os-extra_specs', json={})
        self.nova.set_extra_specs(flavor, {'a': 'b'})
        self.assertEqual(
            {'extra_specs': {'a': 'b'}}, self.api.last_request.json()
        )
        self.api.delete(
            URL + '/flavors/a%2Fb/os-extra_specs/vsched:x', status_code=404
        )
        self.nova.unset_extra_spec(flavor._replace(id='a/b'), 'vsched:x')

    def test_pages(self):
        names = ['f%04d' % number for number in range(1001)]
        fake = fake_nova.FakeNova(**{name: {} for name in names})
        self.assertEqual(
            names, [one.name for one in nova.Nova(fake).flavors()]
        )
        self.assertEqual(3, len(fake.requests))
        with mock.patch.object(nova, '_PAGE', 1001):
            self.assertEqual(1001, len(nova.Nova(fake).flavors()))

    def test_an_id_goes_before_a_name(self):
        self.api.get(
            URL + '/flavors/detail',
            json={
                'flavors': [
                    self.flavor(id='2', name='1'),
                    self.flavor(id='1', name='m1'),
                ]
            },
        )
        self.assertEqual('m1', self.nova.flavor('1').name)
        self.assertEqual('2', self.nova.flavor('2').id)
        self.assertRaises(errors.NovaError, self.nova.flavor, '3')

    def test_errors(self):
        path = URL + '/flavors/detail'
        for answer, text in (
            ({'json': {}}, 'is the endpoint that of nova?'),
            ({'text': 'hello'}, 'is the endpoint that of nova?'),
            ({'json': {'flavors': [{}]}}, 'has to allow it'),
            (
                {'json': {'flavors': [{'extra_specs': {}}]}},
                'is the endpoint that of nova?',
            ),
            (
                {
                    'status_code': 400,
                    'json': {'badRequest': {'message': 'no\n good'}},
                },
                'no good (HTTP 400)',
            ),
            ({'status_code': 500, 'reason': 'Broken'}, 'Broken (HTTP 500)'),
        ):
            self.api.get(path, **answer)
            problem = self.assertRaises(errors.NovaError, self.nova.flavors)
            self.assertIn(text, str(problem))
        self.api.get(path, exc=requests.exceptions.ConnectionError)
        problem = self.assertRaises(errors.NovaError, self.nova.flavors)
        self.assertIn('nova does not answer', str(problem))


class NamesTestCase(base.BaseTestCase):
    """The names are those of the service."""

    def test_names(self):
        self.assertEqual(spec_values.PREFIX, own.RESERVATION)
        for name in (
            'resources_VSCHED:' + placement.RESOURCE_CLASS,
            'trait_VSCHED:' + placement.backend_trait('deadline'),
            'vsched:weight',
        ):
            self.assertTrue(own.ours({name: '1'}), name)
        for name in ('group_policy', 'resources_VSCHED:VCPU', 'hw:vsched:x'):
            self.assertFalse(own.ours({name: '1'}), name)
            self.assertFalse(placement.ours(name), name)
