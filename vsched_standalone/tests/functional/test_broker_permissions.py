# SPDX-License-Identifier: Apache-2.0

"""What the broker lets a node do, with the documented permissions."""

import subprocess
import threading
import urllib.parse
import uuid

import amqp
from oslo_config import cfg
from oslotest import base

from vsched_lib.contract import agent_rpc
from vsched_lib.contract import collector_rpc
from vsched_lib.contract import messages
from vsched_lib.contract import rpc
from vsched_lib.tests import rabbitmq
from vsched_lib.tests import rpc_suite
from vsched_standalone.tests import documentation

PATIENCE_S = 120
HOST = 'node-1'


class TestBrokerPermissions(base.BaseTestCase):
    """The user of one agent, on RabbitMQ."""

    def setUp(self):
        super().setUp()
        self.url = rabbitmq.make_vhost(self)
        self.vhost = self.url.rpartition('/')[2]
        self.collector = rpc_suite.Collector()
        self.controller = self.transport(self.url)
        self.serve(self.controller, collector_rpc.TOPIC, 'one', self.collector)
        self.user = self.add_user(HOST)

    def add_user(self, host):
        """As the documentation says; returns its name."""
        user = 'vsched-test-' + uuid.uuid4().hex
        script = documentation.block(
            'install/compute-nodes.rst', 'broker-agent'
        )
        for old, new in (
            ('-p vsched ', '-p %s ' % self.vhost),
            ('vsched-node-1', user),
            ('node-1', host),
            ('NODE_SECRET', 'secret'),
        ):
            self.assertIn(old, script)
            script = script.replace(old, new)
        self.addCleanup(
            subprocess.run,
            ['rabbitmqctl', '--quiet', 'delete_user', user],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        subprocess.run(
            ['sh', '-ec', script],
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        return user

    def url_of(self, user):
        parts = urllib.parse.urlsplit(self.url)
        return parts._replace(
            netloc='%s:secret@%s' % (user, parts.netloc.rpartition('@')[2])
        ).geturl()

    def transport(self, url):
        conf = cfg.ConfigOpts()
        conf([], default_config_files=[])
        transport = rpc.get_transport(conf, url)
        self.addCleanup(transport.cleanup)
        return transport

    def serve(self, transport, topic, server, endpoint):
        running = rpc.get_server(transport, topic, server, [endpoint])
        starting = threading.Thread(target=running.start, daemon=True)
        starting.start()
        starting.join(PATIENCE_S)
        self.assertFalse(starting.is_alive(), 'it may not listen')
        self.addCleanup(running.wait)
        self.addCleanup(running.stop)

    def attempt(self, act, user=None):
        """What AMQP answers; None when it is allowed."""
        host, port = rabbitmq.address()
        with amqp.Connection(
            '%s:%d' % (host, port),
            userid=user or self.user,
            password='secret',
            virtual_host=self.vhost,
            confirm_publish=True,
        ) as connection:
            try:
                act(connection.channel())
            except (amqp.AccessRefused, amqp.NotFound) as refused:
                return type(refused).__name__
        return None

    def test_an_agent_works(self):
        transport = self.transport(self.url_of(self.user))
        agent = rpc_suite.Agent()
        self.serve(transport, agent_rpc.TOPIC, HOST, agent)
        client = collector_rpc.CollectorClient(transport, PATIENCE_S)
        for number in range(1, 4):
            self.assertFalse(
                client.report(messages.Report(HOST, number, 1.0)).duplicate
            )
        self.assertEqual(self.collector.known, client.overrides(HOST))
        agent_rpc.AgentClient(self.controller, PATIENCE_S).overrides_changed(
            HOST, 7
        )
        self.assertEqual(7, agent.generations.get(timeout=PATIENCE_S))
        self.assertEqual(3, len(self.collector.reports))

    def test_an_agent_reads_nobody_elses_messages(self):
        other = self.add_user('node-2')
        self.serve(
            self.transport(self.url_of(other)),
            agent_rpc.TOPIC,
            'node-2',
            rpc_suite.Agent(),
        )
        for queue in (
            'vsched-collector',
            'vsched-collector.one',
            'vsched-agent.node-2',
        ):
            for act in (
                lambda channel, queue=queue: channel.basic_consume(queue),
                lambda channel, queue=queue: channel.basic_get(queue),
                lambda channel, queue=queue: channel.queue_purge(queue),
                lambda channel, queue=queue: channel.queue_delete(queue),
            ):
                self.assertEqual('AccessRefused', self.attempt(act), queue)
        # Its own it may.
        self.assertIsNone(
            self.attempt(
                lambda channel: channel.basic_get('vsched-agent.node-2'), other
            )
        )

    def test_an_agent_sends_to_collectors_only(self):
        def publish(key, exchange='vsched'):
            return self.attempt(
                lambda channel: channel.basic_publish(
                    amqp.Message('{}'), exchange, key
                )
            )

        self.assertIsNone(publish('vsched-collector'))
        for key in ('vsched-agent.node-2', 'vsched-agent', 'vsched-other'):
            self.assertEqual('AccessRefused', publish(key), key)
        # The default exchange leads to every queue, such as those on which
        # others wait for answers.
        self.assertEqual('AccessRefused', publish('vsched-collector', ''))
        self.assertEqual(
            'AccessRefused', publish('', 'vsched-collector_fanout')
        )

    def test_an_agent_does_not_listen_in_with_a_queue_of_its_own(self):
        def bind(key):
            def act(channel):
                channel.queue_declare('reply_' + 'a' * 32)
                channel.queue_bind('reply_' + 'a' * 32, 'vsched', key)

            return self.attempt(act)

        for key in ('vsched-collector', '#', 'vsched-agent.node-2'):
            self.assertEqual('AccessRefused', bind(key), key)

        def bind_own(channel):
            channel.queue_declare('vsched-agent.node-1')
            channel.queue_bind(
                'vsched-agent.node-1', 'vsched', 'vsched-collector'
            )

        self.assertEqual('AccessRefused', self.attempt(bind_own))
