# SPDX-License-Identifier: Apache-2.0

"""What instances got in the newest part of the time."""

from vsched_client.tests.unit import api_case


class TotalsTestCase(api_case.ApiTestCase):
    """Has an API with sums of hosts.

    :ivar pages: of its answers: by host the sums, and the window's covered
        part if that is not all.
    """

    def setUp(self):
        super().setUp()
        self.pages = []
        self.cut = {}
        self.shown = True
        self.api.get(api_case.URL + '/v1/usage/totals', json=self._totals)

    def _totals(self, request, context):
        place = int(request.qs.get('marker', ['0'])[0])
        page = self.pages[place] if self.pages else {}
        answer = {
            'totals': [one for sums in page.values() for one in sums],
            'hosts': [
                {
                    'host': host,
                    'newest_at': sums[0]['at'] if sums else None,
                    'covered_us': self.cut.get(host),
                }
                for host, sums in page.items()
                if self.shown
            ],
            'links': [],
        }
        if self.pages[place + 1 :]:
            answer['links'] = [
                {'rel': 'next', 'href': '/?marker=%d' % (place + 1)}
            ]
        return answer

    def sum(self, uuid, second, host='node1', **changes):
        return {
            'instance_uuid': uuid,
            'host': host,
            'at': '2027-01-15T08:00:%02d.000000Z' % second,
            'samples': 2,
            'interval_us': 2_000_000,
            'guest_us': 800_000,
            'wait_us': 200_000,
            'promised_us': None,
            'promised_guest_us': 0,
            'direct_us': 20_000,
            'shared_us': 10_000,
            **changes,
        }

    def totals(self, *arguments):
        found = self.client.usage.totals(*arguments)
        return found, {one.instance_uuid: one for one in found.instances}

    def test_sums(self):
        self.pages = [
            {
                'node1': [
                    self.sum(
                        'a', 9, promised_us=600_000, promised_guest_us=300_000
                    ),
                    self.sum('b', 9),
                ],
                'node2': [],
            }
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
        totals, _ = self.totals(5)
        self.assertEqual((0, []), (totals.hosts, totals.instances))

    def test_an_empty_interval(self):
        self.pages = [{'node1': [self.sum('a', 9, interval_us=0)]}]
        (one,) = self.totals(5)[1].values()
        self.assertIsNone(one.mcpu(one.guest_us))

    def test_one_request_for_each_page_of_hosts(self):
        self.pages = [
            {
                'node1': [self.sum('a', 9)],
                'node2': [self.sum('b', 9, 'node2')],
            },
            # Who may not see hosts may have a page with nothing.
            {},
            {'node3': [self.sum('c', 9, 'node3')]},
        ]
        for self.shown, hosts in ((True, 3), (False, 0)):
            totals, found = self.totals(5)
            self.assertEqual(hosts, totals.hosts)
            self.assertEqual({'a', 'b', 'c'}, set(found))
        self.assertEqual(6, len(self.api.request_history))

    def test_too_many_samples(self):
        self.pages = [
            {'node1': [self.sum('a', 9)], 'node2': [self.sum('b', 9, 'node2')]}
        ]
        self.cut = {'node1': 3_000_000}
        self.assertEqual({'node1': 3.0}, self.totals(60)[0].cut)

    def test_a_migrated_instance_counts_once(self):
        sums = self.sum('a', 8), self.sum('a', 9, 'node2')
        for first, second in (sums, sums[::-1]):
            self.pages = [{first['host']: [first]}, {second['host']: [second]}]
            (one,) = self.totals(5)[1].values()
            self.assertEqual(('node2', 4), (one.host, one.samples))

    def test_names_and_filters(self):
        names = {
            'server_name': 'web-1',
            'project_id': 'p1',
            'flavor_name': 'm1.reserved',
        }
        self.pages = [{'node1': [self.sum('a', 8, **names), self.sum('b', 9)]}]
        found = self.client.usage.totals(5, host='node1', **names)
        by_uuid = {one.instance_uuid: one for one in found.instances}
        for name, value in names.items():
            self.assertEqual(value, getattr(by_uuid['a'], name))
            self.assertIsNone(getattr(by_uuid['b'], name))
        (asked,) = self.api.request_history
        self.assertEqual(
            {
                'window_us': ['5000000'],
                'host': ['node1'],
                **{name: [value] for name, value in names.items()},
            },
            asked.qs,
        )
