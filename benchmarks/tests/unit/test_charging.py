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

import socket

from oslotest import base

from benchmarks import charging
from benchmarks import charging_rig


class WindowsTestCase(base.BaseTestCase):
    def test_means_of_so_many_in_a_row(self):
        self.assertEqual(
            [1.5, 2.5], charging_rig.windows([1.0, 2.0, 3.0], 2))

    def test_fewer_than_a_window(self):
        self.assertEqual([2.0], charging_rig.windows([1.0, 3.0], 10))


class ResponseTestCase(base.BaseTestCase):
    def test_of_answers(self):
        found = charging._response([1.0] * 95 + [5.0] * 4 + [1000.0])
        self.assertEqual((100, 1.0, 1000.0, 1), (
            found['requests'], found['p95_ms'], found['max_ms'],
            found['lost']))
        self.assertEqual(11.15, found['mean_ms'])

    def test_the_kernels_time_of_an_answer(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            server.bind(('127.0.0.1', 0))
            client.setsockopt(socket.SOL_SOCKET,
                              charging_rig._SO_TIMESTAMPNS, 1)
            client.connect(server.getsockname())
            # It answers itself: what comes back is there before it asks.
            server.connect(client.getsockname())
            server.send((7).to_bytes(8, 'big'))
            self.assertLess(charging_rig._answer_ms(client, 7), 1.0)
