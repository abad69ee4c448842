# SPDX-License-Identifier: Apache-2.0

"""``vsched-status upgrade check`` asks as nova-scheduler's filters do."""

import contextlib
import io
import json
import os

import fixtures
from oslo_config import cfg
from oslotest import base

from nova_filters import conf as filters_conf
from nova_filters import source
from vsched_api.cmd import status
from vsched_api.tests import databases
from vsched_lib.tests import openstack_services
from vsched_standalone.tests import private_services

_CHECK = 'What filters ask'
#: A service that answers at all does so sooner, in seconds.
_PATIENCE_S = 60
#: Only a hang takes longer, in seconds.
_LIMIT_S = 1500


class _Api(openstack_services.Service):
    """The REST service, which asks a keystone who is who."""

    distribution = 'vsched'
    application = 'vsched_api.wsgi.api:application'
    variable = 'OS_VSCHED_CONFIG_FILES'

    def __init__(self, test, keystone):
        super().__init__(test)
        self._connection = databases.SQLite.make(test)
        self._keystone = keystone

    def prepare(self):
        self.file = self.write(
            'vsched.conf',
            {
                'DEFAULT': {'transport_url': 'fake:/'},
                'database': {'connection': self._connection},
                'api': {'auth_strategy': 'keystone'},
                'keystone_authtoken': {
                    'www_authenticate_uri': self._keystone.auth_url,
                    'interface': 'public',
                    **self._keystone.password,
                },
            },
        )

    @property
    def _environment(self):
        return {
            **super()._environment,
            self.variable: os.path.join(self.folder, 'vsched.conf'),
        }


class TestEndpoint(base.BaseTestCase):
    """With a real keystone and a real REST service."""

    def setUp(self):
        super().setUp()
        # Longer than a test may take by default: keystone starts, and a dozen
        # checks ask for tokens.
        self.useFixture(fixtures.Timeout(_LIMIT_S, gentle=True))
        self.keystone = self.useFixture(openstack_services.Keystone(self))
        self.api = self.useFixture(_Api(self, self.keystone))
        self.user = self.make_user('nova', 'service')

    def make_user(self, name, role):
        """A user with one role in the project of services; its options."""
        identity = self.keystone.adapter('identity', self.keystone.auth_url)

        def made(kind, **values):
            found = identity.get(
                '/%ss' % kind, params={'name': values['name']}
            ).json()[kind + 's']
            return (
                found[0]
                if found
                else identity.post('/%ss' % kind, json={kind: values}).json()[
                    kind
                ]
            )['id']

        identity.put(
            '/projects/%s/users/%s/roles/%s'
            % (
                made('project', name='service', domain_id='default'),
                made(
                    'user', name=name, password='secret', domain_id='default'
                ),
                made('role', name=role),
            )
        )
        return {
            **self.keystone.password,
            'username': name,
            'project_name': 'service',
        }

    def check(self, options, filters='VschedReservationFilter'):
        file = openstack_services.write_options(
            self,
            {
                'filter_scheduler': {'enabled_filters': filters},
                'vsched': {'timeout': _PATIENCE_S, **options},
            },
        )
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status.main(
                [
                    '--config-file',
                    self.api.file,
                    '--nova-conf',
                    file,
                    'upgrade',
                    'check',
                    '--json',
                ]
            )
        (found,) = (
            one
            for one in json.loads(out.getvalue())['checks']
            if one['check'] == _CHECK
        )
        # The filters are of the same opinion.
        if filters:
            self.assertEqual(found['result'] == 0, self.reached(file))
        return found['result'], found['details'] or ''

    def reached(self, file):
        """Whether the filters' own client gets an answer."""
        conf = cfg.ConfigOpts()
        filters_conf.register_opts(conf)
        conf([], default_config_files=[file], default_config_dirs=[])
        try:
            return source.Source(conf).get()[0] is not None
        except source.Unavailable:
            return False

    def test_what_the_filters_would_meet(self):
        result, details = self.check(self.user)
        self.assertEqual(1, result)
        self.assertIn(
            'the catalogue of keystone has no endpoint of service '
            'type vsched, interface public',
            details,
        )
        self.keystone.add_service('vsched', self.api.endpoint)
        self.assertEqual((0, ''), self.check(self.user))
        self.assertEqual(
            (0, ''), self.check({'region_name': 'RegionOne', **self.user})
        )
        for options, said in (
            (
                {'region_name': 'RegionTwo'},
                'no endpoint of service type vsched, interface public, '
                'region RegionTwo',
            ),
            ({'valid_interfaces': 'internal'}, 'interface internal'),
            ({'service_type': 'cpu'}, 'service type cpu'),
            ({'service_name': 'other'}, 'service name other'),
            ({'password': 'wrong'}, 'authentication'),
            (
                {
                    'auth_url': 'http://127.0.0.1:%d/v3'
                    % (private_services.free_port())
                },
                '127.0.0.1',
            ),
            (
                {
                    'endpoint_override': 'http://127.0.0.1:%d'
                    % (private_services.free_port())
                },
                '127.0.0.1',
            ),
            (
                {'endpoint_override': self.api.endpoint + '/vsched'},
                'answers 404',
            ),
        ):
            result, details = self.check({**self.user, **options})
            self.assertEqual(1, result, said)
            self.assertIn(said, details)
            self.assertNotIn('secret', details)
        result, details = self.check(self.make_user('guest', 'member'))
        self.assertEqual(1, result)
        self.assertIn('answers 403: the user lacks the role service', details)
        result, details = self.check({})
        self.assertEqual(1, result)
        self.assertIn('[vsched] auth_type is not set', details)
        result, details = self.check({}, filters='')
        self.assertEqual(
            (0, 'not checked: VschedReservationFilter is not enabled'),
            (result, details),
        )


class TestOptions(base.BaseTestCase):
    """What is checked are the filters' options, read as they do."""

    def test_the_same_defaults(self):
        theirs, ours = cfg.ConfigOpts(), cfg.ConfigOpts()
        filters_conf.register_opts(theirs)
        status.register_filters(ours)
        for conf in (theirs, ours):
            conf([], default_config_files=[], default_config_dirs=[])
        own = {opt.dest for opt in filters_conf.OPTS}
        self.assertEqual(
            {
                name: value
                for name, value in theirs.vsched.items()
                if name not in own
            },
            dict(ours.vsched.items()),
        )
