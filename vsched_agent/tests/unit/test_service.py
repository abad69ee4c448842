# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction
import socket
import tempfile
import threading
import time
from unittest import mock
import urllib.request
import uuid as uuids

from oslo_config import cfg
from oslotest import base

from vsched_agent import conf as agent_conf
from vsched_agent import service
from vsched_agent.state import directory
from vsched_agent.tests import agent_parts
from vsched_agent.tests import collector_endpoint
from vsched_agent.tests import fakes
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.model import reservation
from vsched_lib.tests import ports

DEADLINE = reservation.Backend.DEADLINE
#: Only a hang takes longer.
PATIENCE_S = 60


class TestAgent(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.host = uuids.uuid4().hex
        self.conf = cfg.ConfigOpts()
        agent_conf.register_opts(self.conf)
        self.conf([], default_config_files=[], default_config_dirs=[])
        self._set('state_path', folder.name)
        self._set('host', self.host)
        self.transport = rpc.get_transport(self.conf, 'fake://')
        self.collector = fakes.FakeCollector()
        self.hypervisor = fakes.FakeHypervisor()
        self.backend = fakes.FakeBackend(DEADLINE)
        for name, fake in (
            ('backends.Ladder', lambda conf: agent_parts.Ladder(self.backend)),
            (
                'backends.capacity.KernelCapacity',
                lambda reserve_mcpu: agent_parts.Capacity(Fraction(18, 10)),
            ),
            ('usage.meter_of', lambda *arguments: agent_parts.Meter()),
            ('privileged.use', lambda conf: None),
        ):
            patch = mock.patch('vsched_agent.service.' + name, fake)
            patch.start()
            self.addCleanup(patch.stop)

    def _set(self, name, value):
        self.conf.set_override(name, value, 'agent')
        # Groups are shared by all that register them.
        self.addCleanup(self.conf.clear_override, name, 'agent')

    def _started(self):
        agent = service.Agent(self.conf, self.transport, self.hypervisor)
        agent.start()
        return agent

    def _serve(self):
        server = rpc.get_server(
            self.transport,
            collector_rpc.TOPIC,
            'collector',
            [collector_endpoint.Endpoint(self.collector)],
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)

    def _run_for_one_report(self):
        """Run an agent until its first report has arrived."""
        self._serve()
        agent = self._started()
        while not self.collector.reports:
            agent._stopped.wait(0.01)
        return agent

    def test_metrics(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.hypervisor.running[one.uuid] = one
        port = ports.reserve()
        self._set('metrics_bind_port', port)
        agent = self._run_for_one_report()
        try:
            self.assertEqual(port, agent.metrics_port)
            text, give_up = '', time.monotonic() + PATIENCE_S
            # A report is counted right after it was made, and may arrive
            # before.
            while '{state="applied"} 1.0\n' not in text:
                self.assertLess(time.monotonic(), give_up, text)
                with urllib.request.urlopen(
                    'http://127.0.0.1:%d/metrics' % port, timeout=PATIENCE_S
                ) as reply:
                    text = reply.read().decode()
        finally:
            agent.stop()
        self.assertIn('\nvsched_agent_capacity_cores 1.8\n', text)
        self.assertEqual(0, agent.metrics_port)

    def test_metrics_that_cannot_be_served(self):
        with socket.create_server(('127.0.0.1', 0)) as taken:
            self._set('metrics_bind_port', taken.getsockname()[1])
            agent = self._run_for_one_report()
        self.assertEqual(0, agent.metrics_port)
        agent.stop()

    def test_holds_reports_and_leaves_all_in_force(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.hypervisor.running[one.uuid] = one
        agent = self._run_for_one_report()
        report = self.collector.reports[0]
        self.assertEqual(
            (self.host, 'fake', 1_800),
            (
                report.host,
                report.host_info.hypervisor,
                report.host_info.capacity_mcpu,
            ),
        )
        self.assertEqual(
            [messages.BackendInfo('deadline', True)],
            list(report.host_info.backends),
        )
        self.assertNotIn(
            'ok', [one.level for one in report.host_info.findings]
        )
        while not self.backend.held:
            agent._stopped.wait(0.01)
        agent.stop()
        agent.wait()
        self.assertEqual({101}, set(self.backend.held))

    def test_restores_when_configured(self):
        self._set('restore_on_stop', True)
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.hypervisor.running[one.uuid] = one
        self._run_for_one_report().stop()
        self.assertEqual({}, self.backend.held)

    def test_restores_though_a_part_does_not_stop(self):
        self._set('restore_on_stop', True)
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.hypervisor.running[one.uuid] = one
        agent = self._run_for_one_report()
        stop = agent._jobs.stop

        def fail():
            stop()
            raise OSError('the test says so')

        with mock.patch.object(agent._jobs, 'stop', fail):
            agent.stop()
        agent.wait()
        self.assertEqual({}, self.backend.held)
        # Another agent can use the directory.
        directory.open_state(self.conf.agent.state_path).close()

    def test_enforces_without_a_collector(self):
        one = fakes.domain(1, cpu_runtime_us=4_000)
        self.hypervisor.running[one.uuid] = one
        with mock.patch.object(
            collector_rpc.CollectorClient,
            'report',
            autospec=True,
            side_effect=errors.Unreachable('the test says so'),
        ):
            agent = self._started()
            while not self.backend.held:
                agent._stopped.wait(0.01)
            agent.stop()
        self.assertEqual([], self.collector.reports)

    def test_an_rpc_server_that_does_not_stop_is_abandoned(self):
        agent = self._run_for_one_report()
        stuck = threading.Event()
        stop = agent._server.stop
        with (
            mock.patch.object(agent._server, 'stop', stuck.wait),
            mock.patch.object(service, 'RPC_STOP_TIMEOUT_S', 0.01),
        ):
            agent.stop()
            agent.wait()
        stuck.set()
        stop()

    def test_one_agent_for_each_folder(self):
        agent = self._run_for_one_report()
        self.addCleanup(agent.stop)
        with mock.patch.object(service, 'TAKEOVER_S', 0):
            self.assertRaises(directory.InUse, self._started)
