# SPDX-License-Identifier: Apache-2.0

"""Where instances would fit: on every database alike."""

import json
import unittest.mock

import sqlalchemy as sa

from vsched_api.db import models
from vsched_api.db.queries import snapshot as queries
from vsched_api.tests import base
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import error
from vsched_lib.tests import error_profiles
from vsched_lib.tests import overhead_profiles

QUARTER = {'vsched:cpu_runtime_us': '5000'}


class Asking:
    """Three hosts, and questions about them.

    To be mixed into a :class:`vsched_api.tests.base.TestCase`.
    """

    def setUp(self):
        super().setUp()
        self.http = self.client()
        self.agents = {}
        for name, capacity_mcpu, admitted_mcpu in (
            ('node1', 1_800, 0),
            ('node2', 1_800, 900),
            ('node3', 1_800, 1_700),
        ):
            self.tell(
                name, capacity_mcpu=capacity_mcpu, admitted_mcpu=admitted_mcpu
            )

    def tell(self, name, **info):
        if name not in self.agents:
            self.agents[name] = self.agent(name)
        self.agents[name].send(listed=False, host_info=base.host_info(**info))

    def ask(self, status=200, **wanted):
        answer = self.http.post('/v1/evaluations', json=wanted)
        self.assertEqual(status, answer.status_code, answer.text)
        return answer.json['evaluation' if status == 200 else 'errors']

    def measure(self, name, shape):
        self.agents[name].send(
            listed=False,
            error_profiles=(
                error_profiles.profile(
                    [
                        error_profiles.point(
                            error_profiles.samples(shape, share_ppm, 180),
                            contenders=4,
                            period_us=20_000,
                            share_ppm=share_ppm,
                        )
                        for share_ppm in error.PAPER_SHARES_PPM
                    ],
                    uuid=base.uuids(1)[0],
                    kernel='6.1.0',
                ),
            ),
        )


