# SPDX-License-Identifier: Apache-2.0

"""Clients and servers on a real broker, and without one."""

import threading
import time
import uuid

from oslotest import base

from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_replies
from vsched_lib.contract import errors
from vsched_lib.tests import bus_garbage
from vsched_lib.tests import rabbitmq
from vsched_lib.tests import rpc_suite


class RabbitTestCase(
    rpc_suite.RpcSuite, rpc_suite.HeartbeatTests, base.BaseTestCase
):
    def setUp(self):
        self.url = rabbitmq.make_vhost(self)
        super().setUp()

    def test_what_is_no_notification_holds_no_agent_up(self):
        agent = rpc_suite.Agent()
        self.serve(agent_rpc.TOPIC, 'node1', agent)
        topic = agent_rpc.TOPIC + '.node1'
        rabbitmq.await_queue(self.url, topic)

        def notification(**changes):
            return bus_garbage.request(
                'overrides_changed', {'generation': 1}, **changes
            )

        bus_garbage.publish(
            self.url,
            self.conf.control_exchange,
            topic,
            [
                *bus_garbage.messages(notification),
                *(
                    bus_garbage.envelope(
                        notification(args={'generation': one})
                    )
                    for one in (*bus_garbage.ODD, 2**63, 10**4000)
                ),
            ],
        )
        client = self.agent_client()
        for generation in (7, 8, 9):
            client.overrides_changed('node1', generation)
        found = set()
        while not found.issuperset((7, 8, 9)):
            found.add(agent.generations.get(timeout=rpc_suite.PATIENCE_S))
        # Some have a generation; what is odd of them is not read.
        self.assertLessEqual(found, {0, 1, 7, 8, 9})
        self.assertEqual({int}, {type(one) for one in found})

    def test_without_a_queue_nothing_waits_for_an_answer(self):
        # As after the broker was restarted, before a collector is back. An
        # answer would time out with another class of error.
        self.assertRaises(
            errors.BusUnavailable,
            self.client(rpc_suite.PATIENCE_S).report,
            rpc_suite.report(),
        )

    def test_replies_of_agents_wait_for_no_queue(self):
        agent = rpc_suite.Agent()
        self.serve(agent_rpc.TOPIC, 'node1', agent)
        topic = agent_rpc.TOPIC + '.node1'
        rabbitmq.await_queue(self.url, topic)
        threads = self.conf.executor_thread_pool_size
        bus_garbage.publish(
            self.url,
            self.conf.control_exchange,
            topic,
            [
                bus_garbage.envelope(
                    bus_garbage.request('jobs_changed', {'generation': one})
                )
                for one in range(2 * threads)
            ],
        )
        self.agent_client().overrides_changed('node1', 9)
        # Each reply would wait for 60 s by default, in one of the threads.
        while agent.generations.get(timeout=50) != 9:
            pass

    def test_a_queue_of_replies_may_come_late(self):
        # As that of an agent, after the broker was restarted.
        agent = rpc_suite.Agent()
        self.serve(agent_rpc.TOPIC, 'node1', agent)
        topic = agent_rpc.TOPIC + '.node1'
        rabbitmq.await_queue(self.url, topic)
        queue = 'reply_' + uuid.uuid4().hex

        def ask(generation):
            bus_garbage.publish(
                self.url,
                self.conf.control_exchange,
                topic,
                [
                    bus_garbage.envelope(
                        bus_garbage.request(
                            'overrides_changed',
                            {'generation': generation},
                            _reply_q=queue,
                        )
                    )
                ],
            )
            return agent.generations.get(timeout=rpc_suite.PATIENCE_S)

        with self.assertLogs('oslo_messaging._drivers.amqpdriver') as log:
            self.assertEqual(1, ask(1))
            give_up = time.monotonic() + rpc_suite.PATIENCE_S
            while not any('missing queue' in one for one in log.output):
                self.assertLess(time.monotonic(), give_up)
                time.sleep(0.01)
        with rabbitmq.new_queue(self.url, queue) as next_reply:
            self.assertEqual(2, ask(2))
            self.assertIn(b'_msg_id', next_reply())

    def test_wrong_password(self):
        transport = self.make_transport(self.url.replace(':guest@', ':wrong@'))
        self.assertRaises(
            errors.Unreachable,
            self.client(transport=transport).report,
            rpc_suite.report(),
        )
        self.assertRaises(
            errors.Unreachable,
            agent_rpc.AgentClient(transport).overrides_changed,
            'node1',
            1,
        )


class OutageTestCase(rpc_suite.OnBus, base.BaseTestCase):
    """A broker that comes late or goes: a door before the real one."""

    def setUp(self):
        self.direct = rabbitmq.make_vhost(self)
        self.door = rabbitmq.Door()
        self.door.open()
        self.addCleanup(self.door.shut)
        self.url = self.door.url(self.direct)
        super().setUp()
        self.conf.set_override(
            'rabbit_interval_max', 1, group='oslo_messaging_rabbit'
        )

    def until_delivered(self, client, report):
        """Try as an agent does; returns how often it failed."""
        for failures in range(rpc_suite.PATIENCE_S * 10):
            try:
                client.report(report)
            except errors.Unreachable:
                threading.Event().wait(0.1)
            else:
                return failures
        raise AssertionError('never delivered')

    def test_broker_away_from_the_start(self):
        self.door.shut()
        client = self.client(1)
        self.assertRaises(
            errors.Unreachable, client.report, rpc_suite.report()
        )
        self.assertRaises(errors.Unreachable, client.overrides, 'node1')
        self.assertRaises(
            errors.Unreachable,
            agent_rpc.AgentClient(self.transport).overrides_changed,
            'node1',
            1,
        )
        self.door.open()
        collector = self.collector(transport=self.make_transport(self.direct))
        self.until_delivered(client, rpc_suite.report(2))
        self.assertIn(2, [one.batch for one in collector.reports])

    def test_broker_dies_and_returns(self):
        collector = self.collector()
        # Fails soon while the door is shut; a busy broker answers later.
        client = self.client(2)
        agent = agent_rpc.AgentClient(self.transport)
        self.until_delivered(client, rpc_suite.report(1))
        self.door.shut()
        self.assertRaises(
            errors.Unreachable, client.report, rpc_suite.report(2)
        )
        self.assertRaises(
            errors.Unreachable, agent.overrides_changed, 'node1', 1
        )
        self.door.open()
        for batch in range(2, 6):
            self.until_delivered(client, rpc_suite.report(batch))
        batches = [one.batch for one in collector.reports]
        # All of them, in order; one may have come more than once.
        self.assertEqual([1, 2, 3, 4, 5], sorted(set(batches)))
        self.assertEqual(
            collector_replies.Overrides(3, collector.known.overrides),
            self.client().overrides('node1'),
        )
