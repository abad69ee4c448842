# SPDX-License-Identifier: Apache-2.0

"""Instances that wait on packets are divided, reported and made whole."""

import dataclasses

from vsched_agent.accounting import base as readings
from vsched_agent.communication import base as communication
from vsched_agent.communication import load
from vsched_agent.communication import manager
from vsched_agent.reservations import granularities
from vsched_agent.tests import fakes
from vsched_agent.tests.unit.reservations import test_granularities
from vsched_lib.contract import errors
from vsched_lib.contract import messages
from vsched_lib.model import granularity
from vsched_lib.model import reservation

Code = errors.Code
Role = readings.Role
MS = 1_000_000


class NoSleeps:
    """Knows nothing, so that timeslices count."""

    def since(self, tids):
        return {}


class ManagerCase(test_granularities.GranularitiesCase):
    enabled = True

    def setUp(self):
        super().setUp()
        self.now_s = 100.0
        self.pps, self.request_ms, self.io_ms = 50, 1.0, 0.2
        # How often each request wakes the I/O thread.
        self.io_wakeups = 2
        # What the second vCPU waits while it computes, by granularity.
        self.computes_ms = {}
        # The wait of each packet, by granularity.
        self.waits_ms = {}
        self.served_by = 100
        self.manager = self.make_manager()
        self.hold()
        self.manager.set_aware(self.one.uuid, True)

    def make_manager(self, **policy):
        return manager.CommunicationManager(
            communication.Settings(
                granularity.Policy(**{'rise_s': 2, 'hold_s': 10, **policy}),
                10.0,
                self.enabled,
            ),
            self.enforcer,
            lambda: 2,
            NoSleeps(),
            lambda: self.now_s,
        )

    def reading(self):
        first, second = self.one.vcpus
        return readings.Reading(
            self.one.uuid,
            0,
            1_000 * MS,
            (
                readings.ThreadUse(
                    first.tid,
                    Role.VCPU,
                    int(self.pps * self.request_ms * MS),
                    int(2 * self.pps * self.wait_ms() * MS),
                    self.pps,
                ),
                readings.ThreadUse(
                    second.tid,
                    Role.VCPU,
                    300 * MS if self.computes_ms else 0,
                    self.computes_ms[self.parts()] * MS
                    if self.computes_ms
                    else 0,
                    10 if self.computes_ms else 0,
                ),
                readings.ThreadUse(
                    self.served_by,
                    Role.EMULATOR,
                    int(self.pps * self.io_ms * MS),
                    0,
                    self.io_wakeups * self.pps,
                ),
                readings.ThreadUse(999, Role.OTHER, 5 * MS, 0, 5),
            ),
            0,
        )

    def passes(self, count=1):
        found = []
        for _ in range(count):
            self.now_s += 1
            found += self.manager.adjust(
                [self.one],
                [
                    messages.UsageSample(
                        self.one.uuid,
                        1.0,
                        1_000_000,
                        0,
                        0,
                        net_rx_packets=self.pps,
                        net_tx_packets=self.pps,
                    )
                ],
                {self.one.uuid: self.reading()},
            )
        return found

    def wait_ms(self):
        return self.waits_ms.get(self.parts(), 0) if self.waits_ms else 0

    def parts(self):
        return self.enforcer.holding(self.one.uuid).granularity


