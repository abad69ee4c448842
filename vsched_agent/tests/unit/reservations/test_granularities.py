# SPDX-License-Identifier: Apache-2.0

"""Divided periods: applied in one step, recorded, adopted, restored."""

from fractions import Fraction
import time

import hypothesis
from hypothesis import strategies as st

from vsched_agent.enforcement import base as enforcement
from vsched_agent.reservations import applied
from vsched_agent.reservations import granularities
from vsched_agent.tests import enforcing_host
from vsched_agent.tests import fakes
from vsched_lib.contract import errors
from vsched_lib.model import granularity
from vsched_lib.model import reservation

CFS = reservation.Backend.CFS
MAIN = enforcement.Target(0, 100)
LIMITS = granularity.Limits(100_000, 2_500_000)
RESERVED = reservation.Reservation(6_000, 20_000)


class GranularitiesCase(enforcing_host.EnforcerCase):
    def setUp(self):
        super().setUp()
        self.one = fakes.domain(1, vcpus=2)
        self.enforcer = self.make()

    def make(self):
        return self.new_enforcer(limits=LIMITS)

    def next_agent(self):
        self.reopen()
        self.enforcer = self.make()
        self.enforcer.adopt(self.one)

    def hold(self, reserved=RESERVED, io_us=2_000):
        self.enforcer.hold(self.one, reserved)
        if io_us:
            self.enforcer.charges.apply(
                self.one.uuid, self.io(io_us), reserved.runtime_us
            )

    def io(self, io_us=2_000, tid=100, room=applied.IoRoom.ON_TOP):
        target = enforcement.Target(0, tid)
        return applied.IoHolding(
            self.one.pid,
            ((target, reservation.Reservation(io_us, 20_000)),),
            room,
        )

    def kernel_us(self):
        """What each thread holds, in us, exact."""
        return {
            tid: (held.runtime_ns / 1000, held.period_ns / 1000)
            for tid, held in self.deadline.held.items()
        }


