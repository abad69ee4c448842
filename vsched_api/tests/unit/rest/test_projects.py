# SPDX-License-Identifier: Apache-2.0

"""A project reads what concerns its own instances, and nothing else."""

import json

import fixtures

from vsched_api.db.queries import instances as queries
from vsched_api.operations import rollups
from vsched_api import policies
from vsched_api.policies import base as base_policies
from vsched_api.tests import base
from vsched_api.tests import populated
from vsched_api.tests import tokens
from vsched_lib.contract import errors
from vsched_lib.contract import messages

OWN = populated.PROMISED
FOREIGN = populated.REFUSED
HOMELESS = populated.PLAIN
ELSEWHERE = populated.ELSEWHERE
UNKNOWN = '99999999-9999-4999-8999-999999999999'

#: What nobody but operators may find in an answer.
SECRETS = (
    '"node1"',
    '"node2"',
    '"promised"',
    '"elsewhere"',
    'it waited',
    '3800',
    'deadline can not be used',
)
_UUIDS = (OWN, FOREIGN, HOMELESS, ELSEWHERE)


class ProjectCase(tokens.TokenCase):
    """Instances of two projects, and of none, on two hosts."""

    def setUp(self):
        super().setUp()
        self.collected = self.collector()
        populated.fill(self.collected)
        self.collected.on_report(
            messages.Report(
                'node2', 2, base.NOW, usage=(base.sample(ELSEWHERE),)
            )
        )
        self.own = self.token('reader', project_id=populated.PROJECT)
        self.other = self.token('reader', project_id=populated.OTHER_PROJECT)
        self.admin = self.token('admin')
        self.batch = 2

    def get(self, path, headers=None, status=200):
        answer = self.http.get(path, headers=headers or self.own)
        self.assertEqual(status, answer.status_code, (path, answer.text))
        return answer

    def problem(self, path, headers=None, status=404):
        """Return code and detail of an error."""
        (found,) = self.get(path, headers, status).json['errors']
        return found['code'], found['detail']

    def report(self, host, *instances, **parts):
        """Let a host list instances: (UUID, project) each."""
        self.batch += 1
        self.collected.on_report(
            messages.Report(
                host,
                self.batch,
                base.NOW + self.batch,
                instances=tuple(
                    messages.InstanceInfo(
                        uuid, 'vm', 1, None, 'web-1', project, 'm1.small'
                    )
                    for uuid, project in instances
                ),
                **parts,
            )
        )

    def seen(self, headers=None):
        """Return the instances that each list has, by the noun."""
        return {
            noun: [
                one['instance_uuid']
                for one in self.get('/v1/' + noun, headers).json[noun]
            ]
            for noun in ('instances', 'reservations', 'balloons')
        }


