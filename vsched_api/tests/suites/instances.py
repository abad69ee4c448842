# SPDX-License-Identifier: Apache-2.0

"""What instances are known as: on every database alike."""

from vsched_api.db.queries import instances as queries
from vsched_api.operations import errors
from vsched_api.operations import instances
from vsched_api.operations import reservations
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import messages

ONE, TWO = 'a' * 32, 'b' * 64


class Instances:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def list(self, agent, *listed, **parts):
        """Let an agent list instances: (UUID, name, project, flavor) each."""
        return agent.send(
            listed=False,
            instances=tuple(
                messages.InstanceInfo(uuid, 'vm', 1, None, *known)
                for uuid, *known in listed
            ),
            reservations=tuple(base.reservation(uuid) for uuid, *_ in listed),
            **parts,
        )

    def known(self, uuid):
        one = instances.get(self.database, uuid)
        return one.server_name, one.project_id, one.flavor_name

    def page(self, limit=100, marker=None, **filters):
        return [
            one.uuid
            for one in instances.page(self.database, limit, marker, **filters)
        ]

    def reserved(self, limit=100, marker=None, **filters):
        return [
            one.instance_uuid
            for one in reservations.page(
                self.database, limit, marker, **filters
            )
        ]

    def test_what_agents_tell(self):
        uuid, plain = base.uuids(2)
        self.list(self.agent(), (uuid, 'web \u2603', ONE, 'm1'), (plain,))
        self.assertEqual(('web \u2603', ONE, 'm1'), self.known(uuid))
        self.assertEqual((None, None, None), self.known(plain))
        one = reservations.get(self.database, uuid)
        self.assertEqual(
            ('web \u2603', ONE, 'm1'),
            (one.server_name, one.project_id, one.flavor_name),
        )
        self.assertEqual(
            {uuid: ('web \u2603', ONE, 'm1'), plain: instances.UNKNOWN},
            instances.servers(self.database, {uuid, plain, *base.uuids(1)}),
        )
        self.assertEqual({}, instances.servers(self.database, ()))

    def test_a_new_name_is_taken_over(self):
        (uuid,) = base.uuids(1)
        agent = self.agent()
        for known in (('a', ONE, 'm1'), ('b', ONE, 'm2'), ()):
            self.list(agent, (uuid, *known))
            self.assertEqual(known or (None,) * 3, self.known(uuid))

    def test_names_are_cleaned(self):
        uuids = base.uuids(3)
        self.list(
            self.agent(),
            (uuids[0], ' a\x00\x1b[2J ', ONE, '\ud800'),
            (uuids[1], '   ', None, ''),
            (uuids[2], 'x' * 300, TWO, '\u2603' * 300),
        )
        self.assertEqual(
            ('a\ufffd\ufffd[2J', ONE, '\ufffd'), self.known(uuids[0])
        )
        self.assertEqual((None, None, None), self.known(uuids[1]))
        self.assertEqual(
            ('x' * 255, TWO, '\u2603' * 255), self.known(uuids[2])
        )
        self.assertEqual([uuids[2]], self.page(server_name='x' * 255))

    def test_projects_are_filtered_page_by_page(self):
        uuids = base.uuids(9)
        for name, mine in (('h1', uuids[::2]), ('h2', uuids[1::2])):
            self.list(
                self.agent(name),
                *(
                    (uuid, 'web', (ONE, TWO, None)[index % 3], 'm1')
                    for index, uuid in enumerate(mine)
                ),
            )
        for project in (ONE, TWO):
            place = (ONE, TWO).index(project)
            expected = sorted([*uuids[::2][place::3], *uuids[1::2][place::3]])
            for page in (self.page, self.reserved):
                self.assertEqual(expected, page(project_id=project))
                found = []
                while more := page(
                    1, found[-1] if found else None, project_id=project
                ):
                    found += more
                self.assertEqual(expected, found)
            self.assertEqual(
                sorted(expected, reverse=True),
                self.reserved(project_id=project, descending=True),
            )
            self.assertEqual(
                [one for one in expected if one in uuids[1::2]],
                self.page(project_id=project, host='h2'),
            )
        self.assertEqual([], self.page(project_id='c'))
        # Compared byte by byte.
        self.assertEqual([], self.page(project_id='A' * 32))

    def test_names_are_filtered(self):
        uuids = base.uuids(4)
        self.list(
            self.agent(),
            *zip(uuids, ('web', 'Web', 'web-1', None), strict=True),
        )
        for page in (self.page, self.reserved):
            self.assertEqual(uuids[:1], page(server_name='web'))
            self.assertEqual(uuids[1:2], page(server_name='Web'))
            self.assertEqual([], page(server_name='we%'))

    def test_flavors_are_filtered_page_by_page(self):
        uuids = base.uuids(8)
        for name, mine in (('h1', uuids[:4]), ('h2', uuids[4:])):
            self.list(
                self.agent(name),
                *(
                    (uuid, 'web', (ONE, TWO)[index % 2], flavor)
                    for index, (uuid, flavor) in enumerate(
                        zip(mine, ('m1', 'M1', None, 'm1'), strict=True)
                    )
                ),
            )
        expected = [*uuids[:4:3], *uuids[4::3]]
        for page in (self.page, self.reserved):
            self.assertEqual(expected, page(flavor_name='m1'))
            found = []
            while more := page(
                1, found[-1] if found else None, flavor_name='m1'
            ):
                found += more
            self.assertEqual(expected, found)
            # Compared byte by byte.
            self.assertEqual([uuids[1], uuids[5]], page(flavor_name='M1'))
            self.assertEqual([], page(flavor_name='m%'))
            self.assertEqual(uuids[4::3], page(flavor_name='m1', host='h2'))
            self.assertEqual(
                [uuids[0], uuids[4]], page(flavor_name='m1', project_id=ONE)
            )
        self.assertEqual(
            expected[::-1], self.reserved(flavor_name='m1', descending=True)
        )

    def test_a_resized_instance_is_of_its_new_flavor(self):
        (uuid,) = base.uuids(1)
        agent = self.agent()
        for flavor, other in (('m1', 'm2'), ('m2', 'm1')):
            self.list(agent, (uuid, 'web', ONE, flavor))
            for page in (self.page, self.reserved):
                self.assertEqual([uuid], page(flavor_name=flavor))
                self.assertEqual([], page(flavor_name=other))

    def test_while_it_migrates_and_after(self):
        (uuid,) = base.uuids(1)
        old, new = self.agent('old'), self.agent('new')
        self.list(old, (uuid, 'web', ONE, 'm1'))
        new.at = old.at = base.NOW + 10
        # The agent of an earlier release.
        self.list(new, (uuid,))
        for _ in range(2):
            self.assertIsNone(instances.project_id(self.database, uuid))
            for page in (self.page, self.reserved):
                self.assertEqual([], page(project_id=ONE))
            self.list(old)
        self.list(new, (uuid, 'web', ONE, 'm1'))
        self.assertEqual(ONE, instances.project_id(self.database, uuid))
        for page in (self.page, self.reserved):
            self.assertEqual([uuid], page(project_id=ONE))
        self.assertEqual(('web', ONE, 'm1'), self.known(uuid))
        self.list(new)
        self.assertEqual([uuid], self.page(project_id=ONE, present=False))
        self.assertEqual(ONE, instances.project_id(self.database, uuid))

    def test_hosts_that_differ(self):
        (uuid,) = base.uuids(1)
        self.list(self.agent('h1'), (uuid, 'web', ONE, 'm1'))
        other = self.agent('h2')
        other.at = base.NOW + 10
        self.list(other, (uuid, 'mine', TWO, 'm1'))
        self.assertIsNone(instances.project_id(self.database, uuid))
        for project in (ONE, TWO):
            for page in (self.page, self.reserved):
                self.assertEqual([], page(project_id=project))
        self.assertEqual([uuid], self.page())
        self.assertIsNone(instances.project_id(self.database, *base.uuids(1)))

    def test_markers_are_of_the_project(self):
        mine, foreign = base.uuids(2)
        self.list(
            self.agent(), (mine, 'a', ONE, 'm1'), (foreign, 'b', TWO, 'm1')
        )
        order = {'sort_key': 'state', 'project_id': ONE}
        self.assertEqual([], self.reserved(1, mine, **order))
        self.assertRaises(errors.Invalid, self.reserved, 1, foreign, **order)

    def test_markers_are_of_the_instance(self):
        mine, foreign = base.uuids(2)
        self.list(
            self.agent(),
            (mine,),
            (foreign,),
            usage=tuple(
                base.sample(uuid, base.NOW + second)
                for uuid in (mine, foreign)
                for second in range(2)
            ),
        )
        marker = usage.page(self.database, 1, instance_uuids=[foreign])[
            0
        ].number
        self.assertEqual(2, len(usage.page(self.database, 9, marker)))
        self.assertRaises(
            errors.Invalid,
            usage.page,
            self.database,
            1,
            marker,
            instance_uuids=[mine],
        )

    def test_more_than_one_statement_takes(self):
        uuids = base.uuids(queries.CHUNK + 1)
        self.list(self.agent(), *((uuid, uuid) for uuid in uuids))
        found = instances.servers(self.database, uuids)
        self.assertEqual(
            {uuid: uuid for uuid in uuids},
            {uuid: one.server_name for uuid, one in found.items()},
        )
