# SPDX-License-Identifier: Apache-2.0

"""``openstack cpu flavor`` on a real Nova with its own policies."""

from keystoneauth1 import adapter

from vsched_client.tests.functional import api
from vsched_client.tests import shell
from vsched_standalone.tests.functional.nova import cloud

CLAIM = 'resources_VSCHED:CUSTOM_VSCHED_MCPU'
DEADLINE = 'trait_VSCHED:CUSTOM_VSCHED_BACKEND_DEADLINE'
RUNTIME = 'vsched:cpu_runtime_us'


class TestFlavors(cloud.Cloud):
    def setUp(self):
        super().setUp()
        self.url = self.useFixture(api.Api()).url

    def openstack(self, *words, code=0):
        user = self.nova_adapter
        found = shell.run(
            'cpu',
            'flavor',
            *words,
            url=self.url,
            compute=adapter.Adapter(
                user.session,
                service_type='compute',
                endpoint_override=user.endpoint_override,
            ),
        )
        self.assertEqual(code, found.code, found)
        return found

    def json(self, *words, code=0):
        return self.openstack(*words, '-f', 'json', code=code).json

    def specs(self, name):
        return dict(self.found(name).extra_specs)

    def test_set(self):
        others = {'hw:mem_page_size': 'large', 'resources1:CUSTOM_GPU': '1'}
        name = self.flavor(vcpus=2, **others)
        found = self.json(
            *('set', name, '--share', '60%', '--period', '10ms'),
            *('--backend', 'deadline', '--property', 'net_rx_pps=1000'),
        )
        self.assertEqual(
            {
                **others,
                RUNTIME: '6000',
                'vsched:cpu_period_us': '10000',
                'vsched:backend': 'deadline',
                'vsched:net_rx_pps': '1000',
                CLAIM: '1200',
                DEADLINE: 'required',
                'group_policy': 'none',
            },
            self.specs(name),
        )
        self.assertEqual((1200, True), (found['claim_mcpu'], found['agrees']))
        shown = self.json('show', name)
        self.assertEqual(found, shown)
        self.openstack('set', name, '--backend', 'any', '--share', '30%')
        specs = self.specs(name)
        self.assertEqual(
            ('3000', '600', False),
            (specs[RUNTIME], specs[CLAIM], DEADLINE in specs),
        )
        self.openstack('set', name, '--no-property')
        # The other group needs a policy as well.
        self.assertEqual({**others, 'group_policy': 'none'}, self.specs(name))

    def test_what_is_refused_changes_nothing(self):
        name = self.flavor()
        for words, text in (
            (('--runtime', '30ms'), 'more than the period'),
            (('--mode', 'capped'), 'has no meaning without'),
            (('--property', 'cpu_runtime=6000'), 'is not known'),
        ):
            found = self.openstack('set', name, *words, code=1)
            self.assertIn(text, found.err)
        self.assertEqual({}, self.specs(name))

    def test_sync(self):
        wrong, right, invalid, other = (
            self.flavor(
                **{RUNTIME: '10000', CLAIM: '300', DEADLINE: 'required'}
            ),
            self.flavor(
                **{RUNTIME: '10000', CLAIM: '500', 'group_policy': 'none'}
            ),
            self.flavor(**{'vsched:cpu_period_us': '10000'}),
            self.flavor(**{'hw:mem_page_size': 'large'}),
        )
        before = {
            name: self.specs(name) for name in (wrong, right, invalid, other)
        }
        found = self.openstack('show', wrong, code=6)
        self.assertIn('%s is 300, must be 500' % CLAIM, found.out)
        changes = [
            {'flavor': wrong, 'extra_spec': name, 'before': old, 'after': new}
            for name, old, new in (
                (CLAIM, '300', '500'),
                ('group_policy', None, 'none'),
                (DEADLINE, 'required', None),
            )
        ]
        self.assertEqual(
            changes, self.json('sync', wrong, '--dry-run', code=6)
        )
        self.assertEqual(before[wrong], self.specs(wrong))
        found = self.openstack('sync', '--all', '-f', 'json', code=1)
        self.assertIn('flavor %s: ' % invalid, found.err)
        self.assertEqual(changes, found.json)
        self.assertEqual(
            {RUNTIME: '10000', CLAIM: '500', 'group_policy': 'none'},
            self.specs(wrong),
        )
        for name in (right, invalid, other):
            self.assertEqual(before[name], self.specs(name))
        self.assertEqual([], self.json('sync', wrong, right))

    def test_a_user_without_the_rights(self):
        name = self.flavor(**{RUNTIME: '6000'})
        admin = self.roles
        self.roles = 'service'
        for words in (
            ('show', name),
            ('sync', '--all'),
            ('set', name, '--weight', '7'),
        ):
            found = self.openstack(*words, code=1)
            self.assertIn('os-flavor-extra-specs:index', found.err)
        # Who may read and not write.
        self.roles = 'reader,member'
        self.openstack('show', name, code=6)
        for words in (('sync', name), ('set', name, '--weight', '7')):
            found = self.openstack(*words, code=1)
            self.assertIn('os-flavor-extra-specs:create', found.err)
        self.roles = admin
        self.assertEqual({RUNTIME: '6000'}, self.specs(name))

    def test_a_flavor_that_is_not_there(self):
        found = self.openstack('show', 'unknown', code=1)
        self.assertIn('there is no flavor unknown', found.err)
