# SPDX-License-Identifier: Apache-2.0

"""What schedulers are told of hosts: on every database alike."""

from concurrent import futures
import dataclasses
import gzip
import json
from unittest import mock

from vsched_api.operations import snapshot
from vsched_api.tests import base
from vsched_lib.contract import certification
from vsched_lib.contract import messages
from vsched_lib.contract import policy as policies
from vsched_lib.contract import profiles
from vsched_lib.contract import snapshot as contract
from vsched_lib.model import error
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

DAY_S = 86_400
POLICY = policies.HostPolicy(0.8, 250_000, 500_000, False)


class Snapshot:
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def setUp(self):
        super().setUp()
        self.node = self.agent()
        self.tag = None

    def get(self, since=None, tag=None):
        answer = snapshot.Snapshots(self.database, self.conf).get(
            self.now, since, tag
        )
        if answer is None:
            return None
        if answer.zipped is not None:
            self.assertEqual(answer.body, gzip.decompress(answer.zipped))
        self.tag = answer.tag
        return contract.Snapshot.from_dict(json.loads(answer.body))

    def tend(self):
        return snapshot.tend(self.database, self.conf, self.now)

    def info(self, agent=None, **changes):
        (agent or self.node).send(
            listed=False, host_info=base.host_info(**changes)
        )

    def profile(self, **changes):
        return error_profiles.full(
            **{
                'uuid': base.uuids(1)[0],
                'shares_ppm': (200_000, 500_000),
                'kernel': '6.1.0',
                **changes,
            }
        )

    def test_nothing_is_known_of_any_host(self):
        found = self.get()
        self.assertEqual(
            (0, True, False, ()),
            (found.version, found.full, found.more, found.hosts),
        )
        self.assertIsNone(self.get(tag=self.tag))
        self.assertEqual((), self.get(since=0).hosts)

    def test_what_a_host_is(self):
        self.info(
            backends=(
                messages.BackendInfo('deadline', True),
                messages.BackendInfo('cfs', False, ('no cpu controller',)),
            )
        )
        found = self.get()
        (host,) = found.hosts
        self.assertEqual(found.version, host.version)
        self.assertEqual((base.HOST, 600), (host.name, host.admitted_mcpu))
        self.assertEqual(
            contract.Facts(2, 4000, 1800, ('deadline',), POLICY), host.facts
        )
        self.assertEqual(((), None), (host.certificates, host.prices_ns))
        self.assertEqual(
            (1800, POLICY.fit), (host.fit().capacity_mcpu, host.fit().policy)
        )

    def test_what_io_costs_there(self):
        self.info()
        told = overhead_profiles.profile(kernel='6.1.0')
        self.node.send(listed=False, overhead_profiles=(told,))
        found = self.get()
        self.assertEqual(overhead_profiles.PRICES, found.hosts[0].prices_ns)
        self.node.send(
            listed=False,
            overhead_profiles=(
                dataclasses.replace(told, uuid=base.uuids(1)[0], good=False),
            ),
        )
        self.assertIsNone(self.get(found.version).hosts[0].prices_ns)

    def test_prices_of_another_kernel(self):
        self.node.send(
            listed=False,
            host_info=base.host_info(kernel='6.2.0'),
            overhead_profiles=(overhead_profiles.profile(kernel='6.1.0'),),
        )
        self.assertIsNone(self.get().hosts[0].prices_ns)
        self.info(kernel='6.1.0')
        found = self.get()
        self.assertEqual(overhead_profiles.PRICES, found.hosts[0].prices_ns)
        self.info(kernel='6.2.0')
        self.assertIsNone(self.get(found.version).hosts[0].prices_ns)

    def test_only_what_changed(self):
        agents = [self.agent('node%d' % number) for number in range(1, 4)]
        for agent in agents:
            self.info(agent)
        first = self.get()
        self.assertEqual(3, len({one.version for one in first.hosts}))
        self.info(agents[1], admitted_mcpu=900)
        second = self.get(since=first.version)
        self.assertEqual((False, False), (second.full, second.more))
        self.assertEqual(
            [('node2', 900)],
            [(one.name, one.admitted_mcpu) for one in second.hosts],
        )
        self.assertGreater(second.version, first.version)
        self.assertEqual((), self.get(since=second.version).hosts)
        self.assertIsNone(self.get(second.version, self.tag))

    def test_a_service_goes_on_from_what_it_has_read(self):
        kept = snapshot.Snapshots(self.database, self.conf)

        def told():
            found = contract.Snapshot.from_dict(
                json.loads(kept.get(self.now).body)
            )
            self.assertEqual(self.get(), found)
            return {one.name: one.admitted_mcpu for one in found.hosts}

        self.assertEqual({}, told())
        agents = [self.agent('node%d' % number) for number in range(1, 4)]
        with mock.patch.object(snapshot, '_CHUNK_CHANGED', 2):
            for mcpu in (100, 200):
                for agent in agents:
                    self.info(agent, admitted_mcpu=mcpu)
                self.assertEqual(
                    dict.fromkeys(('node1', 'node2', 'node3'), mcpu), told()
                )
            self.info(agents[1], admitted_mcpu=300)
            self.now += 7 * DAY_S - 10
            agents[0].send(listed=False)
            agents[1].send(listed=False)
            self.assertEqual(
                {'node1': 200, 'node2': 300, 'node3': 200}, told()
            )
            self.now += 20
            self.assertEqual((0, 1), self.tend())
            self.assertEqual({'node1': 200, 'node2': 300}, told())
        # Read anew after a while.
        self.now += 60
        self.assertEqual({'node1': 200, 'node2': 300}, told())

    def test_schedulers_are_not_told_of_findings(self):
        self.info()
        first = self.get()
        self.info(
            findings=(messages.HostFinding('note', 'tick', 'is 4000 us'),)
        )
        self.assertEqual((), self.get(since=first.version).hosts)

    def test_a_repeated_report_changes_nothing(self):
        self.info()
        first = self.get()
        self.info()
        self.assertIsNone(self.get(first.version, self.tag))

    def test_a_version_that_never_was(self):
        self.info()
        found = self.get(since=self.get().version + 1)
        self.assertEqual((True, 1), (found.full, len(found.hosts)))

    def test_changes_come_in_pieces(self):
        self.conf.set_override('delta_hosts', 2, 'snapshot')
        for number in range(5):
            self.info(self.agent('node%d' % number))
        names, since, more = [], 0, True
        while more:
            found = self.get(since=since)
            self.assertLessEqual(len(found.hosts), 2)
            names += [one.name for one in found.hosts]
            since, more = found.version, found.more
        self.assertEqual(['node%d' % number for number in range(5)], names)

    def test_certificates_of_the_newest_benchmark(self):
        old, new = self.profile(), self.profile(periods_us=(10_000, 20_000))
        self.node.send(
            listed=False, host_info=base.host_info(), error_profiles=(old,)
        )
        self.node.send(
            listed=False,
            error_profiles=(
                new,
                self.profile(
                    source=profiles.ProfileSource.LIVE, backends=('deadline',)
                ),
            ),
        )
        (host,) = self.get().hosts
        self.assertEqual(
            [
                (backend, period_us)
                for backend in ('cfs', 'deadline')
                for period_us in (10_000, 20_000)
            ],
            [(one.backend, one.period_us) for one in host.certificates],
        )
        known = host.fit().certified['deadline', 20_000]
        self.assertEqual(
            error.evidence(
                certification.contended(new, 'deadline', 20_000), 300_000, 0.8
            ).lower_ppm,
            known.lower_ppm(300_000),
        )

    def test_a_profile_of_another_kernel_certifies_nothing(self):
        self.node.send(
            listed=False,
            host_info=base.host_info(),
            error_profiles=(self.profile(),),
        )
        first = self.get()
        self.assertTrue(first.hosts[0].certificates)
        self.info(kernel='6.2.0')
        (host,) = self.get(since=first.version).hosts
        self.assertEqual((), host.certificates)
        self.info()
        self.assertEqual(
            first.hosts[0].certificates, self.get().hosts[0].certificates
        )

    def test_nor_does_one_with_other_looks_at_budgets(self):
        self.node.send(
            listed=False,
            host_info=base.host_info(),
            error_profiles=(self.profile(),),
        )
        (first,) = self.get().hosts
        self.info(budget_check_us=500)
        (host,) = self.get().hosts
        self.assertEqual((), host.certificates)
        self.node.send(
            listed=False,
            error_profiles=(self.profile(features={'budget_check_us': 500}),),
        )
        (host,) = self.get().hosts
        self.assertEqual(first.certificates, host.certificates)
        self.info()
        (host,) = self.get().hosts
        self.assertEqual((), host.certificates)

    def test_hosts_whose_agents_do_not_report(self):
        self.info()
        version = self.get().version
        tag = self.tag
        self.now += 60
        found = self.get(version, tag)
        self.assertEqual(((base.HOST,), ()), (found.down, found.hosts))
        self.node.send(listed=False)
        self.assertEqual((), self.get(version, self.tag).down)

    def test_silent_hosts_go_and_come_back(self):
        other = self.agent('node2')
        self.info()
        self.info(other)
        version = self.get().version
        self.now += 7 * DAY_S
        other.send(listed=False)
        self.now += 10
        self.assertEqual((0, 1), self.tend())
        found = self.get(since=version)
        self.assertEqual(((base.HOST,), ()), (found.removed, found.hosts))
        self.assertEqual(['node2'], [one.name for one in self.get().hosts])
        self.assertEqual((0, 0), self.tend())
        # A batch of samples does not tell what the host is.
        self.node.send(listed=False)
        self.assertEqual((1, 0), self.tend())
        self.assertEqual(
            [base.HOST],
            [one.name for one in self.get(since=found.version).hosts],
        )

    def test_another_confidence(self):
        self.node.send(
            listed=False,
            host_info=base.host_info(),
            error_profiles=(self.profile(),),
        )
        (before,) = self.get().hosts
        self.assertEqual((0, 0), self.tend())
        self.info(policy=dataclasses.replace(POLICY, confidence=0.5))
        (after,) = self.get(since=before.version).hosts
        self.assertEqual(0.5, after.facts.policy.confidence)
        self.assertGreater(
            after.certificates[1].lowers_ppm, before.certificates[1].lowers_ppm
        )
        self.assertEqual((0, 0), self.tend())

    def test_versions_come_from_the_clock(self):
        self.info()
        first = self.get().version
        self.assertGreater(first, self.now * 1000)
        self.now += 1
        self.info(admitted_mcpu=900)
        self.assertGreaterEqual(self.get().version, first + 1000)
        # A clock that was put back hands out no number twice.
        newest = self.get().version
        self.now -= 3600
        self.info(admitted_mcpu=300)
        self.assertEqual(newest + 1, self.get().version)

    def test_hosts_that_change_at_once(self):
        agents = [self.agent('node%d' % number) for number in range(6)]
        with futures.ThreadPoolExecutor(6) as pool:
            for admitted_mcpu in range(100, 600, 100):
                list(
                    pool.map(
                        lambda one, mcpu=admitted_mcpu: self.info(
                            one, admitted_mcpu=mcpu
                        ),
                        agents,
                    )
                )
        found = self.get()
        self.assertEqual({500}, {one.admitted_mcpu for one in found.hosts})
        self.assertEqual(6, len({one.version for one in found.hosts}))

    def test_through_http(self):
        for number in range(20):
            self.info(self.agent('node%d' % number))
        client = self.client()
        first = client.get('/v1/snapshot')
        self.assertEqual(20, len(first.json['hosts']))
        self.assertNotIn('Content-Encoding', first.headers)
        zipped = client.get(
            '/v1/snapshot', headers={'Accept-Encoding': 'gzip'}
        )
        self.assertEqual('gzip', zipped.headers['Content-Encoding'])
        self.assertEqual(first.data, gzip.decompress(zipped.data))
        self.assertIn('Accept-Encoding', zipped.headers['Vary'])
        for tag in (first.headers['ETag'], 'W/' + first.headers['ETag']):
            for query in ('', '?since=%d' % first.json['version']):
                again = client.get(
                    '/v1/snapshot' + query, headers={'If-None-Match': tag}
                )
                self.assertEqual((304, b''), (again.status_code, again.data))
                self.assertEqual(first.headers['ETag'], again.headers['ETag'])
        for query in ('since=-1', 'since=x', 'host=1'):
            self.assertEqual(
                400, client.get('/v1/snapshot?' + query).status_code
            )
