# SPDX-License-Identifier: Apache-2.0

"""What tests of the collector on a real broker start from."""

import fixtures

from vsched_api.collector import service
from vsched_api.tests import base
from vsched_api.tests import databases
from vsched_lib.contract import rpc
from vsched_lib.tests import bus_keys
from vsched_lib.tests import rabbitmq


class BusTestCase(base.TestCase):
    """A virtual host of RabbitMQ, PostgreSQL, and a master key.

    :ivar transport: the bus.
    """

    kind = databases.PostgreSQL

    def setUp(self) -> None:
        super().setUp()
        self.transport = rpc.get_transport(
            self.conf, rabbitmq.make_vhost(self)
        )
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

    def serve(self, name: str = 'one') -> None:
        """Run a collector until the test ends.

        :param name: its name on the bus.
        """
        collector = service.Service(self.conf, self.transport, name)
        collector.start()
        self.addCleanup(collector.stop)
