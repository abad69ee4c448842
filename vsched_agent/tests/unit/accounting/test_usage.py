# SPDX-License-Identifier: Apache-2.0

"""CPU time from counters, by a made-up procfs and by real threads."""

from fractions import Fraction
from unittest import mock

import ddt
import fixtures
import hypothesis
from hypothesis import strategies
from oslotest import base as test_base

from vsched_agent.accounting import counters
from vsched_agent.accounting import direct
from vsched_agent.accounting import qemu
from vsched_agent.accounting import usage
from vsched_agent.host import schedstat
from vsched_agent.hypervisor import base
from vsched_agent.tests import descriptors
from vsched_agent.tests import fake_proc
from vsched_agent.tests import shared_process
from vsched_agent.tests import simulated
from vsched_lib.model import executions

UUID = 'a-uuid'
PID = 100
MS = 1_000_000


def domain(*tids, uuid=UUID, pid=PID):
    return base.Domain(
        uuid,
        'name',
        pid,
        tuple(base.Vcpu(index, tid) for index, tid in enumerate(tids)),
    )


class Threads:
    """Threads of one process of a made-up procfs."""

    def __init__(self, proc):
        self._proc = proc
        self.path = proc.path

    def set(self, tid, run_ns, wait_ns=0, timeslices=0, pid=PID, **more):
        self._proc.set(pid, tid, run_ns, wait_ns, timeslices, **more)

    def end(self, tid, pid=PID):
        self._proc.end(pid, tid)


class MeterCase(test_base.BaseTestCase):
    max_open_files = 100

    def setUp(self):
        super().setUp()
        self.proc = Threads(self.useFixture(fake_proc.FakeProc()))
        self.clock_ns = None
        self.reader = qemu.ProcessReader(
            self.max_open_files,
            str(self.proc.path),
            direct.DirectMeter(lambda pid: self.clock_ns),
        )
        self.meter = usage.UsageMeter(self.reader)
        self.addCleanup(self.meter.close)
        self.now_ns = 1000 * MS
        self.now_ticks = 1000
        self.useFixture(
            fixtures.MockPatchObject(
                qemu.time, 'monotonic_ns', lambda: self.now_ns
            )
        )
        self.useFixture(
            fixtures.MockPatchObject(
                self.reader, '_now_ticks', lambda: self.now_ticks
            )
        )

    def later(self, ms=1000):
        self.now_ns += ms * MS
        self.now_ticks += ms // 10

    def sample(self, *domains, **promised):
        return self.meter.sample(domains, promised)


