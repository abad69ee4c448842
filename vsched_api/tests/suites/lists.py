# SPDX-License-Identifier: Apache-2.0

"""Lists in an order of choice, page by page: on every database alike."""

from vsched_api.operations import announcements
from vsched_api.operations import errors
from vsched_api.operations import hosts
from vsched_api.operations import instances
from vsched_api.operations import overrides
from vsched_api.operations import reservations
from vsched_api.tests import base
from vsched_lib.contract import messages

_DOWN_AFTER_S = 60.0
_LARGE = 2**62


class Lists:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def report(self, name, age_s=0.0, **changes):
        self.now = base.NOW + 1000 - age_s
        self.agent(name).send(host_info=base.host_info(**changes))
        self.now = base.NOW + 1000

    def fill_hosts(self):
        self.report('b-2', admitted_mcpu=600)
        self.report('B-1', admitted_mcpu=900)
        self.report(
            'b-1',
            admitted_mcpu=600,
            backends=(
                messages.BackendInfo('deadline', False, ('none',)),
                messages.BackendInfo('cfs', True),
            ),
        )
        self.report('b_1', 90, admitted_mcpu=-5)
        self.report('a%', 80, admitted_mcpu=600)
        # It has told nothing of itself.
        self.agent('c').send()

    def hosts(self, limit=100, marker=None, **more):
        return [
            one.name
            for one in hosts.page(
                self.database, limit, marker, self.now, _DOWN_AFTER_S, **more
            )
        ]

    def walked(self, page, **more):
        """Return what pages of two have together."""
        found = []
        while size := page(2, found[-1] if found else None, **more):
            found += size
            self.assertLess(len(found), 100)
        return found

    def test_hosts_are_filtered(self):
        self.fill_hosts()
        self.assertEqual({'b_1', 'a%'}, set(self.hosts(state='down')) - {'c'})
        self.assertEqual(
            {'b-2', 'B-1', 'b-1'}, set(self.hosts(state='up')) - {'c'}
        )
        self.assertEqual({'b-1', 'b-2'}, set(self.hosts(name_prefix='b-')))
        self.assertEqual(['B-1'], self.hosts(name_prefix='B'))
        self.assertEqual(['b_1'], self.hosts(name_prefix='b_'))
        self.assertEqual(['a%'], self.hosts(name_prefix='a%'))
        self.assertEqual([], self.hosts(name_prefix='%'))
        self.assertEqual(
            {'b-2', 'B-1', 'b_1', 'a%'}, set(self.hosts(backend='deadline'))
        )
        self.assertEqual(
            ['a%'], self.hosts(backend='cfs', state='down', name_prefix='a')
        )
        self.assertEqual([], self.hosts(backend='rtds'))

    def test_hosts_are_sorted_page_by_page(self):
        self.fill_hosts()
        every = self.hosts()
        self.assertEqual(6, len(every))
        for key in hosts.SORT_KEYS:
            for descending in (False, True):
                order = {'sort_key': key, 'descending': descending}
                whole = self.hosts(**order)
                self.assertEqual(set(every), set(whole))
                self.assertEqual(whole, self.walked(self.hosts, **order))
                # The same the other way round.
                self.assertEqual(
                    whole[::-1],
                    self.hosts(sort_key=key, descending=not descending),
                )
        admitted = self.hosts(sort_key='admitted_mcpu')
        self.assertEqual(['b_1', 'c'], admitted[:2])
        self.assertEqual('B-1', admitted[-1])
        reported = self.hosts(sort_key='last_report_at')
        self.assertEqual(['b_1', 'a%'], reported[:2])
        # Those that are alike are in the order of their names.
        self.assertEqual(
            [one for one in every if one in ('b-2', 'b-1', 'a%')],
            [one for one in admitted if one in ('b-2', 'b-1', 'a%')],
        )

    def test_a_filter_holds_for_every_page(self):
        self.fill_hosts()
        order = {
            'sort_key': 'admitted_mcpu',
            'descending': True,
            'state': 'up',
        }
        self.assertEqual(self.hosts(**order), self.walked(self.hosts, **order))

    def test_a_marker_that_no_host_has(self):
        self.fill_hosts()
        self.assertRaises(
            errors.Invalid, self.hosts, 2, 'x', sort_key='admitted_mcpu'
        )
        # In the order of names it needs no host.
        self.assertEqual([], self.hosts(2, 'x'))

    def fill_reservations(self):
        self.uuids = base.uuids(8)
        for name, mine in (('h2', self.uuids[:4]), ('h1', self.uuids[4:])):
            self.agent(name).first(
                *mine,
                reservations=[
                    base.reservation(one, **changes)
                    for one, changes in zip(
                        mine,
                        (
                            {'runtime_us': 7, 'period_us': 3 * 10**6},
                            {'vcpus': 2},
                            {'state': messages.State.REFUSED},
                            {'runtime_us': _LARGE, 'period_us': 1},
                        )
                        if name == 'h2'
                        else (
                            {},
                            {'runtime_us': 1, 'period_us': 0},
                            {
                                'source': messages.Source.NONE,
                                'state': messages.State.RELEASED,
                                'runtime_us': None,
                                'period_us': None,
                            },
                            {'runtime_us': 20_000, 'vcpus': 4},
                        ),
                        strict=True,
                    )
                ],
            )

    def reservations(self, limit=100, marker=None, **more):
        return [
            one.instance_uuid
            for one in reservations.page(self.database, limit, marker, **more)
        ]

    def test_reservations_are_sorted_page_by_page(self):
        self.fill_reservations()
        for key in reservations.SORT_KEYS:
            for descending in (False, True):
                order = {'sort_key': key, 'descending': descending}
                whole = self.reservations(**order)
                self.assertEqual(set(self.uuids), set(whole))
                self.assertEqual(
                    whole, self.walked(self.reservations, **order)
                )
                self.assertEqual(
                    whole[::-1],
                    self.reservations(sort_key=key, descending=not descending),
                )
        self.assertEqual(self.uuids, self.reservations())
        self.assertEqual(
            self.uuids[4:] + self.uuids[:4], self.reservations(sort_key='host')
        )
        # Applied ones come before refused and released ones.
        self.assertEqual(
            [self.uuids[2], self.uuids[6]],
            self.reservations(sort_key='state')[-2:],
        )

    def test_reservations_by_their_bandwidth(self):
        self.fill_reservations()
        found = self.reservations(sort_key='bandwidth_mcpu', descending=True)
        self.assertEqual(self.uuids[3], found[0])
        self.assertEqual(self.uuids[7], found[1])
        # Those without one come last.
        self.assertEqual({self.uuids[5], self.uuids[6]}, set(found[-2:]))
        self.assertEqual(self.uuids[0], found[-3])

    def test_reservations_of_several_instances(self):
        self.fill_reservations()
        some = [self.uuids[6], self.uuids[1], base.uuids(1)[0]]
        self.assertEqual(
            sorted(some[:2]), self.reservations(instance_uuids=some)
        )

    def test_a_marker_that_no_reservation_has(self):
        self.fill_reservations()
        (other,) = base.uuids(1)
        self.assertRaises(
            errors.Invalid, self.reservations, 2, other, sort_key='host'
        )

    def instances(self, limit=100, marker=None, **more):
        return [
            one.uuid
            for one in instances.page(self.database, limit, marker, **more)
        ]

    def fill_instances(self):
        self.fill_reservations()
        (self.plain,) = base.uuids(1)
        self.agent('h3').send(
            listed=False,
            instances=(
                messages.InstanceInfo(
                    self.plain, 'vm', 9, None, 'web', 'p1', 'small'
                ),
            ),
        )

    def test_instances_are_sorted_page_by_page(self):
        self.fill_instances()
        every = sorted([*self.uuids, self.plain])
        for key in instances.SORT_KEYS:
            for descending in (False, True):
                order = {'sort_key': key, 'descending': descending}
                whole = self.instances(**order)
                self.assertEqual(every, sorted(whole))
                self.assertEqual(whole, self.walked(self.instances, **order))
                self.assertEqual(
                    whole[::-1],
                    self.instances(sort_key=key, descending=not descending),
                )
        self.assertEqual(every, self.instances())
        self.assertEqual(
            [*self.uuids[4:], *self.uuids[:4], self.plain],
            self.instances(sort_key='host'),
        )
        for key in ('server_name', 'vcpus'):
            # Those that are alike are in the order of their UUIDs.
            self.assertEqual(
                [*self.uuids, self.plain], self.instances(sort_key=key)
            )

    def test_instances_by_the_state_of_their_reservation(self):
        self.fill_instances()
        for state in messages.State:
            self.assertEqual(
                self.reservations(states=[state]),
                self.instances(states=[state]),
                state,
            )
        self.assertEqual(
            [self.uuids[2], self.uuids[6]],
            self.instances(states=['refused', 'released']),
        )
        # All states are not all instances.
        self.assertEqual(self.uuids, self.instances(states=[*messages.State]))
        order = {
            'sort_key': 'host',
            'descending': True,
            'states': ['applied', 'refused'],
        }
        self.assertEqual(
            self.instances(**order), self.walked(self.instances, **order)
        )

    def test_instances_with_an_override_that_is_not_answered(self):
        self.fill_instances()
        reservations.change(
            self.database,
            announcements.Announcer(None),
            overrides.Change(self.uuids[0], self.now),
            {'runtime_us': 5000},
        )
        self.assertEqual([self.uuids[0]], self.instances(states=['pending']))
        self.assertNotIn(self.uuids[0], self.instances(states=['applied']))

    def test_a_marker_that_no_instance_has(self):
        self.fill_instances()
        (other,) = base.uuids(1)
        self.assertRaises(
            errors.Invalid, self.instances, 2, other, sort_key='vcpus'
        )
        # In the order of UUIDs it needs no instance.
        self.instances(2, other)
