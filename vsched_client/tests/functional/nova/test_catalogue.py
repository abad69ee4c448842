# SPDX-License-Identifier: Apache-2.0

"""Flavors of a real Nova that keystone's catalogue points to."""

import os
import pathlib
import shlex
import subprocess

import fixtures
from oslotest import base

from vsched_client import nova as own
from vsched_client.tests import entry_points
from vsched_client.tests.functional import api
from vsched_client.tests import shell
from vsched_lib.tests import openstack_services
from vsched_standalone.tests import commands
from vsched_standalone.tests import documentation
from vsched_standalone.tests.region import nova

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
#: In the guide as well.
FLAVOR = 'm1.reserved'
GUIDE = 'install/controllers.rst'
#: Only a hang takes longer, in seconds.
_LIMIT_S = 1500


class TestCatalogue(base.BaseTestCase):
    """The user's token and the endpoint are those that keystone has."""

    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: keystone and Nova start, and
        # each command asks both.
        self.useFixture(fixtures.Timeout(_LIMIT_S, gentle=True))
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

    @property
    def user(self):
        """Return the options of openstack for the administrator."""
        return {**self.keystone.password, 'region_name': 'RegionOne'}

    def openstack(self, *words, code=0):
        found = shell.run(
            'cpu',
            *words,
            authentication=[
                word
                for name, value in self.user.items()
                for word in ('--os-' + name.replace('_', '-'), value)
            ],
        )
        self.assertEqual(code, found.code, found)
        return found

    def json(self, *words, code=0):
        return self.openstack(*words, '-f', 'json', code=code).json

    def flavor(self):
        """Return what Nova itself has of the flavor."""
        answer = self.nova.get('/flavors/detail').json()
        (found,) = (one for one in answer['flavors'] if one['name'] == FLAVOR)
        return found

    def specs(self):
        return self.flavor()['extra_specs']

    def test_flavors(self):
        flavor_id = self.nova.post(
            '/flavors',
            json={
                'flavor': {'name': FLAVOR, 'vcpus': 2, 'ram': 64, 'disk': 0}
            },
        ).json()['flavor']['id']
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
        found = self.json('flavor', 'show', FLAVOR)
        self.assertEqual((flavor_id, True), (found['id'], found['agrees']))
        # By its ID, too.
        self.openstack('flavor', 'show', flavor_id)
        found = self.json('evaluation', 'create', '--flavor', FLAVOR)
        self.assertEqual(1200, found[0]['demand_mcpu'])
        self.nova.post(
            '/flavors/%s/os-extra_specs' % flavor_id,
            json={'extra_specs': {CLAIM: '300'}},
        )
        self.openstack('flavor', 'show', FLAVOR, code=6)
        self.openstack('flavor', 'sync', '--all')
        self.assertEqual(expected, self.specs())
        self.openstack('flavor', 'set', FLAVOR, '--no-property')
        self.assertEqual({}, self.specs())

    def administrator(self):
        """Return the environment of an administrator on a controller.

        Its commands are of this tree: openstack, with the plugin, and
        vsched-manage, whose service's user may change flavors.
        """
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        environment = entry_points.install(str(folder))
        options = openstack_services.write_options(
            self, {'nova': {**self.user, 'valid_interfaces': 'public'}}
        )
        # What has the plugin only is no installation of the service.
        manage = (
            *('env', 'PYTHONPATH=%s' % entry_points.ROOT),
            *commands.python(commands.MANAGE, options),
        )
        binaries = folder / 'bin'
        binaries.mkdir()
        for name, words in (
            ('openstack', entry_points.command_line()),
            ('vsched-manage', manage),
        ):
            path = binaries / name
            path.write_text('#!/bin/sh\nexec %s "$@"\n' % shlex.join(words))
            path.chmod(0o755)
        return {
            **environment,
            'PATH': '%s:%s' % (binaries, environment['PATH']),
            **{'OS_' + name.upper(): one for name, one in self.user.items()},
        }

    def run_guide(self, name, environment):
        """Run a block of the guide; return its output."""
        done = subprocess.run(
            ('bash', '-e', '-c', documentation.block(GUIDE, name)),
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(0, done.returncode, done)
        return done.stdout

    def test_the_first_flavor_of_the_guide(self):
        administrator = self.administrator()
        self.run_guide('first-flavor', administrator)
        found = self.flavor()
        self.assertEqual(
            (2, 2048, 20), (found['vcpus'], found['ram'], found['disk'])
        )
        reserved = {
            'vsched:cpu_runtime_us': '12000',
            'vsched:cpu_period_us': '20000',
        }
        self.assertEqual(reserved, found['extra_specs'])
        # It claims nothing so far, of 60 % of two CPUs.
        claim = {CLAIM: '1200', 'group_policy': 'none'}
        found = self.json('flavor', 'show', FLAVOR, code=6)
        self.assertEqual(
            (1200, {CLAIM: '1200'}, False),
            (found['claim_mcpu'], found['claim_extra_specs'], found['agrees']),
        )
        missing = self.json('flavor', 'sync', FLAVOR, '--dry-run', code=6)
        self.assertCountEqual(
            [
                {
                    'flavor': FLAVOR,
                    'extra_spec': name,
                    'before': None,
                    'after': text,
                }
                for name, text in claim.items()
            ],
            missing,
        )
        self.assertEqual(reserved, self.specs())
        printed = self.run_guide('first-flavor-claim', administrator)
        self.assertIn('%s: %s = 1200\n' % (FLAVOR, CLAIM), printed)
        self.assertEqual({**reserved, **claim}, self.specs())
        found = self.json('flavor', 'show', FLAVOR)
        self.assertEqual(
            (1200, True, []),
            (found['claim_mcpu'], found['agrees'], found['differences']),
        )
        self.assertEqual([], self.json('flavor', 'sync', FLAVOR))
