# SPDX-License-Identifier: Apache-2.0

"""Every command with tokens of a real keystone, and a real placement."""

import fixtures
from oslotest import base

from vsched_client import nova
from vsched_client.tests import entry_points
from vsched_client.tests import fake_nova
from vsched_client.tests.functional import api
from vsched_client.tests import scenario
from vsched_client.tests import shell
from vsched_lib.tests import openstack_services

#: Only a hang takes longer, in seconds.
_LIMIT_S = 1500


class TestKeystone(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: keystone and placement
        # start, and each command asks for a token.
        self.useFixture(fixtures.Timeout(_LIMIT_S, gentle=True))
        # Nova's tests in the same process leave handlers that print.
        self.useFixture(fixtures.FakeLogger())
        self.keystone = self.useFixture(openstack_services.Keystone(self))
        placement = self.useFixture(openstack_services.Placement(self))
        api.add_provider(placement)
        options = openstack_services.write_options(
            self,
            {
                'keystone_authtoken': {
                    'www_authenticate_uri': self.keystone.auth_url,
                    'interface': 'public',
                    **self.keystone.password,
                },
                'placement': placement.options,
            },
        )
        self.url = self.useFixture(api.Api(options, keystone=True)).url
        self.nova = fake_nova.FakeNova(
            **{scenario.FLAVOR: dict(scenario.FLAVOR_SPECS)}
        )

    def authentication(self, **changes):
        options = {
            'auth_type': 'password',
            **self.keystone.password,
            'region_name': 'RegionOne',
            **changes,
        }
        return [
            word
            for name, value in options.items()
            for word in ('--os-' + name.replace('_', '-'), value)
        ]

    def openstack(self, *words, **changes):
        return shell.run(*words, authentication=self.authentication(**changes))

    def test_each_command(self):
        # In JSON: other forms do not depend on how a user is authenticated.
        found = self.openstack('cpu', 'host', 'list')
        self.assertEqual(1, found.code)
        self.assertIn('no endpoint of service type vsched', found.err)
        self.keystone.add_service('vsched', self.url)
        self.keystone.add_service(
            'compute', api.serve(self, self.nova) + '/v2.1'
        )
        answered = scenario.run(
            lambda words: self.openstack(*words),
            api.RESERVED,
            api.PLAIN,
            placement=True,
            form='json',
        )
        self.assertEqual(sorted(entry_points.commands()), sorted(answered))
        # Flavors are changed by openstack's own client of Nova, with the
        # user's token.
        self.assertEqual(
            '1200',
            self.nova.specs[scenario.FLAVOR][
                'resources_VSCHED:CUSTOM_VSCHED_MCPU'
            ],
        )
        for _, _, version, token in self.nova.requests:
            self.assertEqual('compute ' + nova.MICROVERSION, version)
            self.assertTrue(token)
        found = self.openstack('cpu', 'host', 'list', password='wrong')
        self.assertEqual(1, found.code)
        self.assertNotIn('wrong', found.err)
