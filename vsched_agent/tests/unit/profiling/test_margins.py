# SPDX-License-Identifier: Apache-2.0

from oslotest import base

from vsched_agent.profiling import margins
from vsched_agent.tests import profiles
from vsched_lib.contract import errors
from vsched_lib.model import reservation

DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS
#: 10 % of a CPU.
PROMISE = reservation.Reservation(1_000, 10_000)


class TestMargins(base.BaseTestCase):
    def grant(
        self,
        *points,
        bound_ppm=20_000,
        promise=PROMISE,
        backend=DEADLINE,
        host=profiles.FACTS,
        confidence=0.8,
    ):
        found = profiles.profile(*points, version=7) if points else None
        return profiles.granted(
            margins.Margins(lambda: found, host, confidence),
            promise,
            backend,
            bound_ppm,
            host['cpus'],
        )

    def refused(self, *points, **how):
        return self.assertRaises(errors.Refused, self.grant, *points, **how)

    def test_who_errs_within_the_bound_needs_no_margin(self):
        self.assertEqual(PROMISE, self.grant(profiles.point([-20_000] * 180)))

    def test_what_is_missing_is_made_up_for(self):
        granted = self.grant(profiles.point([-60_000] * 180))
        # 0.98 / 0.94 of it, rounded up.
        self.assertEqual(1_043, granted.runtime_us)
        self.assertEqual(PROMISE.period_us, granted.period_us)

    def test_the_worse_neighbour_counts(self):
        granted = self.grant(
            profiles.point([-60_000] * 180, share_pct=5),
            profiles.point([0] * 180, share_pct=20),
        )
        self.assertEqual(1_043, granted.runtime_us)

    def test_more_than_the_host_may_give_is_refused_with_the_figure(self):
        refusal = self.refused(profiles.point([-500_000] * 180))
        self.assertEqual(errors.Code.NOT_CERTIFIED, refusal.code)
        self.assertIn('short by 50 %', refusal.detail)
        self.assertIn('2 % may be missing', refusal.detail)
        self.assertEqual(-500_000, refusal.figures['measured_p99_lower_ppm'])
        self.assertEqual(7, refusal.figures['profile_version'])

    def test_and_so_is_more_than_a_period(self):
        refusal = self.refused(
            profiles.point([-60_000] * 180, share_pct=98),
            promise=reservation.Reservation(9_800, 10_000),
        )
        self.assertIn('no margin', refusal.detail)

    def test_nothing_at_all_was_given(self):
        self.assertIn(
            'short by 100 %',
            self.refused(profiles.point([-1_000_000] * 180)).detail,
        )

    def test_what_was_not_measured_is_not_promised(self):
        for points in (
            (),
            (profiles.point([0] * 180, contenders=0),),
            (profiles.point([0] * 180, period_us=20_000),),
            (profiles.point([0] * 180, backend='cfs'),),
        ):
            refusal = self.refused(*points)
            self.assertIn('not measured under contention', refusal.detail)

    def test_too_few_samples_say_too_little(self):
        refusal = self.refused(profiles.point([0] * 160))
        self.assertIn('161 samples', refusal.detail)
        self.assertIn('has 160', refusal.detail)
        self.assertEqual(161, refusal.figures['samples_needed'])
        self.assertEqual(
            PROMISE, self.grant(profiles.point([0] * 160), confidence=0.7)
        )

    def test_a_profile_of_another_kernel_is_of_another_host(self):
        for change, text in (
            ({'kernel': '6.19.0'}, 'kernel: 6.18.0, now 6'),
            ({'tick_us': 1000}, 'tick_us: 4000, now 1000'),
            ({'cpus': 4}, 'cpus: 2, now 4'),
            (
                {'features': {'budget_check_us': 500}},
                'budget_check_us: 0, now 500',
            ),
        ):
            refusal = self.refused(
                profiles.point([0] * 180), host={**profiles.FACTS, **change}
            )
            self.assertIn(text, refusal.detail)
            self.assertEqual(errors.Code.NOT_CERTIFIED, refusal.code)

    def test_nothing_is_said_of_smaller_shares(self):
        self.assertIn(
            'not above it',
            self.refused(profiles.point([0] * 180, share_pct=20)).detail,
        )

    def test_cfs_among_hogs_is_refused(self):
        refusal = self.refused(
            profiles.point([-600_000] * 60 + [0] * 120, 'cfs'), backend=CFS
        )
        self.assertIn('cfs was measured to fall short by 60 %', refusal.detail)
