# SPDX-License-Identifier: Apache-2.0

"""Reservations of real guests: given, changed, refused and taken back."""

import os

from vsched_agent.privileged import syscalls
from vsched_agent.tests.functional import agent_case
from vsched_agent.tests.functional import agent_guests
from vsched_lib.contract import errors
from vsched_lib.contract import messages

State = messages.State
Code = errors.Code


class ReservationSuite:
    """For a class with the guests ``promised`` and ``plain``."""

    def test_a_flavors_promise_is_held_by_deadline(self):
        said = self.agent.await_said(self.promised.uuid, state=State.APPLIED)
        self.assertEqual(
            (messages.Source.METADATA, 'deadline', 12_000, 20_000, 1),
            (
                said.source,
                said.enforced_backend,
                said.enforced_runtime_us,
                said.enforced_period_us,
                said.vcpus,
            ),
        )
        self.assertIsNone(said.code)
        self.assertEqual([(12_000, 20_000)], self.promised.held())
        self.assertEqual(
            syscalls.FLAG_RESET_ON_FORK, self.promised.attrs()[0].flags
        )
        event = self.collector.events(
            uuid=self.promised.uuid, code=Code.RESERVATION_APPLIED
        )[0]
        self.assertIn('12000 us every 20000 us by deadline', event.detail)
        # The neighbour carries none, and nobody touched it.
        self.assertEqual([None, None], self.plain.held())
        self.assert_share(0.6, self.promised)

    def test_what_it_used_is_reported(self):
        stolen_s = agent_guests.stolen_s()
        mark = self.collector.mark()
        self.agent.await_passes(4)
        agent_guests.pause(0.1)
        stolen_us = 1e6 * (agent_guests.stolen_s() - stolen_s)
        samples = [
            sample
            for report in self.collector.reports[mark:]
            for sample in report.usage
        ]
        mine = [
            one for one in samples if one.instance_uuid == self.promised.uuid
        ]
        interval_us = sum(one.interval_us for one in mine)
        promised = sum(one.promised_us for one in mine) / interval_us
        self.assertLess(abs(promised - 0.6), 0.001)
        guest_us = sum(one.guest_us for one in mine)
        self.assertLess(0.3 * interval_us - stolen_us, guest_us)
        self.assertLess(guest_us, 0.63 * interval_us + stolen_us)
        self.assertTrue(
            any(
                one.instance_uuid == self.plain.uuid
                and one.promised_us is None
                for one in samples
            )
        )

    def test_a_change_over_the_api_and_back(self):
        mark = self.override(self.promised, 6_000)
        said = self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            generation=self.collector.generation,
        )
        self.assertEqual(
            (messages.Source.OVERRIDE, 'deadline', 6_000),
            (said.source, said.enforced_backend, said.enforced_runtime_us),
        )
        self.assertEqual([(6_000, 20_000)], self.promised.held())
        self.assert_share(0.3, self.promised)
        mark = self.end_override(self.promised)
        self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            generation=0,
            source=messages.Source.METADATA,
            enforced_runtime_us=12_000,
        )
        self.assertEqual([(12_000, 20_000)], self.promised.held())
        self.assertEqual(
            [], self.collector.events(mark, code=Code.DRIFT_REPAIRED)
        )

    def test_held_by_a_quota_and_back(self):
        found = self.promised.quota()
        mark = self.override(self.promised, 6_000, backend='cfs')
        said = self.agent.await_said(
            self.promised.uuid, mark, enforced_backend='cfs'
        )
        self.assertEqual(State.APPLIED, said.state)
        self.assertEqual((6_000, 20_000), self.promised.quota())
        self.assertEqual([None], self.promised.held())
        (event,) = self.collector.vcpu_events(mark, self.promised.uuid)
        self.assertIn('by cfs', event.detail)
        # A quota caps, and next to these neighbours it does no more.
        got = agent_guests.measure(self.promised.vcpu_tids)
        self.assertLess(got.shares[0], 0.3 + self.TOLERANCE + got.stolen)
        self.assertGreater(got.shares[0], 0.1 - got.stolen)
        mark = self.end_override(self.promised)
        self.agent.await_said(
            self.promised.uuid, mark, enforced_backend='deadline'
        )
        self.assertEqual(found, self.promised.quota())
        self.assertEqual([(12_000, 20_000)], self.promised.held())

    def test_idle_time_may_be_used(self):
        self.restart_agent(enforcement__use_idle_time=True)
        mark = self.override(self.promised, 6_000, mode='work_conserving')
        self.agent.await_said(
            self.promised.uuid,
            mark,
            state=State.APPLIED,
            mode='work_conserving',
        )
        got = agent_guests.measure(self.promised.vcpu_tids)
        self.assertGreater(got.shares[0], 0.3 - self.TOLERANCE - got.stolen)
        # The neighbours leave no CPU idle.
        self.assertLess(got.shares[0], 0.3 + self.TOLERANCE + got.stolen)
        # An emulated guest may stand still for a moment, and leave one idle.
        self.collector.await_news(
            lambda: not self.promised.attrs()[0].flags & syscalls.FLAG_RECLAIM,
            'the end of the flag',
        )
        # Whether the flag is set is not drift.
        self.agent.await_passes(3)
        self.assertEqual(
            [],
            self.collector.events(
                mark, self.promised.uuid, Code.DRIFT_REPAIRED
            ),
        )

    def test_one_without_gets_a_deadline_and_loses_it(self):
        attrs, quotas = self._with_a_past()
        self._gets('deadline')
        self.assertEqual([(4_000, 20_000)] * 2, self.plain.held())
        self.assertEqual(quotas, self._quotas())
        self._loses(attrs, quotas)

    def test_one_without_gets_a_quota_and_loses_it(self):
        attrs, quotas = self._with_a_past()
        self._gets('cfs')
        self.assertEqual(attrs, self.plain.attrs())
        self.assertEqual([(4_000, 20_000)] * 2, self._quotas())
        self._loses(attrs, quotas)

    def _with_a_past(self):
        """Scheduling that somebody had set before vsched came."""
        tids = self.plain.vcpu_tids
        quota = self.plain.quota()
        os.setpriority(os.PRIO_PROCESS, tids[0], 5)
        self.addCleanup(os.setpriority, os.PRIO_PROCESS, tids[0], 0)
        syscalls.set_attr(tids[1], syscalls.Attr(syscalls.SCHED_BATCH, nice=3))
        self.addCleanup(
            syscalls.set_attr, tids[1], syscalls.Attr(syscalls.SCHED_OTHER)
        )
        self.plain.set_quota(90_000, 100_000)
        self.addCleanup(self.plain.set_quota, *quota)
        return self.plain.attrs(), self._quotas()

    def _quotas(self):
        return [self.plain.quota(index) for index in range(2)]

    def _gets(self, backend):
        mark = self.override(self.plain, 4_000, backend=backend)
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.APPLIED
        )
        self.assertEqual((backend, 2), (said.enforced_backend, said.vcpus))
        got = agent_guests.measure(self.plain.vcpu_tids, 2.0)
        for share in got.shares:
            self.assertLess(share, 0.2 + self.TOLERANCE + got.stolen)

    def _loses(self, attrs, quotas):
        mark = self.end_override(self.plain)
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.RELEASED
        )
        self.assertEqual(
            (messages.Source.NONE, None), (said.source, said.enforced_backend)
        )
        (event,) = self.collector.vcpu_events(mark, self.plain.uuid)
        self.assertEqual(Code.RESERVATION_RELEASED, event.code)
        self.assertEqual(attrs, self.plain.attrs())
        self.assertEqual(quotas, self._quotas())

    def test_what_does_not_fit_is_refused_whole(self):
        mark = self.override(self.plain, 4_000)
        self.agent.await_said(self.plain.uuid, mark, state=State.APPLIED)
        mark = self.override(self.plain, 13_000)
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.REFUSED
        )
        self.assertEqual(Code.DOES_NOT_FIT, said.code)
        self.assertEqual(
            (1_300, 1_900, 1_800),
            tuple(
                said.figures[key]
                for key in ('asked_mcpu', 'needed_mcpu', 'allowed_mcpu')
            ),
        )
        for number in ('1300', '1900', '1800'):
            self.assertIn(number, said.detail)
        # It keeps what it had, on every vCPU, and says that it does.
        self.assertEqual(
            (4_000, 20_000),
            (said.enforced_runtime_us, said.enforced_period_us),
        )
        self.assertEqual([(4_000, 20_000)] * 2, self.plain.held())
        (event,) = self.collector.vcpu_events(mark, self.plain.uuid)
        self.assertEqual(
            (Code.DOES_NOT_FIT, messages.Severity.ERROR),
            (event.code, event.severity),
        )
        self.assertIn('keeps what it had', event.detail)
        self.agent.await_passes()
        self.assertEqual(
            1, len(self.collector.vcpu_events(mark, self.plain.uuid))
        )
        self.assertEqual([(12_000, 20_000)], self.promised.held())

    def test_what_the_kernel_refuses(self):
        # Somebody else's thread has taken what the agent thinks is free.
        io_mcpu = self._io_mcpu()
        with agent_case.taken_but(0.7):
            # The agent takes it back from I/O threads before it gives up.
            # They may have got more or less meanwhile.
            io_mcpu = max(io_mcpu, self._io_mcpu())
            mark = self.override(self.plain, 11_000)
            said = self.agent.await_said(
                self.plain.uuid, mark, state=State.REFUSED
            )
        self.assertEqual([None, None], self.plain.held())
        self.assertEqual(Code.KERNEL_REFUSED, said.code)
        self.assertEqual(
            (1_100, 0),
            (said.figures['needed_mcpu'], said.figures['held_mcpu']),
        )
        self.assertGreater(said.figures['free_mcpu'], 698)
        self.assertLess(said.figures['free_mcpu'], 702 + io_mcpu)
        # When there is room the agent finds out by itself.
        self.agent.await_said(self.plain.uuid, mark, state=State.APPLIED)
        self.assertEqual([(11_000, 20_000)] * 2, self.plain.held())

    def _io_mcpu(self):
        """Return what the I/O threads of the guest with a promise have."""
        return sum(
            1000 * attr.runtime_ns / attr.period_ns
            for attr in map(syscalls.get_attr, self.promised.io_tids)
            if attr.policy == syscalls.SCHED_DEADLINE
        )

    def test_metadata_that_changes_while_the_guest_runs(self):
        self.addCleanup(self.plain.set_extra_specs, {})
        for runtime_us in (4_000, 8_000):
            mark = self.collector.mark()
            self.plain.set_extra_specs({'cpu_runtime_us': runtime_us})
            said = self.agent.await_said(
                self.plain.uuid,
                mark,
                state=State.APPLIED,
                enforced_runtime_us=runtime_us,
            )
            self.assertEqual(messages.Source.METADATA, said.source)
            self.assertEqual([(runtime_us, 20_000)] * 2, self.plain.held())
        mark = self.collector.mark()
        self.plain.set_extra_specs({})
        self.agent.await_said(self.plain.uuid, mark, state=State.RELEASED)
        self.assertEqual([None, None], self.plain.held())

    def test_degrades_where_told_to_and_climbs_back(self):
        self.restart_agent(on_refusal='degrade')
        found = self._quotas()
        mark = self.override(self.plain, 13_000)
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.DEGRADED
        )
        self.assertEqual(
            ('cfs', 13_000, Code.DOES_NOT_FIT),
            (said.enforced_backend, said.enforced_runtime_us, said.code),
        )
        self.assertEqual([(13_000, 20_000)] * 2, self._quotas())
        self.assertEqual([None, None], self.plain.held())
        (event,) = self.collector.vcpu_events(mark, self.plain.uuid)
        self.assertEqual(messages.Severity.WARNING, event.severity)
        self.assertIn('held by cfs instead', event.detail)
        # One that names its backend means it.
        mark = self.override(self.plain, 13_500, backend='deadline')
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.REFUSED
        )
        self.assertEqual(
            ('cfs', 13_000), (said.enforced_backend, said.enforced_runtime_us)
        )
        self.override(self.plain, 13_000)
        # There is room again.
        mark = self.override(self.promised, 4_000)
        said = self.agent.await_said(
            self.plain.uuid, mark, state=State.APPLIED
        )
        self.assertEqual('deadline', said.enforced_backend)
        self.assertEqual([(13_000, 20_000)] * 2, self.plain.held())
        self.assertEqual(found, self._quotas())
