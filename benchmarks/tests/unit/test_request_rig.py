# SPDX-License-Identifier: Apache-2.0

import errno
import socket
import struct
import threading
from unittest import mock

from oslotest import base

from benchmarks import request_client
from benchmarks import request_rig


def packet(number, source=40_000, target=request_rig.PORT, options=0):
    header = bytearray(20 + 4 * options)
    header[0] = 0x40 | (5 + options)
    header[9] = 17
    return bytes(header) + struct.pack('!HHHHQ', source, target, 16, 0, number)


def answer(number, **fields):
    return packet(number, request_rig.PORT, 40_000, **fields)


class PairTestCase(base.BaseTestCase):
    def test_from_request_to_answer(self):
        self.assertEqual(
            {1: 1.5, 2: 4.0},
            request_rig.pair(
                iter(
                    (
                        (packet(1), True, 1_000_000),
                        (answer(1), False, 2_500_000),
                        (packet(2, options=2), True, 5_000_000),
                        (packet(3), True, 6_000_000),
                        (answer(2, options=1), False, 9_000_000),
                    )
                )
            ),
        )

    def test_others_packets_are_no_answers(self):
        asked = (packet(1), True, 0)
        for other in (
            b'',
            bytes(40),
            packet(1),
            answer(1)[:28],
            b'\x65' + answer(1)[1:],
            answer(1)[:9] + b'\x06' + answer(1)[10:],
            answer(2),
        ):
            self.assertEqual(
                {}, request_rig.pair(iter((asked, (other, False, 1))))
            )

    def test_answer_without_a_request(self):
        self.assertEqual(
            {}, request_rig.pair(iter(((answer(1), False, 1_000),)))
        )


class FiguresTestCase(base.BaseTestCase):
    def test_figures(self):
        found = request_rig.Measured(
            [1.0] * 95 + [5.0] * 4 + [1000.0],
            [2.0] * 100,
            [0.25, 0.35],
            0.1,
            0.02,
            1234.56,
        ).figures(late_ms=4.0)
        self.assertEqual(
            {
                'requests': 100,
                'mean_ms': 11.15,
                'p50_ms': 1.0,
                'p95_ms': 1.0,
                'p99_ms': 5.0,
                'max_ms': 1000.0,
                'lost': 1,
                'late': 5,
                'client_mean_ms': 2.0,
                'client_p50_ms': 2.0,
                'client_p95_ms': 2.0,
                'client_p99_ms': 2.0,
                'client_max_ms': 2.0,
                'hog_share': 0.3,
                'guest_share': 0.1,
                'host_share': 0.02,
                'switches_per_s': 1234.6,
            },
            found,
        )

    def test_spreads_of_repeats(self):
        self.assertEqual(
            {
                'a': {
                    'median': 2.0,
                    'least': 1.0,
                    'most': 4.0,
                    'all': [4.0, 1.0, 2.0],
                }
            },
            request_rig.spreads([{'a': 4.0}, {'a': 1.0}, {'a': 2.0}]),
        )

    def test_percentile_of_a_few(self):
        self.assertEqual(3.0, request_rig.percentile([1.0, 3.0], 99))
        self.assertEqual(1.0, request_rig.percentile([1.0, 3.0], 50))


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
        channel = self.serve([[None], [bytes(8), None]])
        found = request_client.ask(channel, 2, 1, pauses_s=(0.0, 0.001))
        self.assertEqual(2, len(found))
        self.assertLess(max(found), 1000.0)

    def test_lost(self):
        self.patch(request_client, 'PATIENCE_S', 0.05)
        channel = self.serve([[bytes(8)], [None]])
        found = request_client.ask(channel, 2, 1, pauses_s=(0.0, 0.001))
        self.assertEqual(50.0, found[0])


class ReserveTestCase(base.BaseTestCase):
    def test_bandwidth_that_is_not_free_yet(self):
        self.patch(request_rig.agent_guests, 'pause', lambda seconds: None)
        busy = OSError(errno.EBUSY, 'busy')
        with mock.patch.object(
            request_rig.syscalls,
            'set_attr',
            autospec=True,
            side_effect=[busy, None],
        ) as calls:
            request_rig.reserve(7, 1_000, 5_000)
        self.assertEqual(2, calls.call_count)
        self.assertEqual(
            (1_000_000, 5_000_000, 5_000_000), calls.call_args.args[1][4:]
        )

    def test_other_failures(self):
        with mock.patch.object(
            request_rig.syscalls,
            'set_attr',
            autospec=True,
            side_effect=OSError(errno.EPERM, 'no'),
        ):
            self.assertRaises(OSError, request_rig.reserve, 7, 1_000, 5_000)

    def test_what_hogs_take(self):
        self.assertEqual(1100, request_rig.Hogs.reserved_mcpu(5, 4_400))
        self.assertEqual(0, request_rig.Hogs.reserved_mcpu(5, 0))


class SteadyTestCase(base.BaseTestCase):
    def test_until_it_changes_no_longer(self):
        values = iter((1, 2, 2, 2))
        clock = iter(range(100))
        self.patch(request_rig.agent_guests, 'pause', lambda seconds: None)
        self.patch(request_rig.time, 'monotonic', lambda: next(clock))
        request_rig.await_steady(lambda: next(values, 2), 3, 90)
        self.assertEqual(2, next(values, 2))

    def test_it_changes_still(self):
        values = iter(range(1000))
        clock = iter(range(1000))
        self.patch(request_rig.agent_guests, 'pause', lambda seconds: None)
        self.patch(request_rig.time, 'monotonic', lambda: next(clock))
        self.assertRaises(
            RuntimeError, request_rig.await_steady, lambda: next(values), 5, 20
        )