class TestDivide(GranularitiesCase):
    def test_all_threads_in_one_step(self):
        self.hold()
        before = self.enforcer.admitted_mcpu()
        self.deadline.applied.clear()
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 2})
        self.assertEqual([(101, 102, 100)], self.deadline.applied)
        self.assertEqual(
            {101: (1_500, 5_000), 102: (1_500, 5_000), 100: (1_000, 10_000)},
            self.kernel_us(),
        )
        self.assertEqual(before, self.enforcer.admitted_mcpu())
        held = self.enforcer.holding(self.one.uuid)
        self.assertEqual((RESERVED, 4), (held.reserved, held.granularity))
        self.assertEqual(([], set()), self.enforcer.attest())
        self.enforcer.periods.divide(self.one.uuid, 1, {})
        self.assertEqual(
            {101: (6_000, 20_000), 102: (6_000, 20_000), 100: (2_000, 20_000)},
            self.kernel_us(),
        )
        self.assertEqual([], self.journal.granularities())

    def test_no_nanosecond_is_lost(self):
        odd = reservation.Reservation(6_001, 20_003)
        self.hold(odd)
        self.enforcer.periods.divide(self.one.uuid, 8, {})
        held = self.deadline.held[101]
        self.assertEqual(
            (6_001_000, 20_003_000), (held.runtime_ns * 8, held.period_ns * 8)
        )
        self.assertEqual(([], set()), self.enforcer.attest())
        self.next_agent()
        self.assertEqual(
            applied.figures(odd),
            applied.figures(self.enforcer.holding(self.one.uuid).reserved),
        )

    def test_a_refusal_leaves_everything(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 2, {})
        before, records = self.kernel_us(), self.journal.granularities()
        self.deadline.bound = Fraction(1, 100)
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.periods.divide, self.one.uuid, 4, {}
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual(before, self.kernel_us())
        self.assertEqual(records, self.journal.granularities())
        self.assertEqual(2, self.enforcer.holding(self.one.uuid).granularity)

    def test_a_quota_cannot_be_divided(self):
        self.enforcer.hold(
            self.one, reservation.Reservation(6_000, 20_000, backend=CFS)
        )
        refusal = self.assertRaises(
            errors.Refused, self.enforcer.periods.divide, self.one.uuid, 2, {}
        )
        self.assertEqual(errors.Code.COMMUNICATION_UNSUPPORTED, refusal.code)

    def test_drift_is_found_and_repaired(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {})
        whole = enforcement.Enforced.of(RESERVED)
        self.deadline.held = {101: whole, 102: whole, 100: whole}
        drifts, _ = self.enforcer.attest()
        self.assertEqual(
            [(101, 102), (100,)], [drift.tids for drift in drifts]
        )
        self.assertEqual(
            {101: (1_500, 5_000), 102: (1_500, 5_000), 100: (500, 5_000)},
            self.kernel_us(),
        )

    def test_budget_expiry_checks_are_no_drift(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 8, {})
        held = self.deadline.held[101]
        self.deadline.held[101] = enforcement.Enforced(
            held.runtime_ns + 1, held.period_ns - 1, held.mode
        )
        self.assertEqual(([], set()), self.enforcer.attest())

    @hypothesis.given(
        st.integers(100, 100_000).flatmap(
            lambda period: st.tuples(
                st.integers(2, period * 8 // 10), st.just(period)
            )
        ),
        st.sampled_from(granularity.GRANULARITIES),
    )
    def test_the_kernels_bandwidth_is_the_same(self, figures, parts):
        reserved = reservation.Reservation(*figures)
        whole = enforcement.Enforced.of(reserved)
        part = enforcement.Enforced.of(
            reservation.Reservation(*figures, granularity=parts)
        )
        self.assertEqual(
            reservation.kernel_bandwidth(whole.runtime_ns, whole.period_ns),
            reservation.kernel_bandwidth(part.runtime_ns, part.period_ns),
        )
        self.assertEqual(whole.figures(), part.figures(parts))


class TestKept(GranularitiesCase):
    def lend(self, full_us):
        self.enforcer.unclaimed_io.set_desired(
            self.one,
            self.io(full_us, room=applied.IoRoom.UNCLAIMED),
            self.io(1_000, room=applied.IoRoom.UNCLAIMED),
        )
        self.enforcer.unclaimed_io.divide()

    def test_by_threads_in_unclaimed_capacity(self):
        self.enforcer.hold(self.one, RESERVED)
        self.lend(2_000)
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 2})
        self.assertEqual((1_000_000, 10_000_000), self.io_ns())
        self.deadline.applied.clear()
        self.lend(2_000)
        self.assertEqual([], self.deadline.applied)
        self.lend(3_000)
        self.assertEqual((1_500_000, 10_000_000), self.io_ns())
        self.enforcer.periods.divide(self.one.uuid, 1, {})
        self.lend(3_000)
        self.assertEqual((3_000_000, 20_000_000), self.io_ns())

    def io_ns(self):
        held = self.deadline.read([MAIN])[MAIN.tid]
        return held.runtime_ns, held.period_ns

    def test_by_the_next_agent(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 2})
        before = self.kernel_us()
        self.deadline.applied.clear()
        self.next_agent()
        self.assertEqual(([], set()), self.enforcer.attest())
        self.hold()
        self.assertEqual([], self.deadline.applied)
        self.assertEqual(before, self.kernel_us())
        self.assertEqual(700, self.enforcer.admitted_mcpu())

    def test_while_it_runs(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 2})
        self.next_agent()
        later_s = time.monotonic() + granularities.KEEP_S + 1
        self.patch(self.enforcer._granularities, '_clock', lambda: later_s)
        self.enforcer.attest()
        self.assertEqual(
            granularities.Division(4, {100: 2}),
            self.enforcer._granularities.of(self.one.uuid),
        )

    def test_by_the_threads_after_a_restart(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 4})
        self.deadline.held = {}
        self.one = fakes.domain(1, vcpus=2, pid=500)
        self.hold(io_us=0)
        self.enforcer.charges.apply(self.one.uuid, self.io(tid=500), 6_000)
        self.assertEqual(
            {501: (1_500, 5_000), 502: (1_500, 5_000), 500: (500, 5_000)},
            self.kernel_us(),
        )

    def test_by_another_reservation_within_its_limits(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {})
        self.enforcer.hold(self.one, reservation.Reservation(4_000, 20_000))
        self.assertEqual((1_000, 5_000), self.kernel_us()[101])
        self.enforcer.hold(self.one, reservation.Reservation(1_000, 8_000))
        self.assertEqual((500, 4_000), self.kernel_us()[101])
        # A finer division has to be decided anew.
        self.enforcer.hold(self.one, RESERVED)
        self.assertEqual((3_000, 10_000), self.kernel_us()[101])

    def test_by_a_guest_that_is_charged(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {})
        self.enforcer.charges.apply(self.one.uuid, self.io(3_000), 4_000)
        self.assertEqual((1_000, 5_000), self.kernel_us()[101])
        self.assertEqual((750, 5_000), self.kernel_us()[100])

    def test_not_by_another_backend(self):
        self.hold(io_us=0)
        self.enforcer.periods.divide(self.one.uuid, 4, {})
        self.enforcer.hold(
            self.one, reservation.Reservation(6_000, 20_000, backend=CFS)
        )
        self.assertEqual((6_000, 20_000), self.cfs.held[101].figures()[:2])
        self.assertEqual([], self.journal.granularities())

    def test_not_after_its_release(self):
        self.hold()
        self.enforcer.periods.divide(self.one.uuid, 4, {})
        self.enforcer.release(self.one)
        self.assertEqual({}, self.deadline.held)
        self.assertEqual([], self.journal.granularities())

    def test_what_was_recorded_and_not_applied(self):
        """The agent was killed between the two."""
        self.hold()
        self.journal.note_granularity(
            self.one.uuid,
            {'instance_uuid': self.one.uuid, 'granularity': 4, 'io': {}},
        )
        self.next_agent()
        self.hold()
        self.assertEqual((1_500, 5_000), self.kernel_us()[101])
        self.assertEqual((500, 5_000), self.kernel_us()[100])
        self.assertEqual(([], set()), self.enforcer.attest())


