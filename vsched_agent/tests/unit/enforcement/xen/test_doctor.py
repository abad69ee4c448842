# SPDX-License-Identifier: Apache-2.0

"""What the doctor finds on a Xen host, and what it does not touch."""

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import doctor
from vsched_agent.tests.unit.enforcement.xen import test_rtds
from vsched_lib.model import reservation

RTDS = reservation.Backend.RTDS
OK, NOTE, PROBLEM = diagnosis.Level


class TestDoctor(test_rtds.RtdsCase):
    def find(self, level, enabled=(RTDS,)):
        self.now += 60
        return [
            one
            for one in doctor.examine(enabled, self.backend)
            if one.level is level
        ]

    def test_a_host_that_can(self):
        self.assertEqual([], self.find(PROBLEM))
        texts = [one.text for one in self.find(OK)]
        self.assertEqual(
            [
                'Xen 4.17.5, 2 CPUs, scheduler rtds',
                'usable, guarantees CPU time',
                'all 1 vCPUs have 400 of 2000 mcpu, the first domain 400 of '
                'them',
            ],
            texts,
        )

    def test_the_silent_fall_back(self):
        self.xl.scheduler = 'credit2'
        (found,) = self.find(PROBLEM)
        self.assertEqual('rtds', found.subject)
        self.assertIn('started with sched=rtds and runs credit2', found.text)
        self.assertIn('CONFIG_SCHED_RTDS', found.remedy)

    def test_another_scheduler(self):
        self.xl.scheduler, self.xl.words = 'credit2', ''
        (found,) = self.find(PROBLEM)
        self.assertIn('start it with sched=rtds', found.text)

    def test_more_pools(self):
        self.xl.pools = 2
        (found,) = self.find(PROBLEM)
        self.assertIn('2 CPU pools', found.text)
        self.assertIn('next boot', found.remedy)

    def test_not_enabled(self):
        (found,) = self.find(PROBLEM, ())
        self.assertIn('[enforcement] backends', found.remedy)

    def test_more_than_there_is(self):
        self.instance(5)
        (found,) = self.find(PROBLEM)
        self.assertIn('all 6 vCPUs have 2400 of 2000 mcpu', found.text)
        self.assertIn('xl sched-rtds', found.remedy)

    def test_domains_that_nobody_gave_anything(self):
        self.instance(1)
        self.instance(1)
        self.xl.vcpus[2, 0] = [10_000, 100, True]
        (found,) = [one for one in self.find(NOTE) if one.subject == 'budgets']
        self.assertIn('1 domains (1)', found.text)

    def test_xen_does_not_answer(self):
        self.xl.unavailable = 'there is no xl'
        (found,) = self.find(PROBLEM)
        self.assertIn('there is no xl', found.text)

    def test_nothing_is_changed(self):
        self.instance(2)
        doctor.examine((RTDS,), self.backend)
        self.assertEqual(
            {('info',), ('sched-rtds', '-v', 'all')}, set(self.xl.commands)
        )
