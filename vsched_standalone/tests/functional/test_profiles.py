# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""A run ordered over the API, and what its profile changes on a real VM."""

import contextlib
import os
import time

import fixtures
from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent.enforcement import kernel
from vsched_agent.hypervisor import domain_xml
from vsched_agent.hypervisor import guest
from vsched_agent import profiles
from vsched_lib.contract import profiles as contract
from vsched_lib.model import error
from vsched_lib.tests import error_profiles
from vsched_lib.tests import requirements
from vsched_standalone.tests import deployment
from vsched_standalone.tests import outages
from vsched_standalone.tests import private_services

PATH = '/v1/hosts/node-1/profiles/error'
PATIENCE_S = 90


class TestProfiles(base.BaseTestCase):

    def setUp(self):
        super().setUp()
        for part, there in (
                ('rabbitmq', os.path.exists('/usr/lib/rabbitmq')),
                ('postgresql', os.path.exists('/usr/lib/postgresql')),
                ('libvirt', os.path.exists(outages.GUEST_DIR))):
            if not there:
                requirements.require(self, part, 'it is not installed')
        broker = self.useFixture(private_services.Rabbit())
        database = self.useFixture(private_services.Postgres())
        self.vm = self.start_vm()
        self.services = self.useFixture(deployment.Deployment(
            broker.transport_url, database.connection))

    def start_vm(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        folder = self.useFixture(fixtures.TempDir()).path
        name = 'vsched-test-profiles-%d' % os.getpid()
        spec = domain_xml.DomainSpec(
            name=name, kernel=os.path.join(outages.GUEST_DIR, 'vmlinux'),
            initrd=os.path.join(outages.GUEST_DIR, 'initramfs.cpio'),
            cmdline='console=ttyS0 quiet vsched.load=idle',
            serial_file=os.path.join(folder, name + '.console'),
            extra_specs={'vsched:cpu_runtime_us': '6000',
                         'vsched:cpu_period_us': '20000',
                         'vsched:max_alloc_error_pct': '2'})
        stack.enter_context(guest.RunningDomain(spec, ready_timeout_s=120))
        return spec

    def until(self, look, what):
        give_up = time.monotonic() + PATIENCE_S
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > give_up:
                self.fail('%s did not happen: %s' % (
                    what, self.services.said('agent')))
            time.sleep(0.3)

    def order(self, **parameters):
        reply = self.services.request('POST', PATH, json=parameters)
        self.assertEqual(202, reply.status_code, reply.text)
        self.assertTrue(reply.headers['Location'].endswith(
            '/v1/jobs/' + reply.json()['job']['uuid']))
        return reply.json()['job']['uuid']

    def job(self, uuid):
        return self.services.get('/v1/jobs/' + uuid)['job']

    def await_job(self, uuid, *states):
        return self.until(
            lambda: (job := self.job(uuid))['state'] in states and job,
            'job %s' % (states,))

    def test_from_the_order_to_the_decision(self):
        # Nothing was measured: the flavor's bound can not be promised.
        seen = self.until(
            lambda: (one := self.services.reservation(self.vm.uuid)).get(
                'state') == 'refused' and one, 'a refusal')
        self.assertEqual('vsched.reservation.not_certified', seen['code'])
        self.assertEqual([], self.services.get(PATH)['error_profiles'])

        # A run that is cancelled and gone on with.
        uuid = self.order(shares_pct=[20, 40], seconds=4, contend=2,
                          backends=['deadline'], periods_us=[20000])
        self.await_job(uuid, 'running')
        self.assertEqual(409, self.services.request(
            'POST', PATH, json={}).status_code)
        self.services.request(
            'PATCH', '/v1/jobs/' + uuid, json={'wanted': 'cancel'})
        self.await_job(uuid, 'cancelled')
        self.services.request(
            'PATCH', '/v1/jobs/' + uuid, json={'wanted': 'run'})
        self.await_job(uuid, 'running')
        # An agent that is killed goes on with it when it is back.
        self.services.kill('agent')
        self.services.start('agent')
        done = self.await_job(uuid, 'done', 'failed')
        self.assertEqual(('done', 1_000_000), (
            done['state'], done['progress_ppm']), done)
        profile, = self.until(
            lambda: self.services.get(PATH)['error_profiles'], 'a profile')
        self.assertEqual(4, len(profile['points']))
        picture = self.services.request('GET', PATH + '/plots/error')
        self.assertIn('svg', picture.headers['Content-Type'])

        # Four samples a point show nothing; the refusal says so.
        seen = self.until(
            lambda: 'takes 161 samples' in (
                one := self.services.reservation(self.vm.uuid)
            ).get('detail', '') and one, 'another refusal')

        # What a long run would have found: 5 % may be missing.
        conf = cfg.ConfigOpts()
        agent_conf.register_opts(conf)
        conf([], default_config_files=[], default_config_dirs=[])
        conf.set_override('state_path', os.path.join(
            self.services.folder, 'state'), 'agent')
        stored = profiles.error_profiles(conf)
        stored.keep(error_profiles.profile(
            [error_profiles.point(
                [-50_000] * error.LONG_WINDOWS, period_us=20_000,
                share_ppm=share_ppm, contenders=2)
             for share_ppm in (200_000, 400_000)],
            uuid='9c3a3f6e-3a55-4d3f-8a39-6e1f0f6d8a01',
            version=stored.next_version(contract.ProfileSource.BENCHMARK),
            **profiles.facts(kernel.KernelFacts.read())))
        # 6000 us, 2 % of it may be missing: times 0.98 / 0.95.
        self.services.await_state(
            self.vm.uuid, 'applied', backend='deadline', runtime_us=6190)
        events = self.services.get('/v1/events')['events']
        self.assertIn('vsched.reservation.not_certified',
                      {event['code'] for event in events})
