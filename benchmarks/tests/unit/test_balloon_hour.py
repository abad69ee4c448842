# SPDX-License-Identifier: Apache-2.0

import itertools
import types

from oslotest import base

from benchmarks import balloon_acts
from benchmarks import balloon_hour
from benchmarks import balloon_turns
from benchmarks import balloon_watch
from vsched_lib.contract import balloons


def told(*gaps_s, **fields):
    return balloon_hour.Told(
        balloon_acts.Acts((1.0,) * (1 + len(gaps_s)), gaps_s, 4, 1),
        {},
        **{
            'missing_s': 0.0,
            'standstill_s': 0.2,
            'vcpus_missing': 0,
            'threads_changed': 0,
            **fields,
        },
    )


class MetricsTest(base.BaseTestCase):
    def metrics(self, **guests):
        watch = types.SimpleNamespace(looks=7, misfits=['one'], longest_s=31.0)
        return balloon_hour._metrics(
            balloon_hour.Hour(100.0, guests, watch, 0, (1, 0), 0),
            balloon_hour.FULL,
            2,
        )

    def test_over_all_guests(self):
        found = self.metrics(
            promised=told(31.0, 29.5, vcpus_missing=3),
            plain=told(40.0, missing_s=1.5, standstill_s=0.7),
        )
        self.assertEqual(
            (5, 8, 29.5, 1, 2),
            tuple(
                found[name]
                for name in (
                    'balloons',
                    'most_balloons',
                    'least_gap_s',
                    'too_soon',
                    'failed',
                )
            ),
        )
        self.assertEqual(
            (1.5, 0.7, 3, 1, 2),
            tuple(
                found[name]
                for name in (
                    'samples_missing_s',
                    'longest_standstill_s',
                    'vcpus_missing',
                    'misfits',
                    'host_changes',
                )
            ),
        )

    def test_every_figure_is_explained(self):
        self.assertEqual(
            set(balloon_hour.ABOUT.units), set(self.metrics(plain=told()))
        )


class TurnsTest(base.BaseTestCase):
    def turns(self, seed):
        return list(itertools.islice(balloon_turns.turns(seed), 100))

    def test_the_same_for_the_same_seed(self):
        self.assertEqual(self.turns('one'), self.turns('one'))
        self.assertNotEqual(self.turns('one'), self.turns('two'))

    def test_work_and_rest(self):
        found = self.turns('one')
        self.assertTrue(all(turn.kind for turn in found[::2]))
        self.assertFalse(any(turn.kind for turn in found[1::2]))
        self.assertTrue(all(1 <= turn.seconds <= 90 for turn in found))


class MisfitTest(base.BaseTestCase):
    SAID = balloons.BalloonReport(
        'vm', balloons.BalloonState.KEPT, True, 4, 1, 1, 1, 0.0, cpus=(1,)
    )
    HELD = [(16_000, 20_000), None, None, None]

    def misfit(self, used=(0,), bound_vcpus=(0,), promised=0.8, held=None):
        return balloon_watch.misfit(
            self.SAID, set(used), set(bound_vcpus), promised, held or self.HELD
        )

    def test_all_fits(self):
        self.assertIsNone(self.misfit())
        self.assertIsNone(self.misfit(promised=0.0, held=[None] * 4))

    def test_the_guest_uses_others(self):
        self.assertIn('uses vCPUs [0, 1]', self.misfit(used=(0, 1)))

    def test_others_are_bound(self):
        self.assertIn('are bound', self.misfit(bound_vcpus=()))
        # Nothing runs there.
        self.assertIsNone(self.misfit(bound_vcpus=(0, 1)))

    def test_an_offline_vcpu_holds_a_reservation(self):
        self.assertIn(
            'vCPUs [0, 1] hold',
            self.misfit(held=[(8_000, 20_000)] * 2 + [None] * 2),
        )
        self.assertIn('hold', self.misfit(promised=0.0))

    def test_the_promise_shrank(self):
        self.assertIn(
            '0.200 CPUs are held',
            self.misfit(held=[(4_000, 20_000), None, None, None]),
        )
