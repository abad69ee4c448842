# SPDX-License-Identifier: Apache-2.0

import contextlib

from oslotest import base

from benchmarks.tests import runs
from benchmarks import work_conserving


class FakeRig:
    """Guests of which RECLAIM alone takes time from others."""

    def __init__(self, folder):
        self.mode = work_conserving.CAPPED
        self.going = True

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        pass

    def hold(self, mode):
        self.mode = mode

    def stop(self):
        self.going = False

    def go(self):
        self.going = True

    @contextlib.contextmanager
    def bursts(self, period_s):
        yield

    def watch(self, seconds):
        if self.mode == work_conserving.RECLAIM:
            return 0.95, 1.05
        if self.mode == work_conserving.CAPPED:
            return 0.3, 1.7
        return (0.302, 1.698) if self.going else (0.94, 0.0)

    def await_flag(self, wanted):
        return 0.3 if wanted else 0.02


class TestRun(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.patch(work_conserving.needs, 'guests', lambda: None)
        self.patch(work_conserving, '_Rig', FakeRig)
        self.patch(work_conserving.agent_guests, 'pause', lambda seconds: None)

    def run_all(self, quick):
        variants, metrics = runs.finish(work_conserving.run(quick))
        return {one.name: one.figures for one in variants}, metrics

    def test_figures(self):
        variants, metrics = self.run_all(quick=False)
        self.assertEqual(
            {
                'ordinary_loss_pct': 0.12,
                'burst_loss_pct': 0.12,
                'idle_share_pct': 94.0,
                'switch_s': 0.3,
                'busy_share_pct': 30.2,
                'reclaim_loss_pct': 38.24,
                'reclaim_share_pct': 95.0,
            },
            metrics,
        )
        self.assertEqual(5, len(variants['busy-capped']['share']['all']))
        self.assertEqual(set(work_conserving.ABOUT.units), set(metrics))

    def test_every_target_is_met_or_missed(self):
        _, metrics = self.run_all(quick=True)
        for target in work_conserving.ABOUT.targets:
            self.assertEqual(0, target.missed_by(metrics[target.metric]))
