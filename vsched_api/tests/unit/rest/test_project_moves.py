# SPDX-License-Identifier: Apache-2.0

"""What a project reads of instances that move and end."""

from vsched_api.db.queries import instances as queries
from vsched_api.operations import rollups
from vsched_api.tests import base
from vsched_api.tests import populated
from vsched_api.tests import projects
from vsched_lib.contract import errors


class TestLives(projects.ProjectCase):
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
        self.assertEqual(200, self.reads(projects.OWN))
        self.report(
            'node2',
            (projects.OWN, populated.PROJECT),
            (projects.ELSEWHERE, populated.PROJECT),
            reservations=(base.reservation(projects.OWN),),
        )
        self.assertEqual(200, self.reads(projects.OWN))
        self.report(base.HOST, (projects.HOMELESS, None))
        self.assertEqual(200, self.reads(projects.OWN))
        self.assertEqual(404, self.reads(projects.OWN, self.other))

    def test_one_that_moves_to_an_agent_that_does_not_tell(self):
        self.report(
            'node2',
            (projects.OWN, None),
            (projects.ELSEWHERE, populated.PROJECT),
            reservations=(base.reservation(projects.OWN),),
        )
        self.assertEqual(404, self.reads(projects.OWN))
        self.report(base.HOST, (projects.HOMELESS, None))
        self.assertEqual(404, self.reads(projects.OWN))
        self.assertEqual(404, self.reads(projects.OWN, self.other))
        self.report(
            'node2',
            (projects.OWN, populated.PROJECT),
            (projects.ELSEWHERE, populated.PROJECT),
        )
        self.assertEqual(200, self.reads(projects.OWN))

    def test_one_that_ended(self):
        self.report(base.HOST, (projects.HOMELESS, None))
        self.assertEqual(200, self.reads(projects.OWN))
        self.report('node2')
        self.assertEqual(200, self.reads(projects.ELSEWHERE))

    def test_one_without_a_project_that_a_host_claims_for_one(self):
        self.report('node9', (projects.HOMELESS, populated.PROJECT))
        self.assertEqual(
            404,
            self.http.get(
                '/v1/usage?instance_uuid=' + projects.HOMELESS,
                headers=self.own,
            ).status_code,
        )

    def test_one_that_a_host_claims_for_another_project(self):
        self.report('node9', (projects.OWN, populated.OTHER_PROJECT))
        self.assertEqual(404, self.reads(projects.OWN))
        self.assertEqual(404, self.reads(projects.OWN, self.other))
        self.assertEqual(200, self.reads(projects.OWN, self.admin))

    def test_one_whose_project_is_not_known(self):
        self.report(base.HOST, (projects.OWN, None), (projects.HOMELESS, None))
        for headers in (self.own, self.token('reader', project_id='None')):
            self.assertEqual(404, self.reads(projects.OWN, headers))
        self.assertEqual(200, self.reads(projects.OWN, self.admin))

    def test_one_that_is_forgotten(self):
        self.report(base.HOST, (projects.HOMELESS, None))
        rollups.fold(self.database, 1000)
        self.database.write(
            lambda session: queries.delete_absent(session, self.now, 100)
        )
        path = '/v1/usage?instance_uuid=' + projects.OWN
        self.assertEqual(errors.Code.INSTANCE_NOT_FOUND, self.problem(path)[0])
        self.assertEqual(
            {None},
            {
                one['server_name']
                for one in self.get(path, self.admin).json['usage']
            },
        )
