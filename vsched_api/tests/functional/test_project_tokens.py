# SPDX-License-Identifier: Apache-2.0

"""What users of a real keystone read, each in the project of its servers.

The tokens are keystone's, keystonemiddleware validates them there, and the
policies are those of the shipped file.
"""

import atexit
import functools
import pathlib
import re
import uuid as uuids

from keystoneauth1.identity import v3
from keystoneauth1 import session as sessions

from vsched_api import policies
from vsched_api.tests import base
from vsched_api.tests import database_options
from vsched_api.tests import databases
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.tests import openstack_services

ROOT = pathlib.Path(__file__).resolve().parents[3]
POLICIES = ROOT / 'etc' / 'vsched' / 'policy.yaml.sample'

PASSWORD = 'secret'
SAMPLES = 3

#: What concerns a server, and the noun that it answers with.
READS = (
    ('/v1/instances/%s', 'instance'),
    ('/v1/reservations/%s', 'reservation'),
    ('/v1/usage?instance_uuid=%s', 'usage'),
    ('/v1/usage?resolution=minute&instance_uuid=%s', 'usage'),
)
#: What concerns hosts, or all projects.
OPERATORS = (
    '/v1/hosts',
    '/v1/hosts/' + base.HOST,
    '/v1/events',
    '/v1/jobs',
    '/v1/snapshot',
    '/v1/usage?of=hosts',
    '/v1/balloons/history',
    '/metrics',
)


def writes(uuid):
    """Return all requests that change something: method, path and body."""
    return (
        ('PATCH', '/v1/reservations/' + uuid, {'runtime_us': 6_000}),
        ('DELETE', '/v1/reservations/' + uuid, None),
        (
            'POST',
            '/v1/reservations',
            {'instance_uuid': uuid, 'runtime_us': 6_000},
        ),
        ('PATCH', '/v1/balloons/' + uuid, {'target_vcpus': 1}),
        ('DELETE', '/v1/balloons/' + uuid, None),
        ('POST', '/v1/balloons', {'instance_uuid': uuid, 'target_vcpus': 1}),
        ('POST', '/v1/hosts/%s/profiles/error' % base.HOST, {}),
        ('POST', '/v1/hosts/%s/profiles/overhead' % base.HOST, {}),
        ('DELETE', '/v1/hosts/%s?force=true' % base.HOST, None),
    )


class Identities:
    """Users and projects of a keystone.

    :param keystone: a running one.
    """

    def __init__(self, keystone):
        self._auth_url = keystone.auth_url
        self._admin = keystone.adapter('identity', keystone.auth_url)
        self._roles = {
            one['name']: one['id']
            for one in self._admin.get('/roles').json()['roles']
        }

    def project(self):
        """Create a project; return its ID."""
        return self._create('project')

    def user(self):
        """Create a user; return its ID."""
        return self._create('user', password=PASSWORD)

    def _create(self, noun, **fields):
        answer = self._admin.post(
            '/%ss' % noun,
            json={
                noun: {
                    'name': uuids.uuid4().hex,
                    'domain_id': 'default',
                    **fields,
                }
            },
        )
        return answer.json()[noun]['id']

    def assign(self, user, role, project=None):
        """Give a user a role, on the system if there is no project."""
        self._admin.put(self._assignment(user, role, project))

    def withdraw(self, user, role, project):
        """Take a role from a user."""
        self._admin.delete(self._assignment(user, role, project))

    def _assignment(self, user, role, project):
        return '/%s/users/%s/roles/%s' % (
            'system' if project is None else 'projects/' + project,
            user,
            self._roles[role],
        )

    def token(self, user, **scope):
        """Return the headers of a request with a new token of a user."""
        auth = v3.Password(
            self._auth_url, user_id=user, password=PASSWORD, **scope
        )
        session = sessions.Session(auth=auth)
        return {'X-Auth-Token': session.get_token()}

    def revoke(self, headers):
        """Revoke a token."""
        self._admin.delete(
            '/auth/tokens',
            headers={'X-Subject-Token': headers['X-Auth-Token']},
        )


@functools.cache
def shared_keystone(test_class):
    """Return a keystone for all tests of this process; it ends with that."""
    service = openstack_services.Keystone(test_class)
    service.setUp()
    atexit.register(service.cleanUp)
    return service


