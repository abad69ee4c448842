# SPDX-License-Identifier: Apache-2.0

import dataclasses
import random

from oslotest import base

from vsched_lib.contract import messages
from vsched_standalone.demo import jobs

NOW = 1_760_000_000.0
UUID = '00000000-0000-4000-8000-000000000001'

ORDER = messages.JobOrder(
    UUID, messages.JobKind.PROFILE_ERROR, messages.JobWanted.RUN
)


class TestJobs(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.jobs = jobs.Jobs(random.Random(1), 8)

    def order(self, **changes):
        self.jobs.set_orders(
            messages.Jobs(1, (dataclasses.replace(ORDER, **changes),)), NOW
        )

    def test_a_measurement_ends_with_a_profile(self):
        self.order()
        (report,), errors, _ = self.jobs.advance(NOW + jobs.DURATION_S / 2)
        self.assertEqual(
            (messages.JobState.RUNNING, 500_000, []),
            (report.state, report.progress_ppm, errors),
        )
        (report,), errors, overheads = self.jobs.advance(NOW + jobs.DURATION_S)
        self.assertEqual(messages.JobState.DONE, report.state)
        self.assertEqual(
            ([2], []), ([one.version for one in errors], overheads)
        )
        self.assertEqual(([], [], []), self.jobs.advance(NOW + 60))

    def test_an_overhead_profile(self):
        self.order(kind=messages.JobKind.PROFILE_OVERHEAD)
        _, errors, overheads = self.jobs.advance(NOW + jobs.DURATION_S)
        self.assertEqual(
            ([], [2]), (errors, [one.version for one in overheads])
        )

    def test_a_cancelled_job_ends(self):
        self.order()
        self.order(wanted=messages.JobWanted.CANCEL)
        (report,), errors, _ = self.jobs.advance(NOW + 1)
        self.assertEqual(
            (messages.JobState.CANCELLED, []), (report.state, errors)
        )
        self.assertEqual(([], [], []), self.jobs.advance(NOW + 60))

    def test_a_resumed_job_is_another_attempt(self):
        self.order(wanted=messages.JobWanted.CANCEL)
        self.jobs.advance(NOW)
        self.order()
        self.assertEqual([], self.jobs.advance(NOW)[0])
        self.order(attempt=2)
        (report,), _, _ = self.jobs.advance(NOW + 1)
        self.assertEqual(
            (2, messages.JobState.RUNNING), (report.attempt, report.state)
        )
