# SPDX-License-Identifier: Apache-2.0

"""An order on its whole way: API, database, bus, agent, guest and back."""

from fractions import Fraction
import os
import tempfile
import threading
import time
import types
from unittest import mock

from oslo_config import cfg
from oslotest import base

from vsched_agent.enforcement import budget_expiry
from vsched_agent import service as agents
from vsched_agent.tests import fakes
from vsched_agent.tests import simulated_guests
from vsched_api import app
from vsched_api.collector import service as collectors
from vsched_api.db import migration
from vsched_api.tests import base as api_base
from vsched_lib.contract import rpc
from vsched_lib.model import reservation
from vsched_standalone import conf as standalone_conf

#: Far longer than anything here takes, in seconds.
PATIENCE_S = 60.0


class Capacity(fakes.FakeCapacity):
    def measured(self):
        return types.SimpleNamespace(leaked_mcpu=0)


class Meter(fakes.FakeMeter):
    def close(self):
        pass


class Ladder:
    def __init__(self, backend):
        self.backends = {backend.name: backend}

    def support(self, name):
        return self.backends[name].supports()

    def check_status(self):
        return budget_expiry.CheckStatus()


class TestOrders(base.BaseTestCase):
    """Nothing is left out but the kernel and the guest."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.conf = cfg.ConfigOpts()
        standalone_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self.addCleanup(self.conf.clear)
        for group, name, value in (
            ('agent', 'state_path', folder.name),
            ('agent', 'host', 'node1'),
            ('agent', 'report_interval', 1.0),
            ('api', 'auth_strategy', 'noauth'),
            (
                'database',
                'connection',
                'sqlite:///' + os.path.join(folder.name, 'vsched.sqlite'),
            ),
            *(
                ('database', name, seconds)
                for name, seconds in api_base.TIMEOUTS_S.items()
            ),
        ):
            self.conf.set_override(name, value, group)
            self.addCleanup(self.conf.clear_override, name, group)
        self.backend = fakes.FakeBackend(reservation.Backend.DEADLINE)
        self.hypervisor = fakes.FakeHypervisor()
        self.guests = simulated_guests.SimulatedGuests()
        for name, fake in (
            ('backends.Ladder', lambda conf: Ladder(self.backend)),
            (
                'backends.capacity.KernelCapacity',
                lambda reserve_mcpu: Capacity(Fraction(18, 10)),
            ),
            ('usage.meter_of', lambda *arguments: Meter()),
            ('privileged.use', lambda conf: None),
        ):
            patch = mock.patch('vsched_agent.service.' + name, fake)
            patch.start()
            self.addCleanup(patch.stop)
        migration.sync(self.conf)
        transport = rpc.get_transport(self.conf, 'fake://')
        collector = collectors.Service(self.conf, transport, 'collector')
        collector.start()
        self.addCleanup(collector.stop)
        application = app.create_app(self.conf, transport)
        self.addCleanup(application.extensions['vsched'].database.dispose)
        self.http = application.test_client()
        self.transport = transport
        domain = fakes.domain(1, 4, balloon='auto', cpu_runtime_us=4_000)
        self.uuid = domain.uuid
        self.hypervisor.running[self.uuid] = domain
        self.guests.boot(self.uuid, 4)
        self.path = '/v1/balloons/' + self.uuid

    def start_agent(self):
        agent = agents.Agent(
            self.conf, self.transport, self.hypervisor, self.guests
        )
        agent.start()
        return agent

    def eventually(self, look, path=None):
        """What an answer holds, once it is as it should be."""
        give_up_s, never = time.monotonic() + PATIENCE_S, threading.Event()
        while True:
            answer = self.http.get(path or self.path).json
            if 'errors' not in answer and look(answer):
                return answer
            if time.monotonic() > give_up_s:
                self.fail('never came; last was %s' % answer)
            never.wait(0.1)

    def is_order(self, state):
        return lambda answer: (
            (answer['balloon']['order'] or {}).get('state') == state
        )

    def held(self):
        return sorted(one.runtime_us for one in self.backend.held.values())

    def test_there_and_back(self):
        agent = self.start_agent()
        try:
            found = self.eventually(
                lambda answer: answer['balloon']['guest_answers']
            )['balloon']
            self.assertEqual(
                ('full', 4, 4, 1),
                tuple(
                    found[name]
                    for name in (
                        'state',
                        'vcpus',
                        'online_vcpus',
                        'floor_vcpus',
                    )
                ),
            )
            answer = self.http.post(
                '/v1/balloons',
                json={'instance_uuid': self.uuid, 'target_vcpus': 2},
            )
            self.assertEqual(202, answer.status_code, answer.json)
            found = self.eventually(self.is_order('applied'))['balloon']
            self.assertEqual(
                ('manual', 2), (found['state'], found['online_vcpus'])
            )
            self.assertEqual({0, 1}, self.guests.online(self.uuid))
            # All of what was promised, in the hands of those that are left.
            self.assertEqual([8_000, 8_000], self.held())
            # The fewest that could hold what is promised now.
            self.assertEqual(
                202,
                self.http.patch(
                    '/v1/reservations/' + self.uuid,
                    json={'runtime_us': 12_000},
                ).status_code,
            )
            found = self.eventually(self.is_order('refused'))['balloon']
            self.assertEqual(
                (3, 'vsched.balloon.does_not_fit'),
                (found['floor_vcpus'], found['order']['code']),
            )
            answer = self.http.post(
                '/v1/balloons',
                json={'instance_uuid': self.uuid, 'target_vcpus': 2},
            )
            self.assertEqual(409, answer.status_code)
            self.assertEqual(
                'vsched.balloon.does_not_fit', answer.json['errors'][0]['code']
            )
            self.assertEqual(202, self.http.delete(self.path).status_code)
            self.eventually(lambda answer: answer['balloon']['order'] is None)
            history = self.eventually(
                lambda answer: (
                    answer['history'] and answer['history'][0]['ended_at']
                ),
                '/v1/balloons/history',
            )['history']
            # The balloon has ended by now; the order may have before it.
            self.assertEqual({0, 1, 2, 3}, self.guests.online(self.uuid))
            self.assertEqual(
                [('undone', True, 2)],
                [
                    (one['outcome'], one['manual'], one['online_vcpus'])
                    for one in history
                ],
            )
        finally:
            agent.stop()

    def test_an_order_outlives_its_agent(self):
        agent = self.start_agent()
        try:
            self.eventually(lambda answer: answer['balloon']['guest_answers'])
            self.http.post(
                '/v1/balloons',
                json={
                    'instance_uuid': self.uuid,
                    'target_vcpus': 1,
                    'frozen': True,
                },
            )
            self.eventually(self.is_order('applied'))
        finally:
            agent.stop()
        # A stopping agent leaves nothing taken.
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.uuid))
        agent = self.start_agent()
        try:
            found = self.eventually(
                lambda answer: (
                    len(self.guests.online(self.uuid)) == 1
                    and self.is_order('applied')(answer)
                )
            )['balloon']
            self.assertEqual(
                (1, True),
                (found['order']['target_vcpus'], found['order']['frozen']),
            )
        finally:
            agent.stop()
        self.assertEqual({0, 1, 2, 3}, self.guests.online(self.uuid))
