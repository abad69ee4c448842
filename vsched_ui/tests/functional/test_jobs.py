# SPDX-License-Identifier: Apache-2.0

"""How long jobs run, and how long they will."""

import re
import time

from vsched_lib.contract import messages
from vsched_ui.tests import fleet
from vsched_ui.tests import page_case

HOST = fleet.host_name(1)


class TestJobs(page_case.PageCase):
    """Times of jobs, in their list and where they are ordered."""

    hosts = 1

    def progress(self, progress_ppm):
        """Let the agent report on the job that it runs."""
        (job,) = self.request('GET', '/v1/jobs?state=running').json()['jobs']
        self.service.hosts[0].send(
            jobs=(
                messages.JobReport(
                    job['uuid'],
                    job['attempt'],
                    messages.JobState.RUNNING,
                    progress_ppm,
                    time.time(),
                    '6 of 12 points',
                ),
            )
        )

    def test_when_a_job_started_and_how_long_it_will_take(self):
        tab = self.tab('/hosts/%s?tab=error' % HOST)
        self.button(tab, 'Measure now, quickly').click()
        self.see(tab, '5 of 12 points')
        current = tab.page.locator('.vs-job')
        expect = self.chromium.expect
        expect(current).to_contain_text('started')
        # Its first report is no measure of its speed.
        expect(current).not_to_contain_text('left')
        jobs = self.tab('/jobs')
        row = jobs.page.locator('tbody tr').first
        started = row.locator('td[data-label=Started] time')
        expect(started).to_have_count(1)
        left = row.locator('td[data-label="Time left"]')
        expect(left).to_have_text('–')
        # So slowly that the time since does not matter.
        self.progress(420_001)
        expect(current).to_contain_text(re.compile(r'about \d+ .* left'))
        expect(left).to_have_text(re.compile(r'^about \d+ '))
        self.check(tab)
        self.check(jobs)
        self.button(tab, 'Cancel').click()
        expect(left).to_have_text('–')