class TestEveryRoute(ProjectCase):
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
            return (403,) if template == '/v1/usage' else (200,)
        project = {
            'reader of it': populated.PROJECT,
            'reader of another': populated.OTHER_PROJECT,
        }[role]
        if populated.PROJECTS.get(uuid) != project:
            return (404,)
        # The project may know that its instance has none.
        missing = {
            OWN: '/v1/balloons/{instance_uuid}',
            ELSEWHERE: '/v1/balloons/{instance_uuid}',
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
            for uuid in (*_UUIDS, UNKNOWN):
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
            '/v1/usage?resolution=minute&format=csv&instance_uuid=%s',
        ):
            answers = {
                tuple(
                    part.replace(uuid, 'UUID')
                    for part in self.problem(template % uuid)
                )
                for uuid in (FOREIGN, HOMELESS, UNKNOWN)
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
            self.get(template % FOREIGN, self.admin)

    def test_a_project_changes_nothing(self):
        for uuid in _UUIDS:
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


class TestLists(ProjectCase):
    """Lists have the instances of the project only."""

    def test_each_has_its_own(self):
        self.assertEqual(
            {
                'instances': [OWN, ELSEWHERE],
                'reservations': [OWN, ELSEWHERE],
                'balloons': [],
            },
            self.seen(),
        )
        self.assertEqual(
            dict.fromkeys(
                ('instances', 'reservations', 'balloons'), [FOREIGN]
            ),
            self.seen(self.other),
        )
        self.assertEqual([], self.seen(self.token('reader'))['instances'])
        self.assertEqual(
            [OWN, HOMELESS, FOREIGN, ELSEWHERE],
            self.seen(self.admin)['instances'],
        )

    def test_page_by_page(self):
        path, found = '/v1/reservations?limit=1&sort_key=state', []
        while path:
            answer = self.get(path).json
            found += [one['instance_uuid'] for one in answer['reservations']]
            path = next(
                (
                    link['href']
                    for link in answer['links']
                    if link['rel'] == 'next'
                ),
                None,
            )
        self.assertEqual([OWN, ELSEWHERE], found)

    def test_the_project_may_be_named(self):
        for noun in ('instances', 'reservations', 'balloons'):
            path = '/v1/%s?project_id=' % noun
            own = self.get(path + populated.PROJECT).json[noun]
            self.assertEqual(self.get('/v1/' + noun).json[noun], own)
            for project in (populated.OTHER_PROJECT, 'x'):
                code, detail = self.problem(path + project, status=403)
                self.assertEqual(errors.Code.FORBIDDEN, code)
                self.assertIn('project_id', detail)

    def test_an_operator_names_any(self):
        for noun in ('instances', 'reservations', 'balloons'):
            found = self.get(
                '/v1/%s?project_id=%s' % (noun, populated.OTHER_PROJECT),
                self.admin,
            ).json[noun]
            self.assertEqual(
                [FOREIGN], [one['instance_uuid'] for one in found]
            )

    def test_names_of_servers(self):
        for noun in ('instances', 'reservations'):
            path = '/v1/%s?server_name=' % noun
            for name, headers, expected in (
                ('web-1', self.own, [OWN]),
                ('web-1', self.other, [FOREIGN]),
                ('web-1', self.admin, [OWN, FOREIGN]),
                ('%3Dweb-2', self.own, [ELSEWHERE]),
                ('web', self.admin, []),
            ):
                self.assertEqual(
                    expected,
                    [
                        one['instance_uuid']
                        for one in self.get(path + name, headers).json[noun]
                    ],
                )
            self.get(path + '%00', status=400)
            self.get(path + 'x' * 256, status=400)
            self.get('/v1/%s?project_id=%s' % (noun, 'x' * 65), status=400)

    def test_those_of_others_are_left_out(self):
        for noun in ('reservations', 'balloons'):
            for uuid in (FOREIGN, HOMELESS, UNKNOWN):
                self.assertEqual(
                    [],
                    self.get('/v1/%s?instance_uuid=%s' % (noun, uuid)).json[
                        noun
                    ],
                )

    def test_markers_of_others_are_unknown(self):
        path = '/v1/reservations?sort_key=%s&marker=%s'
        for key in ('state', 'bandwidth_mcpu'):
            self.get(path % (key, FOREIGN), self.admin)
            self.assertEqual(
                self.problem(path % (key, UNKNOWN), status=400),
                self.problem(path % (key, FOREIGN), status=400),
            )

    def test_markers_of_samples_of_others_are_unknown(self):
        samples = self.get('/v1/usage?limit=1000', self.admin).json
        self.assertGreater(len(samples['usage']), 4)
        path = '/v1/usage?instance_uuid=%s&limit=1' % ELSEWHERE
        marker = (
            self.get('/v1/usage?instance_uuid=%s&limit=1' % OWN)
            .json['links'][1]['href']
            .rpartition('=')[2]
        )
        self.assertEqual(
            self.problem(path + '&marker=1', status=400),
            self.problem(path + '&marker=' + marker, status=400),
        )


class TestUsage(ProjectCase):
    """Usage is of one instance."""

    def test_of_its_own(self):
        found = self.get('/v1/usage?instance_uuid=' + OWN).json['usage']
        self.assertEqual(4, len(found))
        for one in found:
            self.assertEqual(
                (OWN, None, 'web-1', populated.PROJECT, 'm1.small'),
                (
                    one['instance_uuid'],
                    one['host'],
                    one['server_name'],
                    one['project_id'],
                    one['flavor_name'],
                ),
            )

    def test_an_instance_has_to_be_named(self):
        for query in (
            '',
            '?resolution=hour',
            '?of=hosts',
            '?format=csv',
            '?of=hosts&instance_uuid=' + OWN,
        ):
            code, _ = self.problem('/v1/usage' + query, status=403)
            self.assertEqual(errors.Code.FORBIDDEN, code)

    def test_operators_see_names(self):
        found = {
            one['instance_uuid']: (one['server_name'], one['host'])
            for one in self.get('/v1/usage?limit=1000', self.admin).json[
                'usage'
            ]
        }
        self.assertEqual(
            {
                OWN: ('web-1', 'node1'),
                HOMELESS: (None, 'node1'),
                ELSEWHERE: ('=web-2', 'node2'),
            },
            found,
        )

    def test_names_are_no_formulas_in_tables(self):
        text = self.get('/v1/usage?format=csv&instance_uuid=' + ELSEWHERE).text
        self.assertIn("'=web-2,%s,small" % populated.PROJECT, text)
        self.assertNotIn(',=', text)
        self.assertNotIn('node2', text)


class TestSecrets(ProjectCase):
    """What tells of hosts and of other instances."""

    def paths(self):
        for uuid in (OWN, ELSEWHERE, FOREIGN):
            for noun in ('instances', 'reservations', 'balloons'):
                yield '/v1/' + noun
                yield '/v1/%s/%s' % (noun, uuid)
            for more in ('', '&resolution=minute', '&format=csv'):
                yield '/v1/usage?instance_uuid=%s%s' % (uuid, more)

    def test_no_answer_has_them(self):
        operators = ''
        for path in self.paths():
            for headers in (self.own, self.other):
                text = self.http.get(path, headers=headers).text
                for secret in SECRETS:
                    self.assertNotIn(secret, text, path)
            operators += self.http.get(path, headers=self.admin).text
        for secret in SECRETS:
            self.assertIn(secret, operators)

    def test_what_they_have_instead(self):
        found = self.get('/v1/reservations/' + FOREIGN, self.other).json
        one = found['reservation']
        self.assertEqual(
            (None, None, None, {}),
            (one['host'], one['instance_name'], one['detail'], one['figures']),
        )
        # The code is enough to act on.
        self.assertEqual('vsched.reservation.does_not_fit', one['code'])
        self.assertEqual(populated.OTHER_PROJECT, one['project_id'])
        found = self.get('/v1/balloons/' + FOREIGN, self.other).json
        one = found['balloon']
        self.assertEqual(
            (None, None, None, []),
            (one['host'], one['instance_name'], one['cause'], one['cpus']),
        )
        self.assertEqual(3, one['online_vcpus'])

    def test_details_of_parts(self):
        io = messages.IoReport(
            'charge', 1, code='vsched.io.refused', detail='beside vm-7'
        )
        self.report(
            base.HOST,
            (OWN, populated.PROJECT),
            reservations=(base.reservation(OWN, io=io),),
        )
        path = '/v1/reservations/' + OWN
        for headers, expected in (
            (self.own, None),
            (self.admin, 'beside vm-7'),
        ):
            found = self.get(path, headers).json['reservation']['io']
            self.assertEqual(
                ('vsched.io.refused', expected),
                (found['code'], found['detail']),
            )

    def test_lists_are_not_sorted_or_filtered_by_them(self):
        for path in (
            '/v1/instances?host=node1',
            '/v1/reservations?host=node1',
            '/v1/reservations?sort_key=host',
            '/v1/balloons?host=x',
            '/v1/usage?host=node1&instance_uuid=' + OWN,
        ):
            code, detail = self.problem(path, status=403)
            self.assertEqual(errors.Code.FORBIDDEN, code)
            self.assertIn('vsched:instances:show_host', detail)
            self.get(path, self.admin)

    def test_who_set_an_override(self):
        answer = self.http.patch(
            '/v1/reservations/' + OWN,
            json={'runtime_us': 6000},
            headers=self.admin,
        )
        self.assertEqual(202, answer.status_code)
        found = self.get('/v1/reservations/' + OWN).json['reservation']
        self.assertEqual(
            (6000, None), (found['runtime_us'], found['override'])
        )


class TestLives(ProjectCase):
    """Instances move and end, and hosts are wrong about them."""

    def reads(self, uuid, headers=None):
        """Return the statuses of all that may be read of an instance."""
        headers = headers or self.own
        found = {
            self.http.get(path % uuid, headers=headers).status_code
            for path in (
                '/v1/instances/%s',
                '/v1/reservations/%s',
                '/v1/usage?instance_uuid=%s',
            )
        }
        listed = [
            uuid in self.seen(headers)[noun]
            for noun in ('instances', 'reservations')
        ]
        self.assertEqual({200 in found}, set(listed))
        (status,) = found
        return status

    def test_one_that_moves(self):
        self.assertEqual(200, self.reads(OWN))
        self.report(
            'node2',
            (OWN, populated.PROJECT),
            (ELSEWHERE, populated.PROJECT),
            reservations=(base.reservation(OWN),),
        )
        self.assertEqual(200, self.reads(OWN))
        self.report(base.HOST, (HOMELESS, None))
        self.assertEqual(200, self.reads(OWN))
        self.assertEqual(404, self.reads(OWN, self.other))

    def test_one_that_moves_to_an_agent_that_does_not_tell(self):
        self.report(
            'node2',
            (OWN, None),
            (ELSEWHERE, populated.PROJECT),
            reservations=(base.reservation(OWN),),
        )
        self.assertEqual(404, self.reads(OWN))
        self.report(base.HOST, (HOMELESS, None))
        self.assertEqual(404, self.reads(OWN))
        self.assertEqual(404, self.reads(OWN, self.other))
        self.report(
            'node2', (OWN, populated.PROJECT), (ELSEWHERE, populated.PROJECT)
        )
        self.assertEqual(200, self.reads(OWN))

    def test_one_that_ended(self):
        self.report(base.HOST, (HOMELESS, None))
        self.assertEqual(200, self.reads(OWN))
        self.report('node2')
        self.assertEqual(200, self.reads(ELSEWHERE))

    def test_one_without_a_project_that_a_host_claims_for_one(self):
        self.report('node9', (HOMELESS, populated.PROJECT))
        self.assertEqual(
            404,
            self.http.get(
                '/v1/usage?instance_uuid=' + HOMELESS, headers=self.own
            ).status_code,
        )

    def test_one_that_a_host_claims_for_another_project(self):
        self.report('node9', (OWN, populated.OTHER_PROJECT))
        self.assertEqual(404, self.reads(OWN))
        self.assertEqual(404, self.reads(OWN, self.other))
        self.assertEqual(200, self.reads(OWN, self.admin))

    def test_one_whose_project_is_not_known(self):
        self.report(base.HOST, (OWN, None), (HOMELESS, None))
        for headers in (self.own, self.token('reader', project_id='None')):
            self.assertEqual(404, self.reads(OWN, headers))
        self.assertEqual(200, self.reads(OWN, self.admin))

    def test_one_that_is_forgotten(self):
        self.report(base.HOST, (HOMELESS, None))
        rollups.fold(self.database, 1000)
        self.database.write(
            lambda session: queries.delete_absent(session, self.now, 100)
        )
        path = '/v1/usage?instance_uuid=' + OWN
        self.assertEqual(errors.Code.INSTANCE_NOT_FOUND, self.problem(path)[0])
        self.assertEqual(
            {None},
            {
                one['server_name']
                for one in self.get(path, self.admin).json['usage']
            },
        )


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
        for uuid in (OWN, FOREIGN):
            answer = self.http.get('/v1/reservations/' + uuid, headers=auditor)
            self.assertEqual(200, answer.status_code)

    def test_a_rule_that_projects_do_not_pass(self):
        own = self.token('reader', project_id=populated.PROJECT)
        for path in ('/v1/instances', '/v1/instances/' + OWN):
            answer = self.http.get(path, headers=own)
            self.assertEqual(403, answer.status_code)

    def test_hosts_may_be_shown(self):
        own = self.token('reader', project_id=populated.PROJECT)
        answer = self.http.get('/v1/reservations/' + OWN, headers=own)
        self.assertEqual('node1', answer.json['reservation']['host'])
