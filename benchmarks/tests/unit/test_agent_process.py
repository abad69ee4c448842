# SPDX-License-Identifier: Apache-2.0

"""The parts of an agent that a benchmark replaces."""

import os
from unittest import mock

from oslotest import base

from benchmarks import agent_process
from vsched_agent.enforcement import base as enforcement
from vsched_agent.privileged import sched
from vsched_api.tests import base as api_base
from vsched_lib.contract import messages
from vsched_lib.model import reservation


class ObservedTestCase(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        for name in ('set_deadline', 'leave_deadline'):
            patcher = mock.patch.object(
                sched, name, autospec=True, side_effect=AssertionError(name)
            )
            patcher.start()
            self.addCleanup(patcher.stop)
        self.backend = agent_process.Observed()
        self.addCleanup(self.backend.close)
        self.target = enforcement.Target(0, os.getpid())
        self.reserved = reservation.Reservation(5_000, 20_000)

    def enforced(self):
        return self.backend.read([self.target])

    def test_what_is_applied_counts_as_in_force(self):
        self.assertEqual({self.target.tid: None}, self.enforced())
        prior = self.backend.prior([self.target])
        self.backend.apply_each([(self.target, self.reserved)])
        held = {self.target.tid: enforcement.Enforced.of(self.reserved)}
        self.assertEqual(held, self.enforced())
        self.backend.resume([(self.target, self.reserved)])
        self.backend.refresh()
        self.backend.restore([self.target], prior)
        self.assertEqual({self.target.tid: None}, self.enforced())

    def test_each_thread_has_its_own(self):
        other = reservation.Reservation(1_000, 10_000)
        self.backend.apply_each([(self.target, other)])
        self.assertEqual(
            {self.target.tid: enforcement.Enforced.of(other)}, self.enforced()
        )

    def test_a_thread_that_has_ended_is_left_out(self):
        gone = enforcement.Target(0, 2**22 - 1)
        self.backend.apply_each([(gone, self.reserved)])
        self.assertEqual({}, self.backend.read([gone]))


class BoundlessTestCase(base.BaseTestCase):
    def test_a_report_can_say_what_it_has(self):
        found = agent_process.Boundless().current()
        # 1 000 VMs of four vCPUs, each with a tenth of a CPU.
        self.assertLess(400, found.bound)
        info = messages.HostInfo.from_dict(
            {**api_base.host_info().to_dict(), 'cpus': found.cpus}
        )
        self.assertEqual(found.cpus, info.cpus)
