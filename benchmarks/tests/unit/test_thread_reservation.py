# SPDX-License-Identifier: Apache-2.0

import errno
from unittest import mock

from oslotest import base

from benchmarks import thread_reservation


class ReserveTestCase(base.BaseTestCase):
    def test_bandwidth_that_is_not_free_yet(self):
        self.patch(
            thread_reservation.agent_guests, 'pause', lambda seconds: None
        )
        busy = OSError(errno.EBUSY, 'busy')
        with mock.patch.object(
            thread_reservation.syscalls,
            'set_attr',
            autospec=True,
            side_effect=[busy, None],
        ) as calls:
            thread_reservation.reserve(7, 1_000, 5_000)
        self.assertEqual(2, calls.call_count)
        self.assertEqual(
            (1_000_000, 5_000_000, 5_000_000), calls.call_args.args[1][4:]
        )

    def test_other_failures(self):
        with mock.patch.object(
            thread_reservation.syscalls,
            'set_attr',
            autospec=True,
            side_effect=OSError(errno.EPERM, 'no'),
        ):
            self.assertRaises(
                OSError, thread_reservation.reserve, 7, 1_000, 5_000
            )
