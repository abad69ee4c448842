# SPDX-License-Identifier: Apache-2.0

"""Who decides about room while what the filters know is old."""

import time
from unittest import mock

from nova_filters.tests import fakes
from vsched_standalone.tests.functional.nova import cloud
from vsched_standalone.tests.functional.nova import test_claims

if cloud.MISSING is None:
    from nova_filters import cache
    from nova_filters import hosts
    from nova_filters import process


class TestRoom(test_claims.Claiming):
    """Real scheduler and placement; the filters' copy is the test's."""

    def setUp(self):
        if cloud.MISSING is None:
            self.flags(
                available_filters=[
                    'nova.scheduler.filters.all_filters',
                    'nova_filters.filters.all_filters',
                ],
                enabled_filters=[
                    'ComputeFilter',
                    'VschedReservationFilter',
                    'VschedAllocationErrorFilter',
                    'VschedIoOverheadFilter',
                ],
                group='filter_scheduler',
            )
        super().setUp()
        self.known = cache.Known(hosts.NOTHING, None)
        shared = mock.Mock()
        shared.known.side_effect = lambda: self.known
        patch = mock.patch.object(
            process, 'shared', autospec=True, return_value=shared
        )
        patch.start()
        self.addCleanup(patch.stop)
        self.own = self.host('node1', 1000)

    def tell(self, admitted_mcpu, **facts):
        """What the filters know of node1, from now on."""
        self.known = cache.Known(
            hosts.NOTHING.after(
                fakes.answer(
                    fakes.host(
                        'node1',
                        capacity_mcpu=1000,
                        admitted_mcpu=admitted_mcpu,
                        **facts,
                    )
                ),
                'tag',
            ),
            time.monotonic(),
        )

    def status(self, flavor, **more):
        return self.settled(self.boot(flavor, **more))['status']

    def test_a_boot_right_after_a_delete(self):
        flavor = self.promising(10_000)
        self.tell(0)
        first, second = (self.active(flavor) for _ in range(2))
        # The copy, as it is for as long as nothing newer was heard.
        self.tell(1000)
        self.assertEqual('ERROR', self.status(flavor))
        self._delete_server(first)
        # Nova says that it's done before it has told placement.
        self.settles(self.own, {second['id']: 500})
        third = self.active(flavor)
        self.assertEqual(
            {second['id']: 500, third['id']: 500}, self.claimed(self.own)
        )

    def test_room_that_only_the_copy_still_has(self):
        """Placement has given it away; an old copy changes nothing."""
        flavor = self.promising(10_000)
        self.tell(0)
        for _ in range(2):
            self.active(flavor)
        self.assertEqual('ERROR', self.status(flavor))
        self.assertEqual(1000, sum(self.claimed(self.own).values()))

    def test_several_at_once_with_an_old_copy(self):
        self.tell(1000)
        flavor = self.promising(5_000)
        self.boot(flavor, min_count=4, max_count=4)
        self.assertEqual(
            ['ACTIVE'] * 4, [one['status'] for one in self.all_settled()]
        )
        self.assertEqual(1000, sum(self.claimed(self.own).values()))

    def test_what_does_not_claim(self):
        flavor = self.flavor(**{'vsched:cpu_runtime_us': '10000'})
        self.tell(1000)
        self.assertEqual('ERROR', self.status(flavor))
        self.tell(500)
        self.assertEqual('ACTIVE', self.status(flavor))

    def test_fitness_is_still_asked(self):
        flavor = self.promising(10_000)
        self.tell(0, backends=('cfs',))
        self.assertEqual('ERROR', self.status(flavor))
        self.tell(0)
        self.assertEqual('ACTIVE', self.status(flavor))
