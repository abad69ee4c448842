# SPDX-License-Identifier: Apache-2.0


from oslo_config import cfg
from oslotest import base

from vsched_lib.openstack import session


class TestSession(base.BaseTestCase):
    def make(self, text):
        path = self.create_tempfiles([('nova', text)])[0]
        conf = cfg.ConfigOpts()
        session.register_opts(conf, 'placement', 'placement')
        conf(['--config-file', path], default_config_dirs=[])
        return conf

    def test_nothing_is_configured(self):
        conf = self.make('')
        self.assertFalse(session.configured(conf, 'placement'))
        problem = self.assertRaises(
            session.Unavailable, session.connect, conf, 'placement'
        )
        self.assertIn('[placement] auth_type is not set', str(problem))

    def test_without_keystone(self):
        conf = self.make(
            '[placement]\nauth_type = admin_token\n'
            'endpoint = http://127.0.0.1:1/\ntoken = admin\n'
        )
        self.assertTrue(session.configured(conf, 'placement'))
        found = session.connect(conf, 'placement')
        self.assertEqual('placement', found.service_type)
        self.assertEqual('http://127.0.0.1:1/', found.get_endpoint())

    def test_a_group_as_devstack_writes_it_for_nova(self):
        conf = self.make(
            '[placement]\nauth_type = password\ninterface = public\n'
            'auth_url = http://127.0.0.1:1/\nusername = vsched\n'
            'password = x\nuser_domain_name = Default\n'
            'project_name = service\nproject_domain_name = Default\n'
            'region_name = RegionOne\n'
        )
        found = session.connect(conf, 'placement')
        self.assertEqual('RegionOne', found.region_name)
        self.assertEqual(session.TIMEOUT_S, conf.placement.timeout)

    def test_a_plugin_nobody_has(self):
        conf = self.make('[placement]\nauth_type = magic\n')
        problem = self.assertRaises(
            session.Unavailable, session.connect, conf, 'placement'
        )
        self.assertIn('magic', str(problem))
