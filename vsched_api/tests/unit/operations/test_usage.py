# SPDX-License-Identifier: Apache-2.0

"""Figures that follow from a sample."""

import dataclasses

from oslotest import base

from vsched_api.operations import usage


class TestSample(base.BaseTestCase):
    """Shares and errors."""

    sample = usage.Sample(1, 0.0, 'h', 'u', 1_000_000, 600_000, 0, 600_000)

    def figures(self, **changes):
        found = dataclasses.replace(self.sample, **changes)
        return found.guest_mcpu, found.promised_mcpu, found.error_ppm

    def test_figures(self):
        self.assertEqual((600, 600, 0), self.figures())
        # More than promised is above 0.
        self.assertEqual((660, 600, 100_000), self.figures(guest_us=660_000))
        self.assertEqual((0, 600, -1_000_000), self.figures(guest_us=0))
        self.assertEqual(
            (1_200, 1_200, 0),
            self.figures(interval_us=500_000, promised_us=600_000),
        )

    def test_without_a_promise(self):
        self.assertEqual((600, None, None), self.figures(promised_us=None))
        self.assertEqual((600, 0, None), self.figures(promised_us=0))

    def test_an_empty_interval(self):
        self.assertEqual((None, None, 0), self.figures(interval_us=0))