class TestManager(ManagerCase):
    def test_divided_and_reported(self):
        (first,) = self.passes(2)
        self.assertEqual(
            messages.CommunicationReport(1, 6_000_000, 20_000_000),
            first.report,
        )
        (change,) = self.passes(10)
        self.assertEqual(
            messages.CommunicationReport(4, 1_500_000, 5_000_000),
            change.report,
        )
        self.assertEqual(Code.PERIOD_DIVIDED, change.event.code)
        self.assertEqual(
            {
                'granularity_before': 1,
                'runtime_before_ns': 6_000_000,
                'period_before_ns': 20_000_000,
                'granularity': 4,
                'runtime_ns': 1_500_000,
                'period_ns': 5_000_000,
            },
            change.event.figures,
        )
        self.assertIn(
            'gets 1500000 ns every 5000000 ns instead of 6000000 ns every '
            '20000000 ns: it receives 50 and sends 50 packets a second, and '
            'a request takes 1000 us of CPU time and 200 us of the I/O thread '
            'that serves it',
            change.event.detail,
        )
        self.assertEqual(
            {101: (1_500, 5_000), 102: (1_500, 5_000), 100: (500, 5_000)},
            self.kernel_us(),
        )

    def test_taken_back_where_waits_do_not_become_shorter(self):
        self.waits_ms = {1: 2.0, 4: 3.0}
        self.passes(4)
        self.assertEqual(4, self.parts())
        changes = self.passes(10)
        self.assertEqual(1, self.parts())
        self.assertIn(
            'its threads waited 2000 us for each packet before, and 3000 us '
            'with 4 parts',
            changes[-1].event.detail,
        )
        self.assertEqual([], self.passes(30))
        self.assertEqual(1, self.parts())
        # It is tried again after a minute.
        events = [change.event for change in self.passes(60) if change.event]
        self.assertEqual(
            [Code.PERIOD_DIVIDED] * 2, [event.code for event in events]
        )

    def test_kept_where_waits_become_shorter(self):
        self.waits_ms = {1: 2.0, 4: 0.5}
        self.passes(4)
        self.assertEqual([], self.passes(60))
        self.assertEqual(4, self.parts())

    def test_waits_of_a_vcpu_that_computes_do_not_count(self):
        self.waits_ms = {1: 2.0, 4: 0.5}
        self.computes_ms = {1: 300, 4: 700}
        self.passes(4)
        self.assertEqual([], self.passes(60))
        self.assertEqual(4, self.parts())

    def test_waits_of_a_vcpu_that_computes_are_no_gain(self):
        self.waits_ms = {1: 2.0, 4: 2.0}
        self.computes_ms = {1: 700, 4: 300}
        self.passes(20)
        self.assertEqual(1, self.parts())

    def test_not_below_the_request(self):
        self.request_ms = 2.1
        self.passes(10)
        self.assertEqual(2, self.parts())
        self.request_ms = 3.5
        self.passes(3)
        self.assertEqual(1, self.parts())

    def test_an_io_thread_has_its_own_bound(self):
        self.io_ms = 0.8
        self.passes(10)
        self.assertEqual(4, self.parts())
        self.assertEqual((1_000, 10_000), self.kernel_us()[100])
        self.io_ms = 1.1
        self.passes(10)
        # It cannot be divided, and the vCPUs alone gain nothing.
        self.assertEqual(1, self.parts())
        self.assertEqual((2_000, 20_000), self.kernel_us()[100])

    def test_a_part_of_an_io_thread_covers_all_wakeups_of_a_request(self):
        self.io_ms = 0.6
        for self.io_wakeups in (2, 6, 20):
            self.passes(10)
            self.assertEqual((1_000, 10_000), self.kernel_us()[100])

    def test_an_io_thread_that_gets_more_is_divided_further(self):
        self.io_ms = 0.8
        self.passes(10)
        self.enforcer.charges.apply(self.one.uuid, self.io(8_000), 6_000)
        self.assertEqual((4_000, 10_000), self.kernel_us()[100])
        self.assertEqual([], self.passes(10))
        self.assertEqual((2_000, 5_000), self.kernel_us()[100])

    def test_an_io_thread_that_gets_less_is_divided_less(self):
        self.passes(10)
        self.assertEqual((500, 5_000), self.kernel_us()[100])
        self.enforcer.charges.apply(self.one.uuid, self.io(600), 6_000)
        self.assertEqual((150, 5_000), self.kernel_us()[100])
        self.passes(2)
        self.assertEqual((300, 10_000), self.kernel_us()[100])

    def test_without_a_reserved_io_thread(self):
        self.served_by = 77
        changes = self.passes(10)
        self.assertEqual(1, self.parts())
        self.assertEqual(
            str(Code.COMMUNICATION_IO_UNHELD), changes[-1].report.code
        )
        self.assertEqual(1, len(changes))

    def test_whole_again(self):
        self.passes(5)
        self.pps = 0
        (change,) = self.passes(20)
        self.assertEqual(1, change.report.granularity)
        self.assertEqual(Code.PERIOD_DIVIDED, change.event.code)
        self.assertEqual((6_000, 20_000), self.kernel_us()[101])
        self.assertEqual((2_000, 20_000), self.kernel_us()[100])

    def test_switched_off_by_its_flavor(self):
        self.passes(5)
        self.manager.set_aware(self.one.uuid, False)
        (change,) = self.passes(5)
        self.assertIsNone(change.report)
        self.assertIn('switched off', change.event.detail)
        self.assertEqual((6_000, 20_000), self.kernel_us()[101])

    def test_a_released_instance_has_no_report(self):
        self.passes(5)
        self.enforcer.release(self.one)
        (change,) = self.passes(5)
        self.assertEqual((None, None), (change.report, change.event))

    def test_refused_by_the_kernel(self):
        self.deadline.bound = None
        self.passes(2)
        self.deadline.dead = {102}
        changes = self.passes(5)
        self.assertEqual(
            [Code.PERIOD_REFUSED],
            [one.event.code for one in changes if one.event],
        )
        self.assertEqual(str(Code.THREADS_GONE), changes[-1].report.code)
        self.assertEqual(1, self.parts())
        self.assertEqual((6_000, 20_000), self.kernel_us()[101])
        self.deadline.dead = set()
        changes = self.passes(int(manager.RETRY_S) + 3)
        self.assertEqual(4, self.parts())
        self.assertIsNone(changes[-1].report.code)

    def test_xen_is_not_supported(self):
        held = dataclasses.replace(
            self.enforcer.holding(self.one.uuid),
            backend=reservation.Backend.RTDS,
        )
        self.patch(self.enforcer, 'holding', lambda uuid: held)
        (change,) = self.passes(5)
        self.assertEqual(
            str(Code.COMMUNICATION_UNSUPPORTED), change.report.code
        )

    def test_a_quota_is_not_supported(self):
        self.enforcer.hold(
            self.one,
            reservation.Reservation(
                6_000, 20_000, backend=reservation.Backend.CFS
            ),
        )
        (change,) = self.passes(5)
        self.assertEqual(
            str(Code.COMMUNICATION_UNSUPPORTED), change.report.code
        )
        self.assertIsNone(change.event)

    def test_a_restarted_instance_keeps_it(self):
        self.passes(5)
        self.deadline.held = {}
        self.one = fakes.domain(1, vcpus=2, pid=500)
        self.served_by = 500
        self.hold(io_us=0)
        self.enforcer.charges.apply(self.one.uuid, self.io(tid=500), 6_000)
        self.assertEqual((1_500, 5_000), self.kernel_us()[501])
        self.assertEqual([], self.passes(20))
        self.assertEqual((500, 5_000), self.kernel_us()[500])

    def test_the_next_agent_keeps_it(self):
        self.passes(5)
        self.next_agent()
        self.manager = self.make_manager()
        self.hold()
        self.manager.set_aware(self.one.uuid, True)
        (change,) = self.passes(20)
        self.assertEqual((4, None), (change.report.granularity, change.event))

    def test_a_failure_leaves_the_others_alone(self):
        self.passes(2)
        self.enforcer.periods.divide = lambda *arguments: 1 // 0
        self.passes(3)
        self.assertEqual(1, self.parts())

    def test_a_failure_to_end_leaves_the_others_alone(self):
        self.passes(5)
        self.manager.set_aware(self.one.uuid, False)
        self.enforcer.periods.divide = lambda *arguments: 1 // 0
        self.assertEqual([], self.passes(2))
        del self.enforcer.periods.divide
        (change,) = self.passes(2)
        self.assertIn('switched off', change.event.detail)

    def test_a_failure_to_observe_leaves_the_others_alone(self):
        self.passes(1)
        observe = load.InstanceLoad.observe
        self.patch(load.InstanceLoad, 'observe', lambda *arguments: 1 // 0)
        self.assertEqual([], self.passes(3))
        self.patch(load.InstanceLoad, 'observe', observe)
        self.passes(5)
        self.assertEqual(4, self.parts())

    def test_forgotten(self):
        self.passes(5)
        self.enforcer.drop(self.one.uuid)
        self.manager.forget(self.one.uuid)
        (change,) = self.passes(2)
        self.assertEqual((None, None), (change.report, change.event))


class TestSwitchedOff(ManagerCase):
    """By the option of the host."""

    enabled = False

    def test_nothing_is_divided(self):
        # An earlier agent may have reported something.
        (change,) = self.passes(10)
        self.assertEqual((None, None), (change.report, change.event))
        self.assertEqual(1, self.parts())

    def test_what_an_earlier_agent_divided_is_whole_again(self):
        self.enforcer.periods.divide(self.one.uuid, 4, {100: 4})
        (change,) = self.passes(2)
        self.assertIsNone(change.report)
        self.assertEqual((6_000, 20_000), self.kernel_us()[101])
        self.assertEqual(
            granularities.Division(), self.enforcer._granularities.of('x')
        )
