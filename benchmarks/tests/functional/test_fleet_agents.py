# SPDX-License-Identifier: Apache-2.0

"""Simulated agents on a real broker."""

import time

from oslo_config import cfg
from oslotest import base

from benchmarks import fleet_agents
from benchmarks import fleet_bus
from vsched_lib.contract import collector_replies
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import rpc
from vsched_lib.contract import signing
from vsched_lib.contract import signing_keys
from vsched_lib.tests import rabbitmq

MASTER = bytes(range(32))
EPOCH = '5e' * 16
PATIENCE_S = 120.0


class _Endpoint(collector_rpc.CollectorEndpoint):
    """Takes reports of any host whose signature is right."""

    def __init__(self):
        self.taken = []
        self.contexts = []
        self.authenticator = self

    @rpc.expose
    @rpc.expected_errors
    def report(self, ctxt, report):
        self.contexts.append(ctxt)
        return super().report(ctxt, report)

    def admit(self, method, arguments, signature, reads):
        envelope = signing.Envelope.from_dict(signature)
        key = signing_keys.derive(MASTER, envelope.host, 1)
        caller = _Caller(key, envelope)
        expected = signing.mac(
            key,
            signing.Direction.REQUEST,
            method,
            envelope.at_us,
            envelope.nonce,
            envelope.epoch,
            envelope.sequence,
            arguments,
        )
        assert signing.matches(envelope.mac, expected), envelope
        return caller

    def on_report(self, report):
        self.taken.append(report)
        return collector_replies.ReportReply(False, 7)

    def on_overrides(self, host):
        raise NotImplementedError

    def on_jobs(self, host):
        raise NotImplementedError


class _Caller(collector_rpc.Caller):
    def __init__(self, key, envelope):
        self.host = key.host
        self._key, self._envelope = key, envelope

    def seal(self, method, reply):
        return signing.sign_reply(self._key, self._envelope, method, reply)


class TestFleetAgents(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.url = rabbitmq.make_vhost(self)
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[], default_config_dirs=[])
        self.transport = rpc.get_transport(conf, self.url)
        self.addCleanup(self.transport.cleanup)
        self.endpoint = _Endpoint()
        server = rpc.get_server(
            self.transport, collector_rpc.TOPIC, 'collector', [self.endpoint]
        )
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        rabbitmq.await_queue(self.url, collector_rpc.TOPIC)
        self.task = fleet_agents.Task(
            self.url, 3, 2, 2, 1.0, 2.5, MASTER.hex()
        )

    def test_a_report_is_that_of_an_agent(self):
        agent = fleet_agents.Agent(self.task, 3)
        agent.plan(time.monotonic())
        arguments, context = agent.request()
        replies = []
        bus = fleet_bus.Bus(self.url, lambda *reply: replies.append(reply))
        self.addCleanup(bus.close)
        call = bus.call('report', arguments, context)
        give_up = time.monotonic() + PATIENCE_S
        while not replies:
            self.assertLess(time.monotonic(), give_up)
            bus.drain(1.0)
        (mine,) = self.endpoint.taken

        key = signing_keys.derive(MASTER, agent.host, 1)
        client = collector_rpc.CollectorClient(
            self.transport,
            PATIENCE_S,
            signing.Signer(
                signing.Mode.REQUIRED, agent.host, lambda: key, lambda: EPOCH
            ),
        )
        answer = client.report(mine)

        ((identity, result, failure),) = replies
        self.assertEqual((call, None), (identity, failure))
        del result[signing.FIELD]
        self.assertEqual(answer.to_dict(), result)
        # What oslo.messaging adds to a request, and the signature.
        ours, theirs = self.endpoint.contexts
        self.assertEqual(sorted(theirs), sorted(ours))
        self.assertEqual(
            sorted(theirs[signing.FIELD]), sorted(ours[signing.FIELD])
        )
        self.assertEqual([mine, mine], self.endpoint.taken)

    def test_all_reports_are_answered(self):
        found = fleet_agents.run(self.task)
        self.assertEqual([], found['problems'])
        self.assertEqual(0, found['failed'])
        # Of each agent one a second, the first within the first second. One
        # that was answered late came twice.
        batches = {(one.host, one.batch) for one in self.endpoint.taken}
        for number in (3, 4):
            host = fleet_agents.name(number)
            self.assertIn(
                sorted(batch for name, batch in batches if name == host),
                ([1, 2], [1, 2, 3]),
            )
        self.assertEqual(len(batches), len(found['reports']))
