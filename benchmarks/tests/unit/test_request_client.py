# SPDX-License-Identifier: Apache-2.0

import socket
import threading

from oslotest import base

from benchmarks import request_client


class ClientTestCase(base.BaseTestCase):
    def serve(self, answers):
        """Answer each request with the next texts, or with none."""
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(server.close)
        server.bind(('127.0.0.1', 0))

        def run():
            for texts in answers:
                data, sender = server.recvfrom(64)
                for text in texts:
                    server.sendto(data if text is None else text, sender)

        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        channel = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(channel.close)
        channel.connect(server.getsockname())
        return channel

    def test_one_time_for_each_request(self):
        # None is lost, however long a busy machine takes.
        self.patch(request_client, 'PATIENCE_S', 60.0)
        channel = self.serve([[None], [bytes(8), None]])
        found = request_client.ask(channel, 2, 1, pauses_s=(0.0, 0.001))
        self.assertEqual(2, len(found))
        self.assertLess(max(found), 60_000.0)

    def test_lost(self):
        self.patch(request_client, 'PATIENCE_S', 0.05)
        channel = self.serve([[bytes(8)], [None]])
        found = request_client.ask(channel, 2, 1, pauses_s=(0.0, 0.001))
        self.assertEqual(50.0, found[0])