@ddt.ddt
class SampleTest(MeterCase):
    def test_first_seen_is_only_read(self):
        self.proc.set(1, 5000 * MS)
        self.assertEqual([], self.sample(domain(1)))

    def test_differences(self):
        self.proc.set(1, 5000 * MS, 100 * MS)
        self.proc.set(2, 0, 0)
        self.sample(domain(1, 2))
        self.later()
        self.proc.set(1, 5600 * MS, 150 * MS)
        self.proc.set(2, 250 * MS, 1 * MS)
        (found,) = self.sample(domain(1, 2))
        self.assertEqual(UUID, found.instance_uuid)
        self.assertEqual(1_000_000, found.interval_us)
        self.assertEqual(850_000, found.guest_us)
        self.assertEqual(51_000, found.wait_us)
        self.assertIsNone(found.promised_us)

    def test_ends_with_its_interval(self):
        # Between the counters and the sample the agent loses the CPU.
        ahead_ns = 10**18
        late_ns = 0

        def slow_host():
            nonlocal late_ns
            self.now_ns += late_ns

        self.meter = usage.UsageMeter(
            self.reader, mock.Mock(read=mock.Mock(side_effect=slow_host))
        )
        self.useFixture(
            fixtures.MockPatchObject(
                usage.wall_clock.time,
                'time_ns',
                lambda: self.now_ns + ahead_ns,
            )
        )
        self.proc.set(1, 0)
        ends = []
        for late_ns in (0, 0, 54 * MS, 0):
            samples = self.sample(domain(1))
            ends += [round(one.at - ahead_ns / 1e9, 6) for one in samples]
            self.later(1000 - late_ns // MS)
        self.assertEqual([2.0, 3.0, 4.0], ends)

    def test_promised(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.later(1500)
        (found,) = self.meter.sample([domain(1)], {UUID: Fraction(2, 3)})
        self.assertEqual(1_000_000, found.promised_us)

    def test_executions_by_kind_of_thread(self):
        names = {
            1: 'CPU 0/KVM',
            2: 'CPU 1/KVM',
            3: 'IO iothread1',
            4: 'vhost-%d' % PID,
            5: 'worker',
            PID: 'qemu',
        }

        def run(times):
            for tid, name in names.items():
                # Waits are of thread and execution, so that no two are alike.
                count = times * (10 if tid == PID else tid)
                self.proc.set(
                    tid, 0, count * tid * MS, count, comm=name, pid=PID
                )

        guest = base.Domain(
            UUID,
            'name',
            PID,
            (base.Vcpu(0, 1), base.Vcpu(1, 2)),
            iothread_tids=(3,),
        )
        run(1)
        self.sample(guest)
        self.later()
        run(3)
        (found,) = self.sample(guest)
        self.assertEqual(10_000, found.wait_us)
        self.assertEqual(
            executions.Counts(6, 20, 2_000_000, 6, 18_000, 8, 32_000),
            found.executions,
        )
        # Those of QEMU's pool are in the sums only.
        self.assertEqual(
            (44, 2_100_000), (found.wakeups, found.direct_wait_us)
        )

    def test_an_idle_instance_has_no_executions(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.later()
        (found,) = self.sample(domain(1))
        self.assertEqual((0,) * 7, found.executions)

    def test_a_late_pass_loses_nothing(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.later(7300)
        self.proc.set(1, 4380 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(
            (7_300_000, 4_380_000), (found.interval_us, found.guest_us)
        )

    def test_born_since_counts_from_its_birth(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.later()
        self.proc.set(2, 300 * MS, 10 * MS, start_ticks=1050)
        (found,) = self.sample(domain(1, 2))
        self.assertEqual(300_000, found.guest_us)
        self.assertEqual(10_000, found.wait_us)

    def test_there_before_but_unknown_counts_from_now(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.later()
        self.proc.set(2, 3_600_000 * MS, start_ticks=20)
        (found,) = self.sample(domain(1, 2))
        self.assertEqual(0, found.guest_us)
        self.later()
        self.proc.set(2, 3_600_100 * MS, start_ticks=20)
        (found,) = self.sample(domain(1, 2))
        self.assertEqual(100_000, found.guest_us)

    def test_a_new_process_starts_anew(self):
        self.proc.set(1, 900 * MS)
        self.sample(domain(1))
        self.later()
        self.proc.set(1, 400 * MS, start_ticks=1020, pid=200)
        (found,) = self.sample(domain(1, pid=200))
        self.assertEqual(400_000, found.guest_us)
        self.assertEqual(self.opened(1), self.reader.files.open)

    def test_unplugged(self):
        self.proc.set(1, 0)
        self.proc.set(2, 0)
        self.sample(domain(1, 2))
        self.later()
        self.proc.set(1, 10 * MS)
        self.proc.end(2)
        (found,) = self.sample(domain(1))
        self.assertEqual(10_000, found.guest_us)
        self.assertEqual(self.opened(1), self.reader.files.open)

    def test_an_instance_that_left(self):
        self.proc.set(1, 0)
        self.sample(domain(1))
        self.assertEqual([], self.sample())
        self.assertEqual(0, self.reader.files.open)
        self.later()
        # Back again, it is seen for the first time.
        self.assertEqual([], self.sample(domain(1)))

    def test_never_there(self):
        self.sample(domain(1))
        self.later()
        (found,) = self.sample(domain(1))
        self.assertEqual(0, found.guest_us)

    def test_a_wrapped_counter(self):
        self.proc.set(1, 2**64 - 5 * MS)
        self.sample(domain(1))
        self.later()
        self.proc.set(1, 15 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(20_000, found.guest_us)

    def test_a_counter_that_steps_back(self):
        self.proc.set(1, 50 * MS)
        self.sample(domain(1))
        self.later()
        self.proc.set(1, 40 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(0, found.guest_us)

    @ddt.data('', '1', 'a b c', '1 2 3 4')
    def test_unreadable_counters(self, text):
        self.proc.set(1, 0)
        self.sample(domain(1))
        (self.proc.path / str(PID) / 'task/1/schedstat').write_text(text)
        self.later()
        (found,) = self.sample(domain(1))
        self.assertEqual(0, found.guest_us)
        self.assertEqual(0, self.reader.files.open)

    def opened(self, files):
        return min(files, self.max_open_files)


class PropertyTest(MeterCase):
    @hypothesis.settings(deadline=None)
    @hypothesis.given(
        strategies.lists(
            strategies.tuples(
                strategies.integers(0, 5000 * MS), strategies.integers(1, 5000)
            ),
            max_size=20,
        )
    )
    def test_nothing_is_lost_or_counted_twice(self, steps):
        self.meter.close()
        total_ns = started_ns = 12_345
        at_ns = self.now_ns
        self.proc.set(1, total_ns)
        self.sample(domain(1))
        guest_us = interval_us = 0
        for ran_ns, ms in steps:
            total_ns += ran_ns
            self.later(ms)
            self.proc.set(1, total_ns)
            (found,) = self.sample(domain(1))
            guest_us += found.guest_us
            interval_us += found.interval_us
        # Each sample is rounded once.
        self.assertAlmostEqual(
            (total_ns - started_ns) / 1000, guest_us, delta=len(steps)
        )
        self.assertAlmostEqual(
            (self.now_ns - at_ns) / 1000, interval_us, delta=len(steps)
        )


class FewFilesTest(SampleTest):
    """The same without keeping files open."""

    max_open_files = 0

    def test_a_number_used_again(self):
        self.proc.set(1, 900 * MS, start_ticks=5)
        self.sample(domain(1))
        self.later()
        self.proc.set(1, 910 * MS, start_ticks=1050)
        (found,) = self.sample(domain(1))
        self.assertEqual(910_000, found.guest_us)

    def test_died(self):
        self.proc.set(1, 0)
        self.proc.set(2, 0)
        self.sample(domain(1, 2))
        self.later()
        self.proc.end(1)
        self.proc.set(2, 10 * MS)
        (found,) = self.sample(domain(1, 2))
        self.assertEqual(10_000, found.guest_us)


class BoundTest(MeterCase):
    max_open_files = 2

    def test_no_more_files_than_allowed(self):
        tids = range(1, 6)
        for tid in tids:
            self.proc.set(tid, 0)
        self.sample(domain(*tids))
        self.assertEqual(2, self.reader.files.open)
        self.later()
        for tid in tids:
            self.proc.set(tid, 10 * MS)
        (found,) = self.sample(domain(*tids))
        self.assertEqual(50_000, found.guest_us)
        self.meter.close()
        self.assertEqual(0, self.reader.files.open)

    def test_none_can_be_opened(self):
        self.proc.set(1, 0)
        with mock.patch.object(
            counters.os, 'open', autospec=True, side_effect=OSError
        ):
            self.sample(domain(1))
        self.later()
        self.proc.set(1, 10 * MS)
        (found,) = self.sample(domain(1))
        self.assertEqual(10_000, found.guest_us)

    def test_half_of_what_the_process_may_open(self):
        for limits, expected in (((1000, 5000), 500), ((-1, -1), 65536)):
            with mock.patch.object(
                counters.resource,
                'getrlimit',
                autospec=True,
                return_value=limits,
            ):
                self.assertEqual(expected, counters.ThreadFiles().most)


class RealThreadsTest(test_base.BaseTestCase):
    """The kernel's own counters."""

    def setUp(self):
        super().setUp()
        self.hypervisor = simulated.SimulatedHypervisor.with_real_threads(
            busy_us=500
        )
        self.addCleanup(self.hypervisor.close)
        self.hypervisor.start(lambda uuid: None)

    def meter(self, max_open_files=None):
        self.reader = shared_process.SharedProcessReader(max_open_files)
        meter = usage.UsageMeter(self.reader)
        self.addCleanup(meter.close)
        return meter

    def run_with(self, meter):
        one = self.hypervisor.add(2)
        two = self.hypervisor.add(1)
        before = {
            tid: schedstat.read(tid).run_ns
            for tid in (vcpu.tid for vcpu in one.vcpus)
        }
        self.assertEqual([], meter.sample([one, two], {}))
        guest_us = 0
        while guest_us < 2000:
            found = meter.sample(self.hypervisor.domains(), {})
            self.assertEqual(
                [one.uuid, two.uuid], [each.instance_uuid for each in found]
            )
            guest_us += found[0].guest_us
        spent_ns = sum(
            schedstat.read(tid).run_ns - ns for tid, ns in before.items()
        )
        self.assertLessEqual(guest_us * 1000, spent_ns + 10_000_000)
        # A vCPU goes, another comes: its thread counts from its birth.
        self.hypervisor.set_vcpus(one.uuid, 1)
        self.hypervisor.set_vcpus(one.uuid, 2)
        newer = self.hypervisor.domain(one.uuid)
        meter.sample(self.hypervisor.domains(), {})
        self.assertEqual(
            {vcpu.tid for vcpu in newer.vcpus},
            {
                use.tid
                for use in meter.readings[one.uuid].threads
                if use.role == 'vcpu'
            },
        )
        self.hypervisor.remove(two.uuid)
        (found,) = meter.sample(self.hypervisor.domains(), {})
        self.assertEqual(one.uuid, found.instance_uuid)

    def test_with_open_files(self):
        self.run_with(self.meter())

    def test_without(self):
        self.run_with(self.meter(0))

    def test_threads_that_died_are_no_error(self):
        meter = self.meter()
        one = self.hypervisor.add(2)
        meter.sample([one], {})
        self.hypervisor.remove(one.uuid)
        (found,) = meter.sample([one], {})
        self.assertEqual(0, found.guest_us)
        self.assertEqual(0, self.reader.files.open)

    def test_files_are_closed(self):
        meter = self.meter()
        before = descriptors.links('/proc/')
        for _ in range(3):
            meter.sample([self.hypervisor.add(2)], {})
        meter.close()
        self.assertEqual(before, descriptors.links('/proc/'))
