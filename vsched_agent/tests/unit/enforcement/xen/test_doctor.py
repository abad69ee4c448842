# SPDX-License-Identifier: Apache-2.0

"""What the doctor finds on a Xen host, and what it does not touch."""

import pathlib
import re

from oslotest import base

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement.xen import doctor
from vsched_agent.tests.unit.enforcement.xen import test_credit
from vsched_agent.tests.unit.enforcement.xen import test_rtds
from vsched_lib.model import reservation

RTDS = reservation.Backend.RTDS
CREDIT2 = reservation.Backend.CREDIT2
CREDIT = reservation.Backend.CREDIT
OK, NOTE, PROBLEM = diagnosis.Level
PAGE = pathlib.Path(__file__).parents[5] / 'doc/source/admin/xen.rst'


class TestMissing(base.BaseTestCase):
    def test_as_the_documentation_says(self):
        sections = re.split(r'\n(.+)\n=+\n', PAGE.read_text())
        (listed,) = [
            ' '.join(text.lower().split())
            for title, text in zip(sections[1::2], sections[2::2], strict=True)
            if title == 'Not supported yet'
        ]
        for one in doctor.MISSING.split(', '):
            self.assertIn(one.removeprefix('and '), listed)


class TestDoctor(test_rtds.RtdsCase):
    def find(self, level, enabled=(RTDS,)):
        self.now += 60
        return [
            one
            for one in doctor.examine(enabled, self.backend.scheduler)
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
        doctor.examine((RTDS,), self.backend.scheduler)
        self.assertEqual(
            {('info',), ('sched-rtds', '-v', 'all')}, set(self.xl.commands)
        )


class TestCredit(test_credit.CreditCase):
    def find(self, level, enabled=(RTDS, CREDIT2, CREDIT)):
        self.now += 60
        return [
            one
            for one in doctor.examine(enabled, self.backend.scheduler)
            if one.level is level
        ]

    def notes(self):
        return [
            one.text for one in self.find(NOTE) if one.subject == 'weights'
        ]

    def test_a_host_that_can(self):
        self.assertEqual([], self.find(PROBLEM))
        self.assertEqual(
            [
                'Xen 4.17.5, 2 CPUs, scheduler credit2',
                'usable, gives shares by weights and caps, and guarantees no '
                'time in each period',
                'all 1 domains have 256 of 2000 mcpu by weight, the first '
                'domain 256 of them',
            ],
            [one.text for one in self.find(OK)],
        )

    def test_the_silent_fall_back(self):
        """RTDS was asked for; that credit2 is usable does not hide it."""
        self.xl.words = 'sched=rtds'
        (found,) = self.find(PROBLEM)
        self.assertEqual('rtds', found.subject)
        self.assertIn('started with sched=rtds and runs credit2', found.text)

    def test_not_enabled(self):
        (found,) = self.find(PROBLEM, ())
        self.assertEqual('credit2', found.subject)
        (found,) = self.find(PROBLEM, (CREDIT,))
        self.assertEqual('credit', found.subject)
        self.assertIn('sched=credit;', found.remedy)
        self.assertIn('add credit2 to', found.remedy)

    def test_more_pools(self):
        self.xl.pools = 2
        (found,) = self.find(PROBLEM)
        self.assertIn('2 CPU pools', found.text)
        self.assertIn('next boot', found.remedy)

    def test_more_than_there_is(self):
        for _ in range(7):
            self.instance(1)
        (found,) = self.find(PROBLEM)
        self.assertIn('all 8 domains have 2048 of 2000 mcpu', found.text)
        self.assertIn('xl sched-credit2', found.remedy)

    def test_domains_that_nobody_gave_anything(self):
        self.instance(1)
        self.instance(1)
        self.xl.domains[2] = [100, 0]
        (found,) = self.notes()
        self.assertIn('1 domains (1)', found)

    def test_caps_that_make_weights_moot(self):
        self.instance(1)
        self.instance(1)
        self.xl.domains[1] = [256, 10]
        self.xl.domains[2] = [600, 60]
        own, all_of_them = self.notes()
        self.assertIn('domain 1, 10 % of a CPU, is below', own)
        self.assertIn('256 mcpu', own)
        self.assertIn('leave 1300 mcpu of the host idle', all_of_them)
        # Two that compete, and one without a cap.
        for values in ([600, 200], [600, 0]):
            self.xl.domains[2] = values
            self.assertEqual(1, len(self.notes()))

    def test_nothing_is_changed(self):
        self.instance(2)
        self.find(OK)
        self.assertEqual(
            {('info',), ('sched-credit2',)}, set(self.xl.commands)
        )
