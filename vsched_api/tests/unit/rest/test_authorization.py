# SPDX-License-Identifier: Apache-2.0

"""No route answers without asking a policy, and each asks its own."""

import flask

from vsched_api import policies
from vsched_api.policies import base as base_policies
from vsched_api.tests import base
from vsched_api.tests import tokens
from vsched_lib.contract import errors


class TestAuthorization(tokens.TokenCase):
    """Walks all routes, with tokens of several kinds."""

    def statuses(self, headers):
        return {
            (method, template): self.http.open(
                path, method=method, headers=headers
            ).status_code
            for method, path, template in tokens.routes(self.http.application)
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
            base_policies.ADMIN,
            base_policies.READER,
            base_policies.PROJECT_READER,
            base_policies.ANYONE,
        )
        self.assertEqual(
            documented,
            {
                (method, template)
                for method, _, template in tokens.routes(self.http.application)
            },
        )

    def test_without_a_token_only_what_is_for_anyone(self):
        anyone = self.rules(base_policies.ANYONE)
        for route, status in self.statuses({}).items():
            self.assertEqual(200 if route in anyone else 401, status, route)

    def test_an_ordinary_user_may_nothing(self):
        anyone = self.rules(base_policies.ANYONE)
        for headers in (
            self.token('member'),
            self.token(),
            self.token('reader', 'member', domain=True),
        ):
            for route, status in self.statuses(headers).items():
                self.assertEqual(
                    200 if route in anyone else 403, status, route
                )

    def test_a_reader_of_a_project_may_read_of_its_instances_only(self):
        # Here it has none; those that have some are in test_project_roles.
        anyone = self.rules(base_policies.ANYONE)
        own = self.rules(base_policies.PROJECT_READER)
        self.assertEqual(8, len(own))
        for route, status in self.statuses(
            self.token('member', 'reader')
        ).items():
            method, template = route
            if route not in own:
                self.assertEqual(
                    200 if route in anyone else 403, status, route
                )
            elif '{' in template:
                self.assertEqual(404, status, route)
            else:
                self.assertEqual(200, status, route)

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

    def test_the_page_learns_what_its_user_may(self):
        for headers, reads, changes in (
            ({}, False, False),
            (self.token('member'), False, False),
            (self.token('reader', system=True), True, False),
            (self.token('admin'), True, True),
        ):
            answer = self.http.get('/ui/session', headers=headers)
            session = answer.json['session']
            self.assertEqual(bool(headers), session['authenticated'])
            self.assertEqual(reads, 'vsched:hosts:list' in session['allowed'])
            self.assertEqual(
                changes, 'vsched:reservations:update' in session['allowed']
            )

    def test_the_page_learns_what_holds_for_one_project_only(self):
        session = self.http.get(
            '/ui/session', headers=self.token('reader')
        ).json['session']
        self.assertIsNotNone(session['project_id'])
        own = session['allowed_in_project']
        self.assertFalse(set(own) & set(session['allowed']))
        for rule in (
            'vsched:reservations:list',
            'vsched:balloons:list',
            'vsched:usage:list',
        ):
            self.assertIn(rule, own)
        for rule in ('vsched:hosts:list', 'vsched:reservations:update'):
            self.assertNotIn(rule, own)
        for headers in ({}, self.token('reader', system=True)):
            session = self.http.get('/ui/session', headers=headers).json[
                'session'
            ]
            self.assertEqual([], session['allowed_in_project'])

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
