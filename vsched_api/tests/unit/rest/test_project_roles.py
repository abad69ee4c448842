# SPDX-License-Identifier: Apache-2.0

"""Which routes each role may use, for instances of which projects."""

import json

import fixtures

from vsched_api import policies
from vsched_api.policies import base as base_policies
from vsched_api.tests import populated
from vsched_api.tests import projects
from vsched_api.tests import tokens
from vsched_lib.contract import errors


class TestEveryRoute(projects.ProjectCase):
    """Each route, with each role, for each kind of instance."""

    def expected(self, role, check, template, uuid):
        """Return the statuses that are right."""
        if check == base_policies.ANYONE:
            return (200,)
        if role == 'nobody':
            return (401,)
        if role in ('admin', 'service', 'system reader'):
            if check == base_policies.ADMIN and role != 'admin':
                return (403,)
            # What is not there, and what lacks a body.
            return (200, 202, 204, 400, 404, 409, 415, 501)
        if role == 'member' or check != base_policies.PROJECT_READER:
            return (403,)
        if '{instance_uuid}' not in template:
            return (200,)
        project = {
            'reader of it': populated.PROJECT,
            'reader of another': populated.OTHER_PROJECT,
        }[role]
        if populated.PROJECTS.get(uuid) != project:
            return (404,)
        # The project may know that its instance has none.
        missing = {
            projects.OWN: '/v1/balloons/{instance_uuid}',
            projects.ELSEWHERE: '/v1/balloons/{instance_uuid}',
        }
        return (404,) if missing.get(uuid) == template else (200,)

    def test_each_route_with_each_role(self):
        roles = {
            'nobody': {},
            'member': self.token('member', project_id=populated.PROJECT),
            'reader of it': self.own,
            'reader of another': self.other,
            'system reader': self.token('reader', system=True),
            'service': self.token('service'),
            'admin': self.admin,
        }
        checks = {
            (operation['method'], operation['path']): rule.check_str
            for rule in policies.list_rules()
            for operation in getattr(rule, 'operations', ())
        }
        count = 0
        for role, headers in roles.items():
            for uuid in (*projects.UUIDS, projects.UNKNOWN):
                for method, path, template in tokens.routes(
                    self.http.application, instance_uuid=uuid
                ):
                    if role == 'admin' and method == 'DELETE':
                        # Those after it would find less.
                        continue
                    answer = self.http.open(
                        path, method=method, headers=headers
                    )
                    self.assertIn(
                        answer.status_code,
                        self.expected(
                            role, checks[method, template], template, uuid
                        ),
                        (role, method, path, answer.text),
                    )
                    count += 1
        self.assertGreater(count, 800)

    def test_instances_of_others_are_answered_like_unknown_ones(self):
        for template in (
            '/v1/instances/%s',
            '/v1/reservations/%s',
            '/v1/balloons/%s',
            '/v1/usage?instance_uuid=%s',
            '/v1/usage/totals?instance_uuid=%s',
            '/v1/usage?resolution=minute&format=csv&instance_uuid=%s',
        ):
            answers = {
                tuple(
                    part.replace(uuid, 'UUID')
                    for part in self.problem(template % uuid)
                )
                for uuid in (
                    projects.FOREIGN,
                    projects.HOMELESS,
                    projects.UNKNOWN,
                )
            }
            self.assertEqual(
                {
                    (
                        errors.Code.INSTANCE_NOT_FOUND,
                        'no agent reported an instance UUID',
                    )
                },
                answers,
            )
            self.get(template % projects.FOREIGN, self.admin)

    def test_a_project_changes_nothing(self):
        for uuid in projects.UUIDS:
            for method, path, body in (
                ('PATCH', '/v1/reservations/' + uuid, {'runtime_us': 1000}),
                ('DELETE', '/v1/reservations/' + uuid, None),
                (
                    'POST',
                    '/v1/reservations',
                    {'instance_uuid': uuid, 'runtime_us': 1000},
                ),
                ('PATCH', '/v1/balloons/' + uuid, {'target_vcpus': 1}),
                ('DELETE', '/v1/balloons/' + uuid, None),
                (
                    'POST',
                    '/v1/balloons',
                    {'instance_uuid': uuid, 'target_vcpus': 1},
                ),
            ):
                answer = self.http.open(
                    path, method=method, json=body, headers=self.own
                )
                self.assertEqual(403, answer.status_code, (method, path))


class TestOwnPolicies(tokens.TokenCase):
    """Policies that an operator has changed."""

    def setUp(self):
        super().setUp()
        path = self.useFixture(fixtures.TempDir()).join('policy.json')
        with open(path, 'w') as file:
            json.dump(
                {
                    'vsched:instances:list': 'role:auditor',
                    'vsched:instances:show': 'rule:vsched:reader',
                    'vsched:reservations:show': 'role:auditor or '
                    'rule:vsched:project_reader',
                    'vsched:instances:show_host': '@',
                },
                file,
            )
        self.conf.set_override('policy_file', path, 'oslo_policy')
        self.http = self.client()
        populated.fill(self.collector())

    def test_a_rule_without_a_project_is_for_all(self):
        auditor = self.token('auditor')
        answer = self.http.get('/v1/instances', headers=auditor)
        self.assertEqual(4, len(answer.json['instances']))
        for uuid in (projects.OWN, projects.FOREIGN):
            answer = self.http.get('/v1/reservations/' + uuid, headers=auditor)
            self.assertEqual(200, answer.status_code)

    def test_a_rule_that_projects_do_not_pass(self):
        own = self.token('reader', project_id=populated.PROJECT)
        for path in ('/v1/instances', '/v1/instances/' + projects.OWN):
            answer = self.http.get(path, headers=own)
            self.assertEqual(403, answer.status_code)

    def test_hosts_may_be_shown(self):
        own = self.token('reader', project_id=populated.PROJECT)
        answer = self.http.get('/v1/reservations/' + projects.OWN, headers=own)
        self.assertEqual('node1', answer.json['reservation']['host'])
