# SPDX-License-Identifier: Apache-2.0

"""A foreign hand on the threads and groups of real guests."""

import contextlib
import itertools
import time
from unittest import mock

from vsched_agent.privileged import sched
from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_case
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State
Code = errors.Code


class DriftSuite:
    """For a class with the guests ``promised`` and ``plain``."""

    def assert_repaired(self, mark, vm, found):
        """One event, in the first pass that could see it."""
        drifted_at = time.time()
        event = self.agent.await_event(Code.DRIFT_REPAIRED, vm.uuid, mark)
        self.assertIn(found, event.detail)
        # A pass meters when it has looked for drift: one may have looked
        # before.
        passes = itertools.takewhile(
            lambda report: event not in report.events,
            self.collector.reports[mark:],
        )
        late = [
            report
            for report in passes
            if report.usage
            and all(sample.at > drifted_at for sample in report.usage)
        ]
        self.assertLess(len(late), 2)
        self.agent.await_passes(1)
        self.assertEqual([event], self.collector.vcpu_events(mark, vm.uuid))
        return event

    def test_taken_out_of_the_class(self):
        (tid,) = self.promised.vcpu_tids
        mark = self.collector.mark()
        # As chrt would, but without the leak that careless leaving costs.
        self.assertEqual(
            [],
            list(sched.leave_deadline([(tid, syscalls.SCHED_OTHER, 0, 0, 0)])),
        )
        event = self.assert_repaired(mark, self.promised, 'no reservation')
        self.assertEqual([tid], event.figures['tids'])
        self.assertEqual([(12_000, 20_000)], self.promised.held())

    def test_other_parameters(self):
        (tid,) = self.promised.vcpu_tids
        wanted = syscalls.get_attr(tid)
        for foreign, words in (
            (
                wanted._replace(runtime_ns=4_000_000),
                'capped 4000 us every 20000 us',
            ),
            (
                wanted._replace(flags=wanted.flags | syscalls.FLAG_RECLAIM),
                'work_conserving 12000 us every 20000 us',
            ),
            (
                wanted._replace(period_ns=40_000_000),
                'capped 12000 us every 40000 us',
            ),
        ):
            with self.subTest(foreign=foreign):
                mark = self.collector.mark()
                syscalls.set_attr(tid, foreign)
                self.assert_repaired(mark, self.promised, words)
                self.assertEqual(wanted, syscalls.get_attr(tid))

    def test_another_quota(self):
        mark = self.override(self.plain, 6_000, backend='cfs')
        self.agent.await_said(self.plain.uuid, mark, state=State.APPLIED)
        for quota_us, words in (
            (-1, 'no reservation'),
            (15_000, 'capped 15000 us every 20000 us'),
        ):
            with self.subTest(quota_us=quota_us):
                mark = self.collector.mark()
                self.plain.set_quota(quota_us, 20_000)
                self.assert_repaired(mark, self.plain, words)
                self.assertEqual(
                    [(6_000, 20_000)] * 2,
                    [self.plain.quota(index) for index in range(2)],
                )

    def test_room_that_is_gone_when_drift_is_found(self):
        (tid,) = self.promised.vcpu_tids
        mark = self.collector.mark()
        with contextlib.ExitStack() as room:
            # The agent looks elsewhere until all is as the test wants it.
            with mock.patch.object(
                self.agent.agent._enforcer,
                'attest',
                autospec=True,
                return_value=([], set()),
            ):
                sched.leave_deadline([(tid, syscalls.SCHED_OTHER, 0, 0, 0)])
                room.enter_context(agent_case.taken_but(0.2))
            said = self.agent.await_said(
                self.promised.uuid, mark, state=State.REFUSED
            )
            self.assertIsNone(said.enforced_backend)
            self.assertEqual(Code.KERNEL_REFUSED, said.code)
            self.assertEqual([None], self.promised.held())
        # When there is room the agent finds out by itself.
        self.agent.await_said(self.promised.uuid, mark, state=State.APPLIED)
        self.assertEqual([(12_000, 20_000)], self.promised.held())
