# SPDX-License-Identifier: Apache-2.0

"""Runs price what a made-up host spends, and go on where they were."""

import contextlib
import os
import tempfile
import threading
from unittest import mock

from oslotest import base

from vsched_agent.hypervisor import base as hypervisor
from vsched_agent.profiling import checkpoint
from vsched_agent.profiling.error import runner
from vsched_agent.profiling.overhead import loads
from vsched_agent.profiling.overhead import pricing
from vsched_lib.contract import messages
from vsched_lib.model import overhead

#: Microseconds that the made-up host spends.
PRICES = {'net_rx': 10, 'net_tx': 20, 'disk_read': 30, 'disk_write': 40}
WAKEUP_US, IDLE_US = 15, 5000
UUID = '11111111-2222-4333-8444-555555555555'
FACTS = {'kernel': '6.1', 'tick_us': 4000, 'cpus': 2, 'features': {'a': 1}}


class _Guest:
    domain = hypervisor.Domain(UUID, 'one', 7, ())


class _Stage:
    """Counts what the load would have made a host count."""

    def __init__(self, noise=lambda number: 0):
        self.guests = [_Guest()]
        self.features = {'virt_type': 'qemu'}
        self.notes = ['emulated']
        self.seen = []
        self.up = 0
        self._load = None
        self._noise = noise

    def __enter__(self):
        self.up += 1
        return self

    def __exit__(self, *problem):
        self.up -= 1

    @contextlib.contextmanager
    def under(self, mix):
        ((_, self._load),) = mix
        self.seen.append(self._load)
        yield
        self._load = None

    def meter(self, domains):
        load = self._load
        if load.experiment is loads.Experiment.IDLE:
            counts, wakeups = {}, 3
        else:
            term = load.experiment.replace('-', '_')
            counts, wakeups = {term: load.rate}, load.rate // load.burst
        cost_us = (
            IDLE_US
            + WAKEUP_US * wakeups
            + sum(PRICES[term] * count for term, count in counts.items())
        )
        names = {
            'net_rx': 'net_rx_packets',
            'net_tx': 'net_tx_packets',
            'disk_read': 'disk_read_requests',
            'disk_write': 'disk_write_requests',
        }
        return [
            messages.UsageSample(
                domains[0].uuid,
                1.0,
                1_000_000,
                0,
                0,
                wakeups=wakeups,
                direct_us=cost_us + self._noise(len(self.seen)),
                **{names[term]: count for term, count in counts.items()},
            )
        ]


class PricingRunTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'run')
        self.stopping = threading.Event()
        self.told = []

    def profile(self, stage):
        kept = checkpoint.RunFile(self.path, {}, True)
        try:
            with mock.patch.object(loads, 'WARM_UP_S', 0):
                return pricing.PricingRun(
                    loads.Plan(window_s=0, idle=2),
                    FACTS,
                    stage,
                    stage.meter,
                    kept,
                    self.stopping,
                    lambda ppm, doing: self.told.append((ppm, doing)),
                ).run(3)
        finally:
            kept.close()

    def test_prices_are_found(self):
        stage = _Stage()
        found = self.profile(stage)
        prices = {one.term: one.cost_ns for one in found.prices}
        for term, cost_us in {
            **PRICES,
            overhead.WAKEUPS: WAKEUP_US,
            overhead.IDLE: IDLE_US,
        }.items():
            self.assertAlmostEqual(cost_us * 1000, prices[term], delta=1)
        self.assertTrue(found.good)
        self.assertEqual(
            (3, '6.1', True, ('emulated',)),
            (found.version, found.kernel, found.complete, found.notes),
        )
        self.assertEqual({'a': 1, 'virt_type': 'qemu'}, found.features)
        self.assertEqual(len(stage.seen), found.n)
        for point in found.points:
            self.assertAlmostEqual(
                point.direct_us, point.predicted_us, delta=1
            )
        self.assertEqual(0, stage.up)
        self.assertIn('load 1 of 62', self.told[1][1])

    def test_a_poor_fit_says_so(self):
        found = self.profile(_Stage(lambda number: 500_000 * (number % 3)))
        self.assertFalse(found.good)
        self.assertIn('no price is used', found.notes[-1])

    def test_a_run_that_was_stopped_goes_on(self):
        def noise(number):
            if number == 5:
                self.stopping.set()
            return 0

        stage = _Stage(noise)
        self.assertRaises(runner.Cancelled, self.profile, stage)
        self.assertEqual((5, 0), (len(stage.seen), stage.up))
        self.stopping.clear()
        # What was under way is measured again, the others are not.
        found = self.profile(stage)
        self.assertEqual(found.n + 1, len(stage.seen))
        self.profile(stage)
        self.assertEqual(found.n + 1, len(stage.seen))
