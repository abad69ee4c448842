# SPDX-License-Identifier: Apache-2.0

"""What instances got in the newest part of the time."""

import datetime
from unittest import mock

from vsched_client.tests.unit import api_case
from vsched_client.v1 import usage

_START = datetime.datetime(2027, 1, 15, 8, tzinfo=datetime.UTC)


class TotalsTestCase(api_case.ApiTestCase):
    """Has an API with samples of hosts.

    :ivar samples: by host, oldest first.
    :ivar hosts: those that are up, if not all.
    """

    def setUp(self):
        super().setUp()
        self.samples = {}
        self.hosts = None
        self.read = 0
        self.api.get(api_case.URL + '/v1/hosts', json=self._hosts)
        self.api.get(api_case.URL + '/v1/usage', json=self._usage)

    def _hosts(self, request, context):
        self.assertEqual(['up'], request.qs['state'])
        names = self.samples if self.hosts is None else self.hosts
        return {'hosts': [{'name': name, 'state': 'up'} for name in names]}

    def _usage(self, request, context):
        self.assertEqual(['desc'], request.qs['sort_dir'])
        found = sorted(
            (
                one
                for host in request.qs.get('host', self.samples)
                for one in self.samples.get(host, [])
            ),
            key=lambda one: one['at'],
            reverse=True,
        )
        if 'start' in request.qs:
            start = datetime.datetime.fromisoformat(
                request.qs['start'][0].upper()
            )
            found = [
                one
                for one in found
                if datetime.datetime.fromisoformat(one['at']) > start
            ]
        first = int(request.qs.get('marker', ['0'])[0])
        limit = min(1000, int(request.qs['limit'][0]))
        page = found[first : first + limit]
        self.read += len(page)
        answer = {'usage': page}
        if found[first + limit :]:
            answer['links'] = [
                {'rel': 'next', 'href': '/?marker=%d' % (first + limit)}
            ]
        return answer

    def sample(self, uuid, second, host='node1', **changes):
        at = _START + datetime.timedelta(seconds=second)
        return {
            'instance_uuid': uuid,
            'host': host,
            'at': at.strftime('%Y-%m-%dT%H:%M:%S.%fZ'),
            'interval_us': 1_000_000,
            'guest_us': 300_000,
            'wait_us': 100_000,
            'promised_us': None,
            'direct_us': 10_000,
            'shared_us': 5_000,
            **changes,
        }

    def fill(self, host, instances, seconds, last_s):
        """Have a host report each of its instances in each second."""
        self.samples[host] = [
            self.sample('%s-%d' % (host, number), second, host)
            for second in range(last_s - seconds + 1, last_s + 1)
            for number in range(instances)
        ]

    def totals(self, *arguments):
        found = self.client.usage.totals(*arguments)
        return found, {one.instance_uuid: one for one in found.instances}

    def test_sums(self):
        self.samples['node1'] = [
            self.sample('a', 4),
            self.sample('a', 8, guest_us=500_000),
            self.sample('b', 9),
            self.sample('a', 9, promised_us=600_000),
        ]
        totals, found = self.totals(5)
        self.assertEqual((1, {}), (totals.hosts, totals.cut))
        one = found['a']
        self.assertEqual(2, one.samples)
        self.assertEqual(400, one.mcpu(one.guest_us))
        self.assertEqual(15, one.mcpu(one.host_us))
        self.assertEqual(-500_000, one.error_ppm)
        self.assertIsNone(found['b'].error_ppm)

    def test_nothing(self):
        self.assertEqual([], self.totals(5)[0].instances)
        self.samples['node1'] = []
        totals, _ = self.totals(5)
        self.assertEqual((0, []), (totals.hosts, totals.instances))

    def test_an_empty_interval(self):
        self.samples['node1'] = [self.sample('a', 9, interval_us=0)]
        (one,) = self.totals(5)[1].values()
        self.assertIsNone(one.mcpu(one.guest_us))

    def test_hosts_that_report_late_or_whose_clock_is_ahead(self):
        self.fill('late', 3, 30, 1_000)
        self.fill('right', 3, 30, 1_060)
        self.fill('ahead', 3, 30, 1_065)
        totals, found = self.totals(10)
        self.assertEqual((3, 9), (totals.hosts, len(found)))
        self.assertEqual({10}, {one.samples for one in found.values()})

    def test_only_hosts_that_are_up_or_the_one_that_is_named(self):
        self.fill('node1', 2, 5, 1_000)
        self.fill('node2', 2, 5, 1_000)
        self.hosts = ['node1']
        self.assertEqual({'node1-0', 'node1-1'}, self.totals(10)[1].keys())
        self.assertEqual(
            {'node2-0', 'node2-1'}, self.totals(10, 'node2')[1].keys()
        )

    def test_who_may_not_list_hosts_has_one_window(self):
        self.api.get(api_case.URL + '/v1/hosts', status_code=403, json={})
        self.samples['node1'] = [self.sample('a', 1), self.sample('a', 9)]
        self.samples['node2'] = [self.sample('b', 7, 'node2')]
        totals, found = self.totals(5)
        self.assertEqual({'a', 'b'}, set(found))
        self.assertEqual(1, found['a'].samples)
        with mock.patch.object(usage, 'LIMIT', 1):
            with mock.patch.object(usage, 'MIN_PER_HOST', 1):
                totals, _ = self.totals(5)
        self.assertEqual({'node1': 2.0}, totals.cut)

    def test_many_instances(self):
        """All are there, also those of late hosts, with all samples."""
        for number in range(40):
            self.fill('node%d' % number, 200, 12, 1_000 + number % 7)
        totals, found = self.totals(10)
        self.assertEqual((8_000, {}), (len(found), totals.cut))
        self.assertEqual({10}, {one.samples for one in found.values()})

    def test_too_many_samples(self):
        self.fill('node1', 30, 60, 1_000)
        self.fill('node2', 1, 60, 1_000)
        with (
            mock.patch.object(usage, 'LIMIT', 200),
            mock.patch.object(usage, 'MIN_PER_HOST', 10),
        ):
            totals, found = self.totals(60)
        # 100 of them for each host: 3 seconds and a part of the fourth.
        self.assertEqual({'node1': 3.0}, totals.cut)
        self.assertEqual(31, len(found))
        self.assertEqual(
            {3, 4},
            {
                one.samples
                for uuid, one in found.items()
                if uuid.startswith('node1')
            },
        )
        self.assertEqual(60, found['node2-0'].samples)
        self.assertEqual(101 + 60 + 2, self.read)
        with (
            mock.patch.object(usage, 'LIMIT', 2),
            mock.patch.object(usage, 'MIN_PER_HOST', 30),
        ):
            totals, found = self.totals(60)
        self.assertEqual(
            ({'node1': 1.0, 'node2': 30.0}, 31), (totals.cut, len(found))
        )

    def test_a_migrated_instance_counts_once(self):
        self.samples = {
            'node1': [self.sample('a', 8)],
            'node2': [self.sample('a', 9, 'node2')],
        }
        for order in (('node1', 'node2'), ('node2', 'node1')):
            self.hosts = order
            (one,) = self.totals(5)[1].values()
            self.assertEqual(('node2', 2), (one.host, one.samples))

    def test_names_and_filters(self):
        names = {
            'server_name': 'web-1',
            'project_id': 'p1',
            'flavor_name': 'm1.reserved',
        }
        self.samples['node1'] = [
            self.sample('a', 8, **names),
            self.sample('b', 9),
        ]
        found = self.client.usage.totals(5, **names)
        by_uuid = {one.instance_uuid: one for one in found.instances}
        for name, value in names.items():
            self.assertEqual(value, getattr(by_uuid['a'], name))
            self.assertIsNone(getattr(by_uuid['b'], name))
        asked = [
            one for one in self.api.request_history if one.path == '/v1/usage'
        ]
        self.assertEqual(2, len(asked))
        for one in asked:
            self.assertLessEqual(
                {name: [value] for name, value in names.items()}.items(),
                one.qs.items(),
            )
