# SPDX-License-Identifier: Apache-2.0

"""Flavors of a real Nova that keystone's catalogue points to."""

import os

import fixtures
from oslotest import base

from vsched_client import nova as own
from vsched_client.tests.functional import api
from vsched_client.tests import shell
from vsched_lib.tests import openstack_services
from vsched_standalone.tests.region import nova

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
FLAVOR = 'm1.reserved'


class TestCatalogue(base.BaseTestCase):
    """The user's token and the endpoint are those that keystone has."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.keystone = self.useFixture(openstack_services.Keystone(self))
        checked = {
            'keystone_authtoken': {
                'www_authenticate_uri': self.keystone.auth_url,
                'interface': 'public',
                **self.keystone.password,
            }
        }
        options = openstack_services.write_options(self, checked)
        served = self.useFixture(api.Api(options, keystone=True))
        self.keystone.add_service('vsched', served.url)
        self.keystone.add_service('compute', self.start_nova(checked))
        self.nova = self.keystone.adapter('compute')
        self.nova.default_microversion = own.MICROVERSION
        self.flavor_id = self.nova.post(
            '/flavors',
            json={
                'flavor': {'name': FLAVOR, 'vcpus': 2, 'ram': 64, 'disk': 0}
            },
        ).json()['flavor']['id']

    def start_nova(self, sections):
        """Start nova-api, which is all that flavors need; return its URL."""
        folder = self.useFixture(fixtures.TempDir()).path
        service = nova.Nova(
            self,
            {'DEFAULT': {'transport_url': 'fake:/'}, **sections},
            {
                name: 'sqlite:///' + os.path.join(folder, name)
                for name in ('api', 'cell0', 'cell1')
            },
        )
        service.at_once = True
        return self.useFixture(service).endpoint + '/v2.1'

    def openstack(self, *words, code=0):
        user = {
            'auth_type': 'password',
            **self.keystone.password,
            'region_name': 'RegionOne',
        }
        found = shell.run(
            'cpu',
            *words,
            authentication=[
                word
                for name, value in user.items()
                for word in ('--os-' + name.replace('_', '-'), value)
            ],
        )
        self.assertEqual(code, found.code, found)
        return found

    def specs(self):
        """Return the extra specs that Nova itself has."""
        answer = self.nova.get('/flavors/%s/os-extra_specs' % self.flavor_id)
        return answer.json()['extra_specs']

    def test_flavors(self):
        self.openstack(
            *('flavor', 'set', FLAVOR, '--share', '60%', '--period', '10ms')
        )
        expected = {
            'vsched:cpu_runtime_us': '6000',
            'vsched:cpu_period_us': '10000',
            CLAIM: '1200',
            'group_policy': 'none',
        }
        self.assertEqual(expected, self.specs())
        found = self.openstack('flavor', 'show', FLAVOR, '-f', 'json').json
        self.assertEqual(
            (self.flavor_id, True), (found['id'], found['agrees'])
        )
        # By its ID, too.
        self.openstack('flavor', 'show', self.flavor_id)
        found = self.openstack(
            *('evaluation', 'create', '--flavor', FLAVOR, '-f', 'json')
        ).json
        self.assertEqual(1200, found[0]['demand_mcpu'])
        self.nova.post(
            '/flavors/%s/os-extra_specs' % self.flavor_id,
            json={'extra_specs': {CLAIM: '300'}},
        )
        self.openstack('flavor', 'show', FLAVOR, code=6)
        self.openstack('flavor', 'sync', '--all')
        self.assertEqual(expected, self.specs())
        self.openstack('flavor', 'set', FLAVOR, '--no-property')
        self.assertEqual({}, self.specs())
