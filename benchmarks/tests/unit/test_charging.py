# SPDX-License-Identifier: Apache-2.0

import socket

from oslotest import base

from benchmarks import charging
from benchmarks import charging_rig


class WindowsTestCase(base.BaseTestCase):
    def test_means_of_so_many_in_a_row(self):
        self.assertEqual([1.5, 2.5], charging_rig.windows([1.0, 2.0, 3.0], 2))

    def test_fewer_than_a_window(self):
        self.assertEqual([2.0], charging_rig.windows([1.0, 3.0], 10))


class Table3TestCase(base.BaseTestCase):
    def figures(self, mean_ms, early_ms, pps):
        return {
            'mean_ms': mean_ms,
            'early_mean_ms': early_ms,
            'stream_pps': pps,
        }

    def test_both_are_judged_by_the_worse_of_the_same_loads(self):
        found = charging.table_3(
            (self.figures(3.0, 3.0, 900.0), self.figures(2.0, 2.5, 900.0)),
            (self.figures(6.0, 6.0, 900.0), self.figures(2.0, 2.0, 891.0)),
        )
        self.assertEqual(1.5, found['small_vm_worst_response_ratio'])
        self.assertEqual(1.5, found['small_vm_response_ratio_2_hogs'])
        self.assertEqual(3.0, found['small_vm_response_ratio_4_hogs'])
        self.assertEqual(1.2, found['small_vm_early_response_ratio'])
        self.assertAlmostEqual(1.0, found['stream_worst_loss_pct'])


class ResponseTestCase(base.BaseTestCase):
    def test_of_answers(self):
        found = charging._response([1.0] * 95 + [5.0] * 4 + [1000.0])
        self.assertEqual(
            (100, 1.0, 1000.0, 1),
            (
                found['requests'],
                found['p95_ms'],
                found['max_ms'],
                found['lost'],
            ),
        )
        self.assertEqual(11.15, found['mean_ms'])

    def test_the_kernels_time_of_an_answer(self):
        with (
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server,
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
        ):
            server.bind(('127.0.0.1', 0))
            client.setsockopt(
                socket.SOL_SOCKET, charging_rig._SO_TIMESTAMPNS, 1
            )
            client.connect(server.getsockname())
            # It answers itself: what comes back is there before it asks.
            server.connect(client.getsockname())
            server.send((7).to_bytes(8, 'big'))
            self.assertLess(charging_rig._answer_ms(client, 7), 1.0)
