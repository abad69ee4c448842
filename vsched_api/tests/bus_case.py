# SPDX-License-Identifier: Apache-2.0

"""What tests of the collector on a real broker start from."""

import fixtures

from vsched_api.collector import service
from vsched_api.collector import transport as transports
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import collector_rpc
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rabbitmq


class BusTestCase(base.TestCase):
    """A virtual host of RabbitMQ, PostgreSQL, and a master key.

    :ivar url: of the virtual host.
    :ivar transport: the bus, as a collector has it.
    """

    kind = databases.PostgreSQL

    def setUp(self) -> None:
        super().setUp()
        self.url = rabbitmq.make_vhost(self)
        self.transport = transports.get_transport(self.conf, self.url)
        self.addCleanup(self.transport.cleanup)
        self.conf.set_override(
            'master_key_file',
            bus_keys.write(
                self.useFixture(fixtures.TempDir()).path,
                'master.key',
                bus_keys.MASTER,
            ),
            'bus',
        )

    def serve(self, name: str = 'one') -> service.Service:
        """Run a collector until the test ends; returns when it takes calls.

        :param name: its name on the bus.
        """
        collector = service.Service(self.conf, self.transport, name)
        collector.start()
        self.addCleanup(collector.stop)
        rabbitmq.await_queue(self.url, '%s.%s' % (collector_rpc.TOPIC, name))
        return collector