class TokenCase(base.TestCase):
    """A service that checks tokens, with a server of each of two projects."""

    def policies(self):
        """Return the text of the policy file."""
        return POLICIES.read_text(encoding='utf-8')

    def setUp(self):
        super().setUp()
        keystone = shared_keystone(TokenCase)
        self.identities = Identities(keystone)
        self.project, self.other = (self.identities.project() for _ in 'ab')
        self.own, self.foreign, self.unknown = base.uuids(3)
        options = openstack_services.write_options(
            self,
            {
                'keystone_authtoken': {
                    'www_authenticate_uri': keystone.auth_url,
                    'interface': 'public',
                    **keystone.password,
                },
                'oslo_policy': {
                    'policy_file': databases.write(self, self.policies())
                },
            },
        )
        self.conf = base.patient(
            database_options.configuration(
                self.conf.database.connection, '--config-file', options
            )
        )
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.report()
        self.http = self.client()

    def report(self):
        """Have a host report a server of each project."""
        self.agent().send(
            listed=False,
            host_info=base.host_info(),
            instances=tuple(
                messages.InstanceInfo(
                    uuid, 'vm', 1, None, 'web-1', project, 'm1.small'
                )
                for uuid, project in (
                    (self.own, self.project),
                    (self.foreign, self.other),
                )
            ),
            reservations=tuple(
                base.reservation(uuid) for uuid in (self.own, self.foreign)
            ),
            usage=tuple(
                base.sample(uuid, base.NOW + second)
                for uuid in (self.own, self.foreign)
                for second in range(SAMPLES)
            ),
        )

    # Who asks

    def of_project(self, role, project):
        """Return a new user with a role in a project, and its headers."""
        user = self.identities.user()
        self.identities.assign(user, role, project)
        return user, self.identities.token(user, project_id=project)

    def of_system(self, role):
        """Return the headers of a new user with a role on the system."""
        user = self.identities.user()
        self.identities.assign(user, role)
        return self.identities.token(user, system_scope='all')

    # What is answered

    def get(self, path, headers, status=200):
        answer = self.http.get(path, headers=headers)
        self.assertEqual(status, answer.status_code, (path, answer.text))
        return answer.json if answer.is_json else answer.text

    def codes(self, answer):
        return [one['code'] for one in answer['errors']]

    def listed(self, noun, headers):
        return {
            one['instance_uuid']
            for one in self.get('/v1/' + noun, headers)[noun]
        }

    def check_reads(self, headers, uuid):
        """Everything of a server may be read, and is of that one."""
        for path, noun in READS:
            found = self.get(path % uuid, headers)[noun]
            for one in found if isinstance(found, list) else [found]:
                self.assertEqual(uuid, one['instance_uuid'], path)
        usage = self.get(READS[2][0] % uuid, headers)['usage']
        self.assertEqual(SAMPLES, len(usage))
        self.assertEqual({600_000}, {one['guest_us'] for one in usage})

    def check_hidden(self, headers, uuid):
        """Nothing of a server may be read, not even that it exists."""
        for path, _ in READS:
            self.assertEqual(
                [errors.Code.INSTANCE_NOT_FOUND],
                self.codes(self.get(path % uuid, headers, 404)),
            )

    def check_changes_nothing(self, headers):
        admin = self.of_system('admin')
        before = self.state(admin)
        for one in (self.own, self.foreign, self.unknown):
            for method, path, body in writes(one):
                answer = self.http.open(
                    path, method=method, json=body, headers=headers
                )
                self.assertEqual(403, answer.status_code, (method, path))
                self.assertEqual(
                    [errors.Code.FORBIDDEN], self.codes(answer.json)
                )
        self.assertEqual(before, self.state(admin))

    def state(self, headers):
        """Return all that writes would change."""
        return [
            self.get('/v1/' + noun, headers)[noun]
            for noun in ('hosts', 'reservations', 'balloons', 'jobs')
        ]

    def check_operator(self, headers):
        """All may be read."""
        for one in (self.own, self.foreign):
            self.check_reads(headers, one)
        for path in OPERATORS:
            self.get(path, headers)
        for noun in ('instances', 'reservations', 'usage'):
            self.assertEqual(
                {self.own, self.foreign}, self.listed(noun, headers)
            )

    def check_project(self, headers, own, foreign, other):
        """That of one project may be read."""
        self.check_reads(headers, own)
        for one in (foreign, self.unknown):
            self.check_hidden(headers, one)
        for noun in ('instances', 'reservations', 'usage'):
            self.assertEqual({own}, self.listed(noun, headers))
            answer = self.get(
                '/v1/%s?project_id=%s' % (noun, other), headers, 403
            )
            self.assertEqual([errors.Code.FORBIDDEN], self.codes(answer))
        for path in OPERATORS:
            self.get(path, headers, 403)


