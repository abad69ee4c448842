# SPDX-License-Identifier: Apache-2.0

"""Runs ordered over the API, and what their profiles change."""

import contextlib
import os
import socket
import time

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent.host import kernel
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.guest import vm
from vsched_agent.profiling import manager
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error
from vsched_lib.model import overhead
from vsched_lib.tests import error_profiles
from vsched_standalone.tests import deployment
from vsched_standalone.tests import outages
from vsched_standalone.tests import private_services

PATH = '/v1/hosts/node-1/profiles/error'
OVERHEAD = '/v1/hosts/node-1/profiles/overhead'
PATIENCE_S = 180
#: A quick run with a calibration VM takes a minute, on an idle machine.
OVERHEAD_S = 600


class Case(base.BaseTestCase):
    """Services with a broker and a database of their own."""

    def setUp(self):
        super().setUp()
        outages.require_services(self)
        broker = self.useFixture(private_services.Rabbit())
        database = self.useFixture(private_services.Postgres())
        self.prepare()
        self.services = self.useFixture(
            deployment.Deployment(broker.transport_url, database.connection)
        )

    def prepare(self):
        """What must be there before the agent is."""

    def until(self, look, what, patience_s=PATIENCE_S):
        give_up = time.monotonic() + patience_s
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > give_up:
                self.fail(
                    '%s did not happen: %s'
                    % (what, self.services.said('agent'))
                )
            time.sleep(0.3)

    def order(self, path, **parameters):
        reply = self.services.request('POST', path, json=parameters)
        self.assertEqual(202, reply.status_code, reply.text)
        self.assertTrue(
            reply.headers['Location'].endswith(
                '/v1/jobs/' + reply.json()['job']['uuid']
            )
        )
        return reply.json()['job']['uuid']

    def job(self, uuid):
        return self.services.get('/v1/jobs/' + uuid)['job']

    def await_job(self, uuid, *states, patience_s=PATIENCE_S):
        return self.until(
            lambda: (job := self.job(uuid))['state'] in states and job,
            'job %s' % (states,),
            patience_s,
        )


class TestOverhead(Case):
    """What I/O costs, from the order to what schedulers are told."""

    def test_from_the_order_to_the_prices(self):
        self.until(
            lambda: self.services.request('GET', OVERHEAD).status_code == 200,
            'the first report',
        )
        self.assertEqual([], self.services.get(OVERHEAD)['overhead_profiles'])
        uuid = self.order(OVERHEAD, quick=True)
        running = self.await_job(uuid, 'running', 'failed')
        self.assertEqual('running', running['state'], running)
        # One at a time.
        self.assertEqual(
            409, self.services.request('POST', OVERHEAD, json={}).status_code
        )
        self.until(lambda: self.job(uuid)['progress_ppm'], 'progress')
        done = self.await_job(uuid, 'done', 'failed', patience_s=OVERHEAD_S)
        self.assertEqual(
            ('done', 1_000_000), (done['state'], done['progress_ppm']), done
        )
        (profile,) = self.until(
            lambda: self.services.get(OVERHEAD)['overhead_profiles'],
            'a profile',
        )
        self.assertEqual(
            ('benchmark', True, True, 1),
            (
                profile['source'],
                profile['quick'],
                profile['complete'],
                profile['version'],
            ),
        )
        prices_ns = {
            price['term']: price['cost_ns'] for price in profile['prices']
        }
        self.assertEqual(set(overhead.TERMS), set(prices_ns))
        self.assertGreater(sum(prices_ns.values()), 0)
        for experiment in ('net-rx', 'net-tx', 'disk-read', 'disk-write'):
            self.assertTrue(
                [
                    point
                    for point in profile['points']
                    if point['experiment'] == experiment
                    and point['direct_us'] > 0
                ],
                experiment,
            )
        table = self.services.request(
            'GET', OVERHEAD, params={'format': 'csv', 'source': 'benchmark'}
        )
        self.assertEqual(200, table.status_code, table.text)
        # Schedulers get what may be used, and no more.
        host = self.until(
            lambda: [
                one
                for one in self.services.get('/v1/snapshot')['hosts']
                if one['name'] == 'node-1'
            ],
            'the host',
        )[0]
        self.assertEqual(
            prices_ns if profile['good'] else None, host['prices_ns']
        )
        self.assertEqual(
            [],
            [
                name
                for _, name in socket.if_nameindex()
                if name.startswith('vsched-')
            ],
        )


