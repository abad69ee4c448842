# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from vsched_lib.model import retry_pause


class TestRetryPause(base.BaseTestCase):
    def pauses(self, uniform):
        pause = retry_pause.RetryPause(1.0, 6.0, uniform)
        found = [pause.failed() for _ in range(5)]
        pause.succeeded()
        return [*found, pause.failed()]

    def test_they_double_up_to_the_longest(self):
        self.assertEqual(
            [1.0, 2.0, 4.0, 6.0, 6.0, 1.0], self.pauses(lambda low, high: 1.0)
        )

    def test_they_are_spread(self):
        self.assertEqual(
            [0.75, 1.5, 3.0, 4.5, 4.5, 0.75],
            self.pauses(lambda low, high: low),
        )
        self.assertEqual(
            [1.25, 2.5, 5.0, 7.5, 7.5, 1.25],
            self.pauses(lambda low, high: high),
        )