class TestRecords(GranularitiesCase):
    def make_table(self, now_s=0.0):
        self.now_s = now_s
        return granularities.Granularities(
            self.journal, LIMITS, lambda: self.now_s
        )

    def test_kept_for_a_while_without_its_instance(self):
        table = self.make_table()
        table.record('a', granularities.Division(4, {100: 2}))
        table.drop('a')
        for self.now_s, kept in (
            (granularities.KEEP_S - 1, 4),
            (granularities.KEEP_S, 1),
        ):
            table.prune()
            self.assertEqual(kept, table.of('a').granularity)
        self.assertEqual([], self.journal.granularities())

    def test_read_back(self):
        division = granularities.Division(4, {100: 2})
        self.make_table().record('a', division)
        table = self.make_table()
        self.assertEqual(division, table.of('a'))
        table.held('a', 4)
        self.now_s = granularities.KEEP_S
        table.prune()
        self.assertEqual(division, table.of('a'))

    def test_records_that_make_no_sense(self):
        for uuid, body in (
            ('a', {}),
            ('b', {'instance_uuid': 'b', 'granularity': 3, 'io': {}}),
            ('c', {'instance_uuid': 'c', 'granularity': 4, 'io': [1]}),
            ('d', {'instance_uuid': 'd', 'granularity': 4, 'io': {'x': 1}}),
            ('e', {'instance_uuid': 'e', 'granularity': 4, 'io': {'1': 9}}),
            ('f', {'instance_uuid': 'f', 'granularity': [], 'io': {}}),
        ):
            self.journal.note_granularity(uuid, body)
        table = self.make_table()
        for uuid in 'abcdef':
            self.assertEqual(granularities.Division(), table.of(uuid))
