# SPDX-License-Identifier: Apache-2.0

"""What every enforcement backend must do, the fake one as well."""

import abc
from collections.abc import Sequence

from vsched_agent.enforcement import base
from vsched_agent.tests import assignments
from vsched_lib.contract import errors
from vsched_lib.model import reservation

CAPPED = reservation.Mode.CAPPED


class BackendSuite(abc.ABC):
    """Mix into a test case that makes the backend and its threads."""

    backend: base.Backend

    @abc.abstractmethod
    def targets(self, count: int) -> Sequence[base.Target]:
        """Threads the backend can enforce on, ended by the test."""

    @abc.abstractmethod
    def end(self, target: base.Target) -> None:
        """End one thread."""

    def held(self, targets):
        return [
            found and (found.runtime_us, found.period_us, found.mode)
            for _, found in sorted(self.backend.read(targets).items())
        ]

    def test_it_is_usable_here(self):
        self.assertTrue(self.backend.supports().usable)

    def test_apply_read_restore(self):
        targets = sorted(self.targets(2), key=lambda one: one.tid)
        self.assertEqual([None, None], self.held(targets))
        prior = self.backend.prior(targets)
        self.assertEqual({one.tid for one in targets}, set(prior))
        self.backend.apply_each(
            assignments.alike(targets, reservation.Reservation(4_000, 20_000))
        )
        self.assertEqual([(4_000, 20_000, CAPPED)] * 2, self.held(targets))
        self.backend.apply_each(
            assignments.alike(targets, reservation.Reservation(6_000, 30_000))
        )
        self.assertEqual([(6_000, 30_000, CAPPED)] * 2, self.held(targets))
        self.backend.restore(targets, prior)
        self.assertEqual([None, None], self.held(targets))
        self.assertEqual(prior, self.backend.prior(targets))

    def test_each_its_own(self):
        targets = sorted(self.targets(2), key=lambda one: one.tid)
        prior = self.backend.prior(targets)
        for figures in ((4_000, 2_000), (2_000, 8_000)):
            self.backend.apply_each(
                [
                    (target, reservation.Reservation(runtime_us, 20_000))
                    for target, runtime_us in zip(
                        targets, figures, strict=True
                    )
                ]
            )
            self.assertEqual(
                [(runtime_us, 20_000, CAPPED) for runtime_us in figures],
                self.held(targets),
            )
        self.backend.restore(targets, prior)

    def test_nothing_is_half_applied(self):
        targets = self.targets(3)
        prior = self.backend.prior(targets)
        self.backend.apply_each(
            assignments.alike(
                targets[:2], reservation.Reservation(4_000, 20_000)
            )
        )
        before = self.held(targets[:2])
        self.end(targets[2])
        refusal = self.assertRaises(
            errors.Refused,
            self.backend.apply_each,
            assignments.alike(targets, reservation.Reservation(6_000, 20_000)),
        )
        self.assertEqual(errors.Code.THREADS_GONE, refusal.code)
        self.assertEqual(before, self.held(targets[:2]))
        self.backend.restore(targets, prior)

    def test_threads_that_are_gone_are_left_out(self):
        targets = self.targets(2)
        prior = self.backend.prior(targets)
        self.backend.apply_each(
            assignments.alike(targets, reservation.Reservation(4_000, 20_000))
        )
        self.end(targets[0])
        self.assertEqual([targets[1].tid], list(self.backend.read(targets)))
        self.assertEqual([targets[1].tid], list(self.backend.prior(targets)))
        self.backend.restore(targets, prior)
        self.assertEqual([None], self.held(targets))

    def test_the_same_again_changes_nothing(self):
        targets = self.targets(1)
        prior = self.backend.prior(targets)
        promise = reservation.Reservation(4_000, 20_000)
        self.backend.apply_each(assignments.alike(targets, promise))
        self.backend.apply_each(assignments.alike(targets, promise))
        self.assertEqual([(4_000, 20_000, CAPPED)], self.held(targets))
        self.backend.restore(targets, prior)
        self.backend.restore(targets, prior)
        self.assertEqual([None], self.held(targets))
