# SPDX-License-Identifier: Apache-2.0

"""What instances got in the newest part: on every database alike."""

from unittest import mock

import sqlalchemy as sa

from vsched_api.operations import usage_totals
from vsched_api.tests import base
from vsched_lib.contract import messages

MINE, OTHER = 'a' * 32, 'b' * 32


class UsageTotals:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.one, self.two, self.three = base.uuids(3)
        self.nodes = {}

    def report(self, host, *samples, **parts):
        """Have a host report samples: (UUID, seconds, changes) each."""
        if host not in self.nodes:
            self.nodes[host] = self.agent(host)
        self.nodes[host].send(
            listed=False,
            **parts,
            usage=tuple(
                base.sample(uuid, base.NOW + second, **changes)
                for uuid, second, changes in samples
            ),
        )

    def fill(self, host, uuid, first, last, **changes):
        """Have a host report a sample of an instance in each second."""
        self.report(
            host,
            *((uuid, second, changes) for second in range(first, last + 1)),
        )

    def page(self, limit=100, marker=None, since=0, window_s=10, **filters):
        return usage_totals.page(
            self.database,
            limit,
            marker,
            since,
            window_s * 1_000_000,
            **filters,
        )

    def samples(self, **more):
        """Return the number of samples by host and instance."""
        return {
            (one.host, total.instance_uuid): total.samples
            for one in self.page(**more)
            for total in one.totals
        }

    def test_sums(self):
        self.report(
            'node1',
            (self.one, 0, {}),
            (self.one, 8, {'promised_us': None, 'guest_us': 500_000}),
            (
                self.one,
                9.5,
                {
                    'guest_us': 300_000,
                    'wait_us': 7,
                    'promised_us': 400_000,
                    'direct_us': 5,
                    'shared_us': 3,
                },
            ),
            (self.two, 9, {'promised_us': None}),
        )
        (host,) = self.page(window_s=5)
        self.assertEqual(
            ('node1', base.NOW + 9.5, None),
            (host.host, host.newest_at, host.covered_us),
        )
        found = {one.instance_uuid: one for one in host.totals}
        self.assertEqual({self.one, self.two}, set(found))
        one = found[self.one]
        self.assertEqual(
            (base.NOW + 9.5, 2, 2_000_000, 800_000, 400_000, 300_000),
            (
                one.at,
                one.samples,
                one.interval_us,
                one.guest_us,
                one.promised_us,
                one.promised_guest_us,
            ),
        )
        self.assertEqual('node1', one.host)
        self.assertEqual(
            (7, 5, 3), (one.wait_us, one.direct_us, one.shared_us)
        )
        self.assertIsNone(found[self.two].promised_us)

    def test_each_host_has_its_own_window(self):
        for host, uuid, last in (
            ('late', self.one, 30),
            ('right', self.two, 90),
            ('ahead', self.three, 94),
        ):
            self.fill(host, uuid, last - 29, last)
        self.assertEqual(
            {
                ('late', self.one): 10,
                ('right', self.two): 10,
                ('ahead', self.three): 10,
            },
            self.samples(),
        )

    def test_ends_of_the_window(self):
        for first in (1, 1.25):
            self.report(
                'node1',
                *((self.one, first + number, {}) for number in range(20)),
            )
        self.assertEqual({('node1', self.one): 10}, self.samples(window_s=5))

    def test_hosts_page_by_page(self):
        self.agent('empty').first()
        for number in range(5):
            self.report('node%d' % number, (self.one, 1, {}))
        pages, marker = [], None
        while found := self.page(limit=2, marker=marker):
            pages.append([one.host for one in found])
            marker = found[-1].number
        self.assertEqual([2, 2, 2], [len(each) for each in pages])
        self.assertEqual(
            {'empty', *('node%d' % number for number in range(5))},
            {name for each in pages for name in each},
        )

    def test_hosts_that_are_down(self):
        self.report('node1', (self.one, 1, {}))
        self.now += 100
        self.report('node2', (self.two, 1, {}))
        self.assertEqual(
            {('node2', self.two)}, set(self.samples(since=self.now - 30))
        )
        self.assertEqual(
            {('node1', self.one)},
            set(self.samples(since=self.now - 30, host='node1')),
        )
        self.assertEqual({}, self.samples(host='node9'))

    def test_of_a_project(self):
        def info(uuid, *known):
            return messages.InstanceInfo(uuid, 'vm', 1, None, *known)

        self.report(
            'node1',
            (self.one, 1, {}),
            (self.two, 2, {}),
            instances=(
                info(self.one, 'web-1', MINE, 'small'),
                info(self.two, 'db-1', OTHER, 'small'),
            ),
        )
        self.report(
            'node2',
            (self.three, 1, {}),
            instances=(info(self.three, 'web-2', OTHER, 'big'),),
        )
        for filters, expected in (
            ({'project_id': MINE}, {self.one}),
            ({'project_id': OTHER}, {self.two, self.three}),
            ({'flavor_name': 'small'}, {self.one, self.two}),
            ({'server_name': 'web-2'}, {self.three}),
            (
                {'instance_uuids': [self.one, self.three]},
                {self.one, self.three},
            ),
            ({'project_id': 'c'}, set()),
            ({'project_id': MINE, 'instance_uuids': [self.two]}, set()),
        ):
            self.assertEqual(
                expected,
                {uuid for _, uuid in self.samples(**filters)},
                filters,
            )
        # Hosts with nothing of theirs are not read.
        (host,) = self.page(project_id=MINE)
        self.assertEqual('node1', host.host)

    def test_too_many_samples(self):
        self.fill('node1', self.one, 1, 20)
        self.fill('node1', self.two, 1, 20)
        self.fill('node2', self.three, 1, 20)
        with mock.patch.object(usage_totals, 'MAX_SAMPLES', 20):
            found = self.page(window_s=60)
        self.assertEqual(
            {'node1': 5_000_000, 'node2': 10_000_000},
            {one.host: one.covered_us for one in found},
        )
        self.assertEqual(
            {5, 10}, {total.samples for one in found for total in one.totals}
        )

    def test_statements_do_not_grow_with_the_hosts(self):
        counts = []
        for number in range(12):
            self.fill('node%d' % number, self.one, 1, 3)
            counts.append(self.statements())
        self.assertEqual(counts[0], counts[-1])

    def statements(self):
        """Return how many statements it takes to read a page."""
        found = []

        def tell(connection, cursor, statement, *more):
            found.append(statement)

        self.page()
        engine = self.database._engines[0]
        sa.event.listen(engine, 'before_cursor_execute', tell)
        try:
            self.page()
        finally:
            sa.event.remove(engine, 'before_cursor_execute', tell)
        return len(found)
