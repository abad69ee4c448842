# SPDX-License-Identifier: Apache-2.0

"""What is different from the defaults of oslo.messaging."""

import os

import fixtures

from vsched_api.collector import transport as transports
from vsched_api.tests import base


class TestTransport(base.TestCase):
    """Defaults of a collector, and what an operator sets instead."""

    def options(self):
        # A server registers the option of its threads by itself.
        bus = transports.get_transport(self.conf, 'kombu+memory://')
        self.addCleanup(bus.cleanup)
        rabbit = self.conf.oslo_messaging_rabbit
        return (
            self.conf.executor_thread_pool_size,
            rabbit.rabbit_qos_prefetch_count,
            rabbit.kombu_missing_consumer_retry_timeout,
        )

    def test_defaults(self):
        self.assertEqual((24, 24, 0), self.options())

    def test_an_operator_may_set_others(self):
        path = os.path.join(
            self.useFixture(fixtures.TempDir()).path, 'vsched.conf'
        )
        with open(path, 'w', encoding='ascii') as file:
            file.write(
                '[DEFAULT]\n'
                'executor_thread_pool_size = 7\n'
                '[oslo_messaging_rabbit]\n'
                'rabbit_qos_prefetch_count = 8\n'
                'kombu_missing_consumer_retry_timeout = 9\n'
            )
        self.conf(['--config-file', path], project='vsched')
        self.assertEqual((7, 8, 9), self.options())

    def test_all_threads_may_have_a_connection(self):
        database = self.conf.database
        self.assertLessEqual(
            transports.THREADS, database.max_pool_size + database.max_overflow
        )