class Evaluations(Asking):
    """To be mixed into a :class:`vsched_api.tests.base.TestCase`."""

    def test_each_host_with_its_figures(self):
        found = self.ask(extra_specs=QUARTER, vcpus=2)
        self.assertEqual(
            (1, 3, 2, 4, True),
            tuple(
                found[name]
                for name in (
                    'instances',
                    'hosts_total',
                    'hosts_fit',
                    'room',
                    'all_fit',
                )
            ),
        )
        first, second, third = found['hosts']
        self.assertEqual(
            ['node1', 'node2', 'node3'],
            [one['host'] for one in found['hosts']],
        )
        self.assertEqual(
            ('deadline', 500, 0, 1_800, 1_800, 3, True),
            tuple(
                first[name]
                for name in (
                    'backend',
                    'demand_mcpu',
                    'margin_ppm',
                    'free_mcpu',
                    'capacity_mcpu',
                    'room',
                    'fits',
                )
            ),
        )
        self.assertGreater(first['score'], second['score'])
        self.assertEqual(
            [
                {
                    'cause': 'capacity',
                    'unknown': False,
                    'detail': '500 mcpu needed, 100 of 1800 mcpu free',
                }
            ],
            third['problems'],
        )

    def test_some_hosts(self):
        found = self.ask(extra_specs=QUARTER, hosts=['node3', 'node2'])
        self.assertEqual(
            ['node2', 'node3'], [one['host'] for one in found['hosts']]
        )
        (problem,) = self.ask(
            404, extra_specs=QUARTER, hosts=['node2', 'node9']
        )
        self.assertEqual(errors.Code.HOST_NOT_FOUND, problem['code'])
        self.assertIn('node9', problem['detail'])
        self.assertEqual(
            ['node1'],
            [
                one['host']
                for one in self.ask(extra_specs=QUARTER, limit=1)['hosts']
            ],
        )

    def test_what_if_there_were_several(self):
        found = self.ask(extra_specs=QUARTER, vcpus=2, instances=4)
        self.assertTrue(found['all_fit'])
        self.assertEqual(
            {'node1': 3, 'node2': 1},
            {one['host']: one['instances'] for one in found['placed']},
        )
        found = self.ask(extra_specs=QUARTER, vcpus=2, instances=5)
        self.assertFalse(found['all_fit'])
        self.assertEqual(4, sum(one['instances'] for one in found['placed']))

    def test_a_size_whatever_it_is_for(self):
        found = self.ask(demand_mcpu=900)
        self.assertEqual(
            [('node1', True, 2), ('node2', True, 1), ('node3', False, 0)],
            [
                (one['host'], one['fits'], one['room'])
                for one in found['hosts']
            ],
        )

    def test_what_the_hosts_measured_decides(self):
        self.measure('node1', error_profiles.STARVED)
        self.measure('node2', error_profiles.TIGHT)
        found = {
            one['host']: one
            for one in self.ask(
                extra_specs={**QUARTER, 'vsched:max_alloc_error_pct': '2'}
            )['hosts']
        }
        self.assertEqual(
            {'node1': False, 'node2': True, 'node3': False},
            {name: one['fits'] for name, one in found.items()},
        )
        (problem,) = found['node1']['problems']
        self.assertEqual(
            ('error', False), (problem['cause'], problem['unknown'])
        )
        self.assertIn('falls short by', problem['detail'])
        problem = found['node3']['problems'][0]
        self.assertEqual(
            ('error', True), (problem['cause'], problem['unknown'])
        )
        self.assertLess(
            found['node1']['measured_p99_lower_ppm'],
            found['node2']['measured_p99_lower_ppm'],
        )

    def test_dear_io_gets_fewer_instances_that_do_much(self):
        for name, factor in (('node1', 2), ('node2', 1)):
            self.tell(name, capacity_mcpu=3_000, admitted_mcpu=0)
            self.agents[name].send(
                listed=False,
                overhead_profiles=(
                    overhead_profiles.profile(
                        {
                            term: factor * ns
                            for term, ns in overhead_profiles.PRICES.items()
                        },
                        uuid=base.uuids(1)[0],
                        kernel='6.1.0',
                    ),
                ),
            )
        wanted = {
            'hosts': ['node1', 'node2'],
            'instances': 8,
            'extra_specs': {
                **QUARTER,
                'vsched:net_rx_pps': '2000',
                'vsched:io_charging': 'overprovision',
            },
        }
        found = self.ask(**wanted)
        cheap, dear = found['hosts']
        self.assertEqual(('node2', 'node1'), (cheap['host'], dear['host']))
        self.assertEqual(2 * cheap['overhead_mcpu'], dear['overhead_mcpu'])
        self.assertEqual(250 + cheap['overhead_mcpu'], cheap['demand_mcpu'])
        self.assertGreater(cheap['room'], dear['room'])
        placed = {one['host']: one['instances'] for one in found['placed']}
        self.assertGreater(placed['node2'], placed.get('node1', 0))
        self.assertEqual(8, sum(placed.values()))
        # Charged, it leaves a guest on the dear host too little.
        found = self.ask(
            **{
                **wanted,
                'extra_specs': {
                    **QUARTER,
                    'vsched:net_rx_pps': '3500',
                    'vsched:io_charging': 'charge',
                },
            }
        )
        self.assertEqual(
            {'node1': ['overhead'], 'node2': []},
            {
                one['host']: [problem['cause'] for problem in one['problems']]
                for one in found['hosts']
            },
        )

    def test_a_host_that_changed_is_read_again(self):
        self.ask(extra_specs=QUARTER)
        self.tell(
            'node3',
            capacity_mcpu=1_800,
            admitted_mcpu=300,
            backends=(messages.BackendInfo('cfs', True),),
        )
        found = {
            one['host']: one for one in self.ask(extra_specs=QUARTER)['hosts']
        }
        self.assertEqual(1_500, found['node3']['free_mcpu'])
        self.assertEqual(
            ['backend'], [one['cause'] for one in found['node3']['problems']]
        )
        with unittest.mock.patch.object(
            queries, 'present', autospec=True, side_effect=lambda *_: []
        ):
            self.assertEqual([], self.ask(extra_specs=QUARTER)['hosts'])

    def test_hosts_that_do_not_report(self):
        self.now += 60
        self.agents['node2'].send(listed=False)
        found = self.ask(extra_specs=QUARTER, instances=2)
        self.assertEqual(
            {'node1': 'down', 'node2': 'up', 'node3': 'down'},
            {one['host']: one['state'] for one in found['hosts']},
        )
        self.assertEqual(['node2'], [one['host'] for one in found['placed']])

    def test_no_limit_where_nothing_is_taken(self):
        found = self.ask(extra_specs={**QUARTER, 'vsched:backend': 'cfs'})
        self.assertIsNone(found['room'])
        self.assertEqual(3, found['hosts_fit'])
        self.assertEqual(3, self.ask(extra_specs={})['hosts_fit'])

    def test_what_can_not_be_asked(self):
        (problem,) = self.ask(
            400,
            extra_specs={
                'vsched:cpu_runtime_us': '5000',
                'vsched:cpu_period_us': '400',
            },
        )
        self.assertEqual(errors.Code.EXTRA_SPECS_INVALID, problem['code'])
        self.assertIn('more than the period', problem['detail'])
        for wanted, words in (
            ({}, 'extra_specs'),
            ({'extra_specs': {}, 'demand_mcpu': 1}, 'demand_mcpu'),
            ({'demand_mcpu': 1, 'vcpus': 1}, 'demand_mcpu'),
            ({'demand_mcpu': 0}, 'demand_mcpu'),
            ({'extra_specs': {'a': 1}}, 'extra_specs'),
            ({'extra_specs': {}, 'vcpus': 0}, 'vcpus'),
            ({'extra_specs': {}, 'instances': 1001}, 'instances'),
            ({'extra_specs': {}, 'hosts': []}, 'hosts'),
            ({'extra_specs': {}, 'host': 'node1'}, 'host'),
        ):
            problem = self.ask(400, **wanted)[0]
            self.assertIn(words, problem['detail'])

    def plant(self, name, **values):
        """Change a row as no collector would."""
        host = (
            sa.select(models.Host.id)
            .where(models.Host.name == name)
            .scalar_subquery()
        )
        self.database.write(
            lambda session: session.execute(
                sa.update(models.SnapshotHost)
                .where(models.SnapshotHost.host_id == host)
                .values(version=models.SnapshotHost.version + 1000, **values)
                .execution_options(synchronize_session=False)
            )
        )

    def test_what_cannot_be_read_of_a_host_fails_no_other(self):
        facts = {
            'cpus': 2,
            'tick_us': 4000,
            'capacity_mcpu': 1800,
            'backends': ['deadline'],
        }
        for values in (
            {'prices_ns': '{"net_rx": -1}'},
            {'prices_ns': '{"net_rx": 1e300}'},
            {'prices_ns': '{"net_rx": NaN}'},
            {'prices_ns': 'garbage'},
            {'prices_ns': '[' * 5000},
            {'facts': '{}'},
            {'facts': 'null'},
            {'facts': json.dumps({**facts, 'cpus': 10**9})},
            {'facts': json.dumps({**facts, 'backends': [3]})},
            {
                'certificates': '[{"backend": "deadline", "period_us": 1, '
                '"shares_ppm": [2, 1], '
                '"lowers_ppm": [0, 0]}]',
                'certified': True,
            },
            {'admitted_mcpu': 2**62},
        ):
            self.tell('node2', capacity_mcpu=1_800)
            self.plant('node2', **values)
            found = self.ask(extra_specs=QUARTER)
            (bad,) = (one for one in found['hosts'] if one['host'] == 'node2')
            self.assertEqual((False, 0), (bad['fits'], bad['room']), values)
            self.assertEqual('unreadable', bad['problems'][0]['cause'])
            self.assertIn('cannot be read', bad['problems'][0]['detail'])
            self.assertIn(
                'node1', [one['host'] for one in found['hosts'] if one['fits']]
            )
            self.assertEqual(3, self.ask(demand_mcpu=1)['hosts_total'])
            # Schedulers are told of the others, and that this one is gone.
            answer = self.http.get('/v1/snapshot').json
            self.assertEqual(
                {'node1', 'node3'}, {one['name'] for one in answer['hosts']}
            )
            changes = self.http.get('/v1/snapshot?since=1').json
            self.assertEqual(['node2'], changes['removed'])
            self.assertEqual(
                {'node1', 'node3'}, {one['name'] for one in changes['hosts']}
            )
            self.database.write(
                lambda session: session.execute(
                    sa.delete(models.SnapshotHost).where(
                        models.SnapshotHost.name == 'node2'
                    )
                )
            )

    def test_a_host_that_is_listed_with_a_reason(self):
        for info in ({}, {'cpus': -1}, [], 'x', {'kernel': 3}):
            self.database.write(
                lambda session, info=info: session.execute(
                    sa.update(models.Host)
                    .where(models.Host.name == 'node2')
                    .values(info=info, received_at=1e300)
                )
            )
            found = self.http.get('/v1/hosts')
            self.assertEqual(200, found.status_code)
            one, two, _ = found.json['hosts']
            self.assertIsNone(one['problem'])
            self.assertEqual(2, one['cpus'])
            self.assertIn('HostInfo', two['problem'])
            self.assertIsNone(two['cpus'])
            self.assertEqual(200, self.http.get('/v1/hosts/node2').status_code)
            self.assertEqual(200, self.http.get('/metrics').status_code)
