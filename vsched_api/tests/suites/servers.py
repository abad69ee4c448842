# SPDX-License-Identifier: Apache-2.0

"""What is told of servers, and found by them: on every database alike."""

from vsched_api.operations import balloons
from vsched_api.operations import errors
from vsched_api.operations import events
from vsched_api.operations import instances
from vsched_api.operations import rollups
from vsched_api.operations import usage
from vsched_api.tests import base
from vsched_lib.contract import messages
from vsched_lib.tests import balloon_reports

MINE, OTHER = 'a' * 32, 'b' * 32


class Servers:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.web, self.db, self.plain, self.unlisted = base.uuids(4)
        self.node = self.agent()
        self.node.send(
            listed=False,
            instances=(
                self.info(self.web, 'web-1', MINE, 'small'),
                self.info(self.db, 'db-1', OTHER, 'big'),
                self.info(self.plain),
            ),
            **self.told(self.web, self.db, self.plain, self.unlisted),
        )

    def info(self, uuid, *known):
        return messages.InstanceInfo(uuid, 'vm', 1, None, *known)

    def told(self, *uuids):
        """Return what a report tells of these instances, one second each."""
        return {
            'events': (
                base.event(base.NOW),
                *(
                    base.event(base.NOW + second, instance_uuid=uuid)
                    for second, uuid in enumerate(uuids, 1)
                ),
            ),
            'balloon_changes': tuple(
                balloon_reports.change(uuid, started_at=base.NOW + second)
                for second, uuid in enumerate(uuids, 1)
            ),
            'usage': tuple(
                base.sample(uuid, base.NOW + second)
                for second in range(2)
                for uuid in uuids
            ),
        }

    def lists(self):
        """Yield what lists events and balloons that were."""
        yield lambda **more: events.page(self.database, 100, **more)
        yield lambda **more: balloons.history(self.database, 100, **more)

    def found(self, act, **filters):
        return [one.instance_uuid for one in act(**filters)]

    def test_servers_are_named(self):
        for act in self.lists():
            self.assertEqual(
                {
                    self.web: ('web-1', MINE, 'small'),
                    self.db: ('db-1', OTHER, 'big'),
                    self.plain: instances.UNKNOWN,
                    self.unlisted: instances.UNKNOWN,
                },
                {
                    one.instance_uuid: (
                        one.server_name,
                        one.project_id,
                        one.flavor_name,
                    )
                    for one in act()
                    if one.instance_uuid is not None
                },
            )
        # The first one is of the host, and of no instance.
        last = events.page(self.database, 100)[-1]
        self.assertEqual((None, None), (last.instance_uuid, last.server_name))

    def test_filters(self):
        for act in self.lists():
            for name, value, uuid in (
                ('server_name', 'web-1', self.web),
                ('project_id', OTHER, self.db),
                ('flavor_name', 'small', self.web),
            ):
                self.assertEqual([uuid], self.found(act, **{name: value}))
                self.assertEqual([], self.found(act, **{name: 'x'}))
            self.assertEqual(
                [], self.found(act, server_name='web-1', project_id=OTHER)
            )
            self.assertEqual(
                [self.web],
                self.found(
                    act,
                    server_name='web-1',
                    project_id=MINE,
                    flavor_name='small',
                    instance_uuids=[self.web],
                    host=base.HOST,
                ),
            )
            self.assertEqual(
                [], self.found(act, project_id=MINE, instance_uuids=[self.db])
            )

    def test_page_by_page(self):
        self.node.send(
            listed=False,
            instances=(
                self.info(self.web, 'web-1', MINE, 'small'),
                self.info(self.db, 'db-1', MINE, 'big'),
            ),
        )
        for act in self.lists():
            (newest, oldest) = act(project_id=MINE)
            self.assertEqual(
                [oldest], act(project_id=MINE, marker=newest.uuid)
            )

    def test_while_it_migrates(self):
        self.agent('node2').send(
            listed=False, instances=(self.info(self.web, 'new', MINE, 'big'),)
        )
        for act in self.lists():
            # Once each, under the name that the newer host tells.
            self.assertEqual([self.web], self.found(act, server_name='new'))
            self.assertEqual([], self.found(act, server_name='web-1'))
            self.assertEqual([self.web], self.found(act, project_id=MINE))

    def test_projects_that_hosts_differ_in(self):
        self.agent('node2').send(
            listed=False, instances=(self.info(self.web, 'new', OTHER),)
        )
        for act in self.lists():
            self.assertEqual([], self.found(act, project_id=MINE))
            self.assertEqual([self.db], self.found(act, project_id=OTHER))

    def test_several_instances(self):
        for act in self.lists():
            self.assertEqual(
                {self.web, self.unlisted},
                set(self.found(act, instance_uuids=[self.web, self.unlisted])),
            )
            self.assertEqual(
                [self.web],
                self.found(
                    act, instance_uuids=[self.web, self.db], project_id=MINE
                ),
            )
        self.assertEqual(
            sorted([self.web, self.db]),
            [
                one.uuid
                for one in instances.page(
                    self.database,
                    100,
                    None,
                    instance_uuids=[self.web, self.db, self.unlisted],
                )
            ],
        )

    # Usage

    def fold(self):
        rollups.fold(self.database, 1000)

    def used(self):
        """Yield what lists usage, and how many items an instance has."""
        self.fold()
        yield lambda **more: usage.page(self.database, 100, **more), 2
        for resolution in (usage.Resolution.MINUTE, usage.Resolution.HOUR):
            yield (
                lambda resolution=resolution, **more: usage.buckets(
                    self.database, resolution, 100, **more
                ),
                2,
            )

    def test_usage_of_servers(self):
        for act, count in self.used():
            for filters, uuids in (
                ({'server_name': 'web-1'}, {self.web}),
                ({'project_id': OTHER}, {self.db}),
                ({'flavor_name': 'small'}, {self.web}),
                ({'flavor_name': 'small', 'host': base.HOST}, {self.web}),
                ({'flavor_name': 'small', 'host': 'none'}, set()),
                ({'server_name': 'web-1', 'project_id': OTHER}, set()),
                ({'server_name': 'web-9'}, set()),
                (
                    {'instance_uuids': [self.web, self.db, self.plain]},
                    {self.web, self.db, self.plain},
                ),
                (
                    {
                        'instance_uuids': [self.web, self.db],
                        'project_id': MINE,
                    },
                    {self.web},
                ),
                ({'instance_uuids': [self.unlisted]}, {self.unlisted}),
            ):
                found = self.found(act, **filters)
                self.assertEqual(uuids, set(found), filters)
                self.assertEqual(len(uuids) * count, len(found), filters)
                self.assertEqual(
                    act(**filters), act(newest_first=True, **filters)[::-1]
                )

    def test_usage_page_by_page(self):
        filters = {'instance_uuids': [self.web, self.plain]}
        for act, _ in self.used():
            whole = act(**filters)
            for place, one in enumerate(whole):
                self.assertEqual(
                    whole[place + 1 :], act(marker=one.number, **filters)
                )
            foreign = act(server_name='db-1')[0].number
            self.assertRaises(errors.Invalid, act, marker=foreign, **filters)
            self.assertRaises(
                errors.Invalid, act, marker=foreign, project_id=MINE
            )

    def test_an_empty_project_is_one(self):
        # Not the same as all projects.
        for act, _ in self.used():
            self.assertEqual([], act(project_id=''))

    def test_hosts_have_no_servers(self):
        for name, value in (
            ('instance_uuids', [self.web]),
            ('project_id', MINE),
            ('server_name', 'web-1'),
            ('flavor_name', 'small'),
        ):
            for resolution in usage.Resolution:
                problem = self.assertRaises(
                    errors.Invalid,
                    usage.of_hosts,
                    self.database,
                    resolution,
                    10,
                    **{name: value},
                )
                self.assertIn(name.removesuffix('s'), str(problem))