class TestProjectTokens(TokenCase):
    """With the shipped policy file, in which every rule is a comment."""

    def test_each_user_of_a_project_reads_of_its_own_servers(self):
        for role in ('reader', 'member'):
            for project, own, foreign, other in (
                (self.project, self.own, self.foreign, self.other),
                (self.other, self.foreign, self.own, self.project),
            ):
                _, headers = self.of_project(role, project)
                self.check_project(headers, own, foreign, other)

    def test_a_project_changes_nothing(self):
        for role in ('reader', 'member'):
            self.check_changes_nothing(self.of_project(role, self.project)[1])

    def test_a_project_without_servers(self):
        project = self.identities.project()
        _, headers = self.of_project('member', project)
        for one in (self.own, self.foreign, self.unknown):
            self.check_hidden(headers, one)
        for noun in ('instances', 'reservations', 'usage'):
            self.assertEqual(set(), self.listed(noun, headers))

    def test_a_reader_of_the_system_reads_everything(self):
        headers = self.of_system('reader')
        self.check_operator(headers)
        self.check_changes_nothing(headers)

    def test_a_service_reads_everything(self):
        _, headers = self.of_project('service', self.project)
        self.check_operator(headers)
        self.check_changes_nothing(headers)

    def test_an_administrator_reads_and_changes_everything(self):
        for headers in (
            self.of_system('admin'),
            self.of_project('admin', self.project)[1],
        ):
            self.check_operator(headers)
            for one in (self.own, self.foreign):
                path = '/v1/reservations/' + one
                answer = self.http.patch(
                    path, json={'runtime_us': 6_000}, headers=headers
                )
                self.assertEqual(202, answer.status_code, answer.text)
                found = self.get(path, headers)['reservation']
                self.assertEqual(
                    ('override', 6_000), (found['source'], found['runtime_us'])
                )
                answer = self.http.delete(path, headers=headers)
                self.assertEqual(202, answer.status_code, answer.text)

    def test_who_has_no_right_to_anything(self):
        user = self.identities.user()
        unscoped = self.identities.token(user, unscoped=True)
        for path in (*OPERATORS, *(path % self.own for path, _ in READS)):
            self.get(path, unscoped, 403)
            for headers in ({}, {'X-Auth-Token': 'x'}):
                self.get(path, headers, 401)

    def test_rights_that_are_withdrawn(self):
        user, headers = self.of_project('member', self.project)
        path = '/v1/reservations/' + self.own
        self.get(path, headers)
        self.identities.revoke(headers)
        # A process remembers valid tokens for [keystone_authtoken]
        # token_cache_time.
        self.http = self.client()
        self.get(path, headers, 401)
        headers = self.identities.token(user, project_id=self.project)
        self.get(path, headers)
        self.identities.withdraw(user, 'member', self.project)
        self.http = self.client()
        self.get(path, headers, 401)


class TestRules(TokenCase):
    """With the rules of that file instead of those of the service."""

    def policies(self):
        """Return the text of the policy file."""
        text, count = re.subn(
            '^#(?=")', '', super().policies(), flags=re.MULTILINE
        )
        self.assertEqual(len(list(policies.list_rules())), count)
        return text

    def test_they_mean_the_same(self):
        _, member = self.of_project('member', self.project)
        self.check_project(member, self.own, self.foreign, self.other)
        self.check_changes_nothing(member)
        reader = self.of_system('reader')
        self.check_operator(reader)
        self.check_changes_nothing(reader)