class TestProfiles(Case):
    def prepare(self):
        self.vm = self.start_vm()

    def start_vm(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        folder = self.useFixture(fixtures.TempDir()).path
        name = 'vsched-test-profiles-%d' % os.getpid()
        spec = domain_xml.DomainSpec(
            name=name,
            kernel=os.path.join(outages.GUEST_DIR, 'vmlinux'),
            initrd=os.path.join(outages.GUEST_DIR, 'initramfs.cpio'),
            cmdline=domain_xml.cmdline('vsched.load=idle'),
            serial_file=os.path.join(folder, name + '.console'),
            extra_specs={
                'vsched:cpu_runtime_us': '6000',
                'vsched:cpu_period_us': '20000',
                'vsched:max_alloc_error_pct': '2',
            },
        )
        stack.enter_context(vm.RunningDomain(spec, ready_timeout_s=300))
        return spec

    def test_from_the_order_to_the_decision(self):
        # Nothing was measured: the flavor's bound can not be promised.
        seen = self.until(
            lambda: (
                (one := self.services.reservation(self.vm.uuid)).get('state')
                == 'refused'
                and one
            ),
            'a refusal',
        )
        self.assertEqual('vsched.reservation.not_certified', seen['code'])
        self.assertEqual([], self.services.get(PATH)['error_profiles'])

        # A run that is cancelled and gone on with.
        uuid = self.order(
            PATH,
            shares_pct=[20, 40],
            # Longer than it takes to cancel it on a slow machine.
            seconds=8,
            contend=2,
            backends=['deadline'],
            periods_us=[20000],
        )
        self.await_job(uuid, 'running')
        self.assertEqual(
            409, self.services.request('POST', PATH, json={}).status_code
        )
        self.services.request(
            'PATCH', '/v1/jobs/' + uuid, json={'wanted': 'cancel'}
        )
        self.await_job(uuid, 'cancelled')
        self.services.request(
            'PATCH', '/v1/jobs/' + uuid, json={'wanted': 'run'}
        )
        self.await_job(uuid, 'running')
        # An agent that is killed goes on with it when it is back.
        self.services.kill('agent')
        self.services.start('agent')
        done = self.await_job(uuid, 'done', 'failed')
        self.assertEqual(
            ('done', 1_000_000), (done['state'], done['progress_ppm']), done
        )
        (profile,) = self.until(
            lambda: self.services.get(PATH)['error_profiles'], 'a profile'
        )
        self.assertEqual(4, len(profile['points']))
        table = self.services.request('GET', PATH + '?format=csv')
        self.assertIn('text/csv', table.headers['Content-Type'])

        # Eight samples a point show nothing; the refusal says so.
        seen = self.until(
            lambda: (
                'takes 161 samples'
                in (one := self.services.reservation(self.vm.uuid)).get(
                    'detail', ''
                )
                and one
            ),
            'another refusal',
        )

        # What a long run would have found: 5 % may be missing.
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override(
            'state_path', os.path.join(self.services.folder, 'state'), 'agent'
        )
        stored = manager.error_profiles(conf)
        stored.keep(
            error_profiles.profile(
                [
                    error_profiles.point(
                        [-50_000] * error.LONG_WINDOWS,
                        period_us=20_000,
                        share_ppm=share_ppm,
                        contenders=2,
                    )
                    for share_ppm in (200_000, 400_000)
                ],
                uuid='9c3a3f6e-3a55-4d3f-8a39-6e1f0f6d8a01',
                version=stored.next_version(contract.ProfileSource.BENCHMARK),
                **manager.facts(kernel.KernelFacts.read(), conf),
            )
        )
        # 6000 us, 2 % of it may be missing: times 0.98 / 0.95.
        self.services.await_state(
            self.vm.uuid, 'applied', backend='deadline', runtime_us=6190
        )
        events = self.services.get('/v1/events')['events']
        self.assertIn(
            'vsched.reservation.not_certified',
            {event['code'] for event in events},
        )
