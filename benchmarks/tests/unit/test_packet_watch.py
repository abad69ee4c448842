# SPDX-License-Identifier: Apache-2.0

import struct

from oslotest import base

from benchmarks import charging_rig
from benchmarks import packet_watch


def packet(number, source=40_000, target=charging_rig.ECHO_PORT, options=0):
    header = bytearray(20 + 4 * options)
    header[0] = 0x40 | (5 + options)
    header[9] = 17
    return bytes(header) + struct.pack('!HHHHQ', source, target, 16, 0, number)


def answer(number, **fields):
    return packet(number, charging_rig.ECHO_PORT, 40_000, **fields)


class PairTestCase(base.BaseTestCase):
    def test_from_request_to_answer(self):
        self.assertEqual(
            {1: 1.5, 2: 4.0},
            packet_watch.pair(
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
                {}, packet_watch.pair(iter((asked, (other, False, 1))))
            )

    def test_answer_without_a_request(self):
        self.assertEqual(
            {}, packet_watch.pair(iter(((answer(1), False, 1_000),)))
        )
