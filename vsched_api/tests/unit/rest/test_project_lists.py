# SPDX-License-Identifier: Apache-2.0

"""Lists and usage have a project's own instances only."""

from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import populated
from vsched_api.tests import projects
from vsched_lib.contract import errors
from vsched_lib.contract import messages


class TestLists(projects.ProjectCase):
    """Lists have the instances of the project only."""

    def test_each_has_its_own(self):
        self.assertEqual(
            {
                'instances': [projects.OWN, projects.ELSEWHERE],
                'reservations': [projects.OWN, projects.ELSEWHERE],
                'balloons': [],
            },
            self.seen(),
        )
        self.assertEqual(
            dict.fromkeys(
                ('instances', 'reservations', 'balloons'), [projects.FOREIGN]
            ),
            self.seen(self.other),
        )
        self.assertEqual([], self.seen(self.token('reader'))['instances'])
        self.assertEqual(
            [
                projects.OWN,
                projects.HOMELESS,
                projects.FOREIGN,
                projects.ELSEWHERE,
            ],
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
        self.assertEqual([projects.OWN, projects.ELSEWHERE], found)

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
                [projects.FOREIGN], [one['instance_uuid'] for one in found]
            )

    def test_names_of_servers(self):
        for noun in ('instances', 'reservations'):
            path = '/v1/%s?server_name=' % noun
            for name, headers, expected in (
                ('web-1', self.own, [projects.OWN]),
                ('web-1', self.other, [projects.FOREIGN]),
                ('web-1', self.admin, [projects.OWN, projects.FOREIGN]),
                ('%3Dweb-2', self.own, [projects.ELSEWHERE]),
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

    def test_names_of_flavors(self):
        for noun, name, headers, expected in (
            ('instances', 'm1.small', self.own, [projects.OWN]),
            ('instances', 'm1.small', self.other, []),
            ('instances', 'big', self.own, []),
            ('instances', 'big', self.other, [projects.FOREIGN]),
            ('instances', 'small', self.admin, [projects.ELSEWHERE]),
            ('reservations', 'm1.small', self.own, [projects.OWN]),
            ('reservations', 'big', self.own, []),
            ('reservations', 'big', self.admin, [projects.FOREIGN]),
            ('balloons', 'big', self.own, []),
            ('balloons', 'big', self.other, [projects.FOREIGN]),
            ('balloons', 'm1.small', self.admin, []),
        ):
            path = '/v1/%s?flavor_name=' % noun
            self.assertEqual(
                expected,
                [
                    one['instance_uuid']
                    for one in self.get(path + name, headers).json[noun]
                ],
                (noun, name),
            )
            self.get(path + '%00', status=400)
            self.get(path + 'x' * 256, status=400)

    def test_those_of_others_are_left_out(self):
        for noun in ('reservations', 'balloons'):
            for uuid in (
                projects.FOREIGN,
                projects.HOMELESS,
                projects.UNKNOWN,
            ):
                self.assertEqual(
                    [],
                    self.get('/v1/%s?instance_uuid=%s' % (noun, uuid)).json[
                        noun
                    ],
                )

    def test_markers_of_others_are_unknown(self):
        path = '/v1/%s?sort_key=%s&marker=%s'
        for noun, key in (
            ('reservations', 'state'),
            ('reservations', 'bandwidth_mcpu'),
            ('instances', 'server_name'),
            ('instances', 'vcpus'),
        ):
            self.get(path % (noun, key, projects.FOREIGN), self.admin)
            self.assertEqual(
                self.problem(path % (noun, key, projects.UNKNOWN), status=400),
                self.problem(path % (noun, key, projects.FOREIGN), status=400),
            )

    def test_markers_of_samples_of_others_are_unknown(self):
        samples = self.get('/v1/usage?limit=1000', self.admin).json
        self.assertGreater(len(samples['usage']), 4)
        path = '/v1/usage?instance_uuid=%s&limit=1' % projects.ELSEWHERE
        marker = (
            self.get('/v1/usage?instance_uuid=%s&limit=1' % projects.OWN)
            .json['links'][1]['href']
            .rpartition('=')[2]
        )
        self.assertEqual(
            self.problem(path + '&marker=1', status=400),
            self.problem(path + '&marker=' + marker, status=400),
        )


class TestUsage(projects.ProjectCase):
    """Usage is of instances of the project."""

    def test_of_its_own(self):
        found = self.get('/v1/usage?instance_uuid=' + projects.OWN).json[
            'usage'
        ]
        self.assertEqual(4, len(found))
        for one in found:
            self.assertEqual(
                (projects.OWN, None, 'web-1', populated.PROJECT, 'm1.small'),
                (
                    one['instance_uuid'],
                    one['host'],
                    one['server_name'],
                    one['project_id'],
                    one['flavor_name'],
                ),
            )

    def test_totals_of_its_own(self):
        found = self.get('/v1/usage/totals').json
        self.assertEqual(
            {
                (projects.OWN, None, 'web-1'),
                (projects.ELSEWHERE, None, '=web-2'),
            },
            {
                (one['instance_uuid'], one['host'], one['server_name'])
                for one in found['totals']
            },
        )
        self.assertEqual([], found['hosts'])
        found = self.get('/v1/usage/totals', self.admin).json
        self.assertIn(
            projects.HOMELESS,
            [one['instance_uuid'] for one in found['totals']],
        )
        self.assertEqual(
            {'node1', 'node2'}, {one['host'] for one in found['hosts']}
        )

    def test_operators_see_names(self):
        found = {
            one['instance_uuid']: (one['server_name'], one['host'])
            for one in self.get('/v1/usage?limit=1000', self.admin).json[
                'usage'
            ]
        }
        self.assertEqual(
            {
                projects.OWN: ('web-1', 'node1'),
                projects.HOMELESS: (None, 'node1'),
                projects.ELSEWHERE: ('=web-2', 'node2'),
            },
            found,
        )

    def test_names_are_no_formulas_in_tables(self):
        text = self.get(
            '/v1/usage?format=csv&instance_uuid=' + projects.ELSEWHERE
        ).text
        self.assertIn("'=web-2,%s,small" % populated.PROJECT, text)
        self.assertNotIn(',=', text)
        self.assertNotIn('node2', text)


class TestUsageOfProjects(projects.ProjectCase):
    """A project does not have to name its instances."""

    named = frozenset((projects.OWN, projects.FOREIGN))

    def setUp(self):
        super().setUp()
        # Two minutes of each, as each list has more than one item of it.
        self.collected.on_report(
            messages.Report(
                'node2',
                3,
                base.NOW,
                usage=tuple(
                    base.sample(uuid, base.NOW + second)
                    for uuid in (projects.FOREIGN, projects.OWN)
                    for second in (10, 70)
                ),
            )
        )

    def used(self, query='', headers=None):
        """Return whose samples and whose sums there are."""
        rollups.fold(self.database, 1000)
        return [
            {
                one['instance_uuid']
                for one in self.get(
                    '/v1/usage?limit=1000' + more + query, headers
                ).json['usage']
            }
            for more in ('', '&resolution=minute', '&resolution=hour')
        ]

    def test_of_all_of_its_own(self):
        for headers, query, uuids in (
            (self.own, '', {projects.OWN, projects.ELSEWHERE}),
            (
                self.own,
                '&project_id=' + populated.PROJECT,
                {projects.OWN, projects.ELSEWHERE},
            ),
            (self.own, '&server_name=web-1', {projects.OWN}),
            (self.own, '&flavor_name=small', {projects.ELSEWHERE}),
            (self.own, '&flavor_name=big', set()),
            (self.other, '&server_name=web-1', {projects.FOREIGN}),
            (self.token('reader'), '', set()),
            (self.admin, '&server_name=web-1', self.named),
            (
                self.admin,
                '&project_id=' + populated.OTHER_PROJECT,
                {projects.FOREIGN},
            ),
        ):
            for found in self.used(query, headers):
                self.assertEqual(uuids, found, query)
        text = self.get('/v1/usage?format=csv&limit=1000').text
        self.assertIn(projects.OWN, text)
        self.assertNotIn(projects.HOMELESS, text)

    def test_of_several(self):
        query = ''.join('&instance_uuid=' + uuid for uuid in projects.UUIDS)
        for headers, uuids in (
            (self.own, {projects.OWN, projects.ELSEWHERE}),
            (self.other, {projects.FOREIGN}),
            (self.admin, set(projects.UUIDS)),
        ):
            for found in self.used(query, headers):
                self.assertEqual(uuids, found)

    def test_not_of_others(self):
        for query in (
            '?of=hosts',
            '?of=hosts&resolution=hour',
            '?of=hosts&instance_uuid=' + projects.OWN,
            '?of=hosts&project_id=' + populated.PROJECT,
            '?project_id=' + populated.OTHER_PROJECT,
            '?project_id=x&instance_uuid=' + projects.OWN,
        ):
            code, _ = self.problem('/v1/usage' + query, status=403)
            self.assertEqual(errors.Code.FORBIDDEN, code)

    def test_of_one_that_hosts_claim_for_several(self):
        self.report('node9', (projects.OWN, populated.OTHER_PROJECT))
        for found in self.used():
            self.assertEqual({projects.ELSEWHERE}, found)
        for found in self.used(headers=self.other):
            self.assertEqual({projects.FOREIGN}, found)

    def test_markers_of_others_are_unknown(self):
        for more in ('', '&resolution=minute'):
            self.used()
            marker = (
                self.get(
                    '/v1/usage?limit=1&server_name=web-1&project_id=%s%s'
                    % (populated.PROJECT, more)
                )
                .json['links'][-1]['href']
                .rpartition('marker=')[2]
            )
            path = '/v1/usage?marker=%s' + more
            self.assertEqual(
                self.problem(path % 999_999_999, self.other, 400),
                self.problem(path % marker, self.other, 400),
            )
