# SPDX-License-Identifier: Apache-2.0

"""No route answers without asking a policy, and each asks its own."""

import re

import fixtures
import flask
from keystoneauth1 import fixture as keystoneauth_fixture
from keystonemiddleware import fixture as keystone_fixture

from vsched_api import policies
from vsched_api.policies import base as base_policies
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import errors

#: What the paths of routes are filled with.
EXAMPLES = {
    'name': 'node1',
    'job_uuid': '0b7d3a52-1c1e-4f6e-9a55-6d1f0a1f7c11',
    'instance_uuid': '3a9d1c3e-5b1c-4c53-a2a4-6bb0a2e0a1a1',
}


def routes(app):
    """Every (method, path, template as policies write it)."""
    for rule in app.url_map.iter_rules():
        path = re.sub(r'<(\w+)>', lambda found: EXAMPLES[found[1]], rule.rule)
        template = re.sub(r'<(\w+)>', r'{\1}', rule.rule)
        for method in rule.methods - {'HEAD'}:
            yield method, path, template


class TestAuthorization(base.TestCase):
    """Walks all routes, with tokens of several kinds."""

    def setUp(self):
        super().setUp()
        options = self.useFixture(fixtures.TempDir()).join('vsched.conf')
        with open(options, 'w') as file:
            file.write(
                '[keystone_authtoken]\n'
                'www_authenticate_uri = http://127.0.0.1:5000\n'
            )
        self.conf = databases.configuration(
            self.conf.database.connection, '--config-file', options
        )
        self.conf.set_override('auth_strategy', 'keystone', 'api')
        self.tokens = self.useFixture(keystone_fixture.AuthTokenFixture())
        self.http = self.client()

    def token(self, *roles, system=False):
        data = keystoneauth_fixture.V3Token()
        if system:
            data.set_system_scope()
        else:
            data.set_project_scope()
        for role in roles:
            data.add_role(role)
        return {'X-Auth-Token': self.tokens.add_token(data)}

    def statuses(self, headers):
        return {
            (method, template): self.http.open(
                path, method=method, headers=headers
            ).status_code
            for method, path, template in routes(self.http.application)
        }

    def rules(self, *checks):
        return {
            (operation['method'], operation['path'])
            for rule in policies.list_rules()
            for operation in getattr(rule, 'operations', ())
            if rule.check_str in checks
        }

    def test_each_route_has_a_policy_and_each_policy_a_route(self):
        documented = self.rules(
            base_policies.ADMIN, base_policies.READER, base_policies.ANYONE
        )
        self.assertEqual(
            documented,
            {
                (method, template)
                for method, _, template in routes(self.http.application)
            },
        )

    def test_without_a_token_only_what_is_for_anyone(self):
        anyone = self.rules(base_policies.ANYONE)
        for route, status in self.statuses({}).items():
            self.assertEqual(200 if route in anyone else 401, status, route)

    def test_an_ordinary_user_may_nothing(self):
        anyone = self.rules(base_policies.ANYONE)
        for headers in (self.token('member', 'reader'), self.token()):
            for route, status in self.statuses(headers).items():
                self.assertEqual(
                    200 if route in anyone else 403, status, route
                )

    def test_services_and_readers_of_the_system_may_read(self):
        admin_only = self.rules(base_policies.ADMIN)
        for headers in (
            self.token('service'),
            self.token('reader', system=True),
        ):
            for route, status in self.statuses(headers).items():
                if route in admin_only:
                    self.assertEqual(403, status, route)
                else:
                    # 415: a question that needs a body.
                    self.assertIn(status, (200, 404, 415), route)

    def test_an_administrator_may_everything(self):
        for route, status in self.statuses(self.token('admin')).items():
            self.assertIn(status, (200, 404, 415), route)

    def test_who_may_not_learns_nothing_else(self):
        answer = self.http.patch(
            '/v1/reservations/x?y=1',
            json={'z': 1},
            headers=self.token('member'),
        )
        self.assertEqual(403, answer.status_code)
        (problem,) = answer.json['errors']
        self.assertEqual(errors.Code.FORBIDDEN, problem['code'])
        self.assertIn('vsched:reservations:update', problem['detail'])

    def test_a_refused_token_gets_the_form_of_all_errors(self):
        answer = self.http.get('/v1/hosts', headers={'X-Auth-Token': 'x'})
        self.assertEqual(401, answer.status_code)
        self.assertEqual(
            errors.Code.UNAUTHENTICATED, answer.json['errors'][0]['code']
        )
        self.assertIn('WWW-Authenticate', answer.headers)


class TestForgetfulHandlers(base.TestCase):
    """A handler that asks no policy is a failure of the service."""

    def setUp(self):
        super().setUp()
        self.http = self.client()
        self.http.application.add_url_rule(
            '/forgetful/<what>', view_func=self.forgetful
        )

    @staticmethod
    def forgetful(what):
        if what == 'abort':
            flask.abort(404)
        if what == 'fail':
            raise KeyError(what)
        return {'secret': what}

    def test_its_answer_is_held_back(self):
        for what in ('answer', 'abort', 'fail'):
            answer = self.http.get('/forgetful/' + what)
            self.assertEqual(500, answer.status_code)
            self.assertNotIn('secret', answer.text)
            (problem,) = answer.json['errors']
            self.assertEqual(errors.Code.INTERNAL, problem['code'])
        self.assertEqual(405, self.http.post('/forgetful/x').status_code)
        self.assertEqual(404, self.http.get('/forgetful').status_code)
