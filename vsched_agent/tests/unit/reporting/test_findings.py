# SPDX-License-Identifier: Apache-2.0

import threading

from oslotest import base

from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import host_checks
from vsched_agent.host import kernel
from vsched_agent.reporting import findings
from vsched_lib.contract import messages

PATIENCE_S = 30.0
TICK = diagnosis.Finding(
    diagnosis.Level.NOTE, 'tick', 'a tick is 4000 us', 'CONFIG_HZ=1000'
)
GOOD = diagnosis.Finding(diagnosis.Level.OK, 'cgroup', 'version 2')
UNUSABLE = diagnosis.Finding(
    diagnosis.Level.PROBLEM, 'deadline', 'cannot use it'
)
REPORTED = messages.HostFinding(
    'note', 'tick', 'a tick is 4000 us', 'CONFIG_HZ=1000'
)


def fail():
    raise OSError('cannot be read')


class TestFindings(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.checks = {'tick': lambda: [TICK], 'cgroup': lambda: [GOOD]}
        self.findings = findings.Findings(lambda: self.checks)
        self.addCleanup(self.findings.stop)

    def test_good_results_are_not_reported(self):
        self.findings.start(PATIENCE_S)
        self.assertEqual((REPORTED,), self.findings.reported())

    def test_others_come_first(self):
        self.findings.check()
        self.assertEqual(
            (
                messages.HostFinding('problem', 'deadline', 'cannot use it'),
                REPORTED,
            ),
            self.findings.reported([UNUSABLE, GOOD]),
        )

    def test_nothing_is_reported_before_the_first_results(self):
        self.assertIsNone(self.findings.reported([UNUSABLE]))

    def test_a_failed_check_is_left_out(self):
        self.checks = {'kernel': fail, **self.checks}
        self.findings.check()
        self.assertEqual((REPORTED,), self.findings.reported())

    def test_a_failed_start_of_the_checks_is_no_result(self):
        failing = findings.Findings(fail)
        self.addCleanup(failing.stop)
        failing.start(PATIENCE_S)
        self.assertIsNone(failing.reported())

    def test_a_check_that_hangs_delays_nothing(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.checks = {'hangs': lambda: [TICK] if release.wait() else []}
        self.findings.start(0.01)
        self.assertIsNone(self.findings.reported())

    def test_checks_are_repeated(self):
        repeated = threading.Event()
        runs = []

        def tick():
            runs.append(1)
            if len(runs) > 2:
                repeated.set()
            return [TICK]

        self.checks = {'tick': tick}
        often = findings.Findings(lambda: self.checks, 0.001)
        self.addCleanup(often.stop)
        often.start(PATIENCE_S)
        self.assertTrue(repeated.wait(PATIENCE_S))

    def test_a_remedied_finding_is_gone(self):
        self.findings.check()
        self.checks = {}
        self.findings.check()
        self.assertEqual((), self.findings.reported())

    def test_no_more_than_the_contract_permits(self):
        self.checks = {'tick': lambda: [TICK] * (messages.MAX_FINDINGS + 1)}
        self.findings.check()
        self.assertEqual(
            messages.MAX_FINDINGS, len(self.findings.reported([UNUSABLE]))
        )

    def test_this_host_can_be_checked(self):
        subjects = {'kernel', 'sysctl', 'cgroup', 'tick', 'perf events'}
        facts = kernel.KernelFacts.read()
        own = findings.Findings(
            lambda: host_checks.static_checks_of_agent(facts)
        )
        own.check()
        self.assertLessEqual(
            {one.subject for one in own.reported()}, subjects | {'pinning'}
        )
