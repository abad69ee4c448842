# SPDX-License-Identifier: Apache-2.0

import dataclasses
from fractions import Fraction
import os
import tempfile

from oslotest import base

from vsched_agent.enforcement import backends
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import diagnosis
from vsched_agent.enforcement import doctor
from vsched_agent.enforcement import leak_repair as repair
from vsched_agent.host import cgroup
from vsched_agent.host import cpu_list
from vsched_agent.host import kernel
from vsched_agent.tests import fake_cgroups
from vsched_agent.tests import fakes
from vsched_lib.model import reservation

CPU = 1 << reservation.KERNEL_BW_SHIFT
EXPECTED = int(Fraction(18, 10) * CPU)
FACTS = kernel.KernelFacts(
    release='6.18.0',
    boot_id='b',
    tick_us=4000,
    rt_period_us=1_000_000,
    rt_runtime_us=950_000,
    dl_period_min_us=100,
    dl_period_max_us=4_194_304,
    fair_servers={
        0: (50_000_000, 1_000_000_000),
        1: (50_000_000, 1_000_000_000),
    },
    options={
        'CFS_BANDWIDTH': 'y',
        'CPUSETS': 'y',
        'SCHED_HRTICK': 'n',
        'RT_GROUP_SCHED': 'y',
    },
    online=frozenset((0, 1)),
    perf_event_paranoid=2,
)
DEADLINE = reservation.Backend.DEADLINE
CFS = reservation.Backend.CFS


class FakeBooks:
    def __init__(self, *free_units):
        self.free_units = list(free_units)
        self.now = None
        self.recovered_units = 0

    def invalidate(self):
        self.now = None

    def measured(self):
        if self.now is None:
            self.now = self.free_units.pop(0)
        return capacity.Measured(
            frozenset((0, 1)),
            self.now,
            CPU // 2,
            EXPECTED,
            self.recovered_units,
        )


class TestDoctor(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.mkdir(os.path.join(folder.name, 'proc'))
        self.backends = [fakes.FakeBackend(DEADLINE), fakes.FakeBackend(CFS)]
        self.rebuilt = []
        self.host = doctor.Host(
            FACTS,
            cgroup.Cgroups(),
            backends.Ladder(backends=self.backends),
            FakeBooks(EXPECTED - CPU // 2),
            lambda: [capacity.DeadlineThread(10, 11, 'CPU 0/KVM', CPU // 2)],
            lambda: self.rebuilt.append(1),
        )

    def find(self, subject, repair=False, **changes):
        findings = doctor.examine(
            dataclasses.replace(self.host, **changes), repair
        )
        return [one for one in findings if one.subject == subject]

    def test_a_healthy_host(self):
        findings = doctor.examine(self.host)
        self.assertNotIn(
            diagnosis.Level.PROBLEM, [one.level for one in findings]
        )

    def test_a_backend_that_guarantees_is_missed_most(self):
        for backend in self.backends:
            backend.usable = False
        self.assertEqual(
            diagnosis.Level.PROBLEM, self.find('deadline')[0].level
        )
        found = self.find('cfs', books=FakeBooks(EXPECTED))[0]
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        self.assertIn('the test says so', found.text)

    def test_what_the_kernel_lacks_is_said_with_its_meaning(self):
        texts = ' '.join(one.text for one in self.find('kernel'))
        self.assertIn('CONFIG_SCHED_HRTICK is off', texts)
        self.assertNotIn('CONFIG_CPUSETS is off', texts)
        self.assertIn('RT_GROUP_SCHED is on', texts)

    def test_no_bound_at_all(self):
        found = self.find(
            'sysctl', facts=dataclasses.replace(FACTS, rt_runtime_us=-1)
        )[0]
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        self.assertIn('sysctl', found.remedy)

    def test_the_tick_and_the_least_budget(self):
        found = self.find('tick')[0]
        self.assertIn('80 of 20000 us', found.text)
        self.assertIn('CONFIG_HZ=1000', found.remedy)
        self.assertIn('budget_check_us = 500', found.remedy)
        timers = self.find(
            'tick',
            facts=dataclasses.replace(FACTS, options={'SCHED_HRTICK': 'y'}),
        )[0]
        self.assertIn('write HRTICK_DL', timers.remedy)
        self.assertIn('after each boot', timers.remedy)
        self.assertIn('each exhausted budget is an interrupt', timers.remedy)
        self.assertIn('budget_check_us = 500', timers.remedy)

    def test_a_timer_that_cannot_be_read(self):
        options = {**FACTS.options, 'SCHED_HRTICK': 'y'}
        for known, hrtick_dl in ((False, None), (True, False)):
            (found,) = self.find(
                'tick',
                facts=dataclasses.replace(
                    FACTS, options=options, hrtick_dl=hrtick_dl
                ),
                books=FakeBooks(EXPECTED),
            )
            self.assertIn('write HRTICK_DL', found.remedy)
            self.assertEqual(known, 'cannot be read' not in found.remedy)

    def test_perf_events_for_root_only(self):
        self.assertEqual(diagnosis.Level.OK, self.find('perf events')[0].level)
        debian = self.find(
            'perf events',
            facts=dataclasses.replace(FACTS, perf_event_paranoid=3),
        )[0]
        self.assertEqual(diagnosis.Level.NOTE, debian.level)
        self.assertIn('CAP_SYS_ADMIN', debian.text)
        self.assertIn('perf_event_paranoid=2', debian.remedy)

    def test_no_perf_events(self):
        found = self.find(
            'perf events',
            facts=dataclasses.replace(FACTS, perf_event_paranoid=None),
        )[0]
        self.assertEqual(diagnosis.Level.NOTE, found.level)
        self.assertEqual('', found.remedy)

    def test_holders_are_named(self):
        found = self.find('thread')[0]
        self.assertIn('CPU 0/KVM', found.text)
        self.assertIn('500 mcpu', found.text)

    def test_a_leak_is_named_with_its_repair(self):
        found = self.find(
            'leak', books=FakeBooks(EXPECTED - CPU // 2 - CPU * 3 // 10)
        )[0]
        self.assertEqual(diagnosis.Level.PROBLEM, found.level)
        self.assertIn('300 mcpu', found.text)
        self.assertIn('--repair', found.remedy)
        self.assertEqual([], self.rebuilt)

    def test_a_leak_that_was_found_again_is_named(self):
        books = FakeBooks(EXPECTED - CPU // 2)
        books.recovered_units = CPU * 3 // 10
        found = self.find('leak', books=books)
        self.assertEqual(
            [diagnosis.Level.NOTE, diagnosis.Level.OK],
            [one.level for one in found],
        )
        self.assertIn('%d units' % (CPU * 3 // 10), found[0].text)

    def test_a_leak_is_repaired_and_measured_again(self):
        found = self.find(
            'leak', True, books=FakeBooks(EXPECTED - CPU, EXPECTED - CPU // 2)
        )[0]
        self.assertEqual(diagnosis.Level.OK, found.level)
        self.assertEqual([1], self.rebuilt)

    def test_a_repair_that_does_not_help(self):
        found = self.find(
            'leak', True, books=FakeBooks(EXPECTED - CPU, EXPECTED - CPU)
        )[0]
        self.assertEqual(diagnosis.Level.PROBLEM, found.level)
        self.assertIn('reboot', found.remedy)

    def test_a_host_without_a_repair(self):
        def refuse():
            raise repair.NotRepairable('a reboot does')

        found = self.find(
            'leak', True, books=FakeBooks(EXPECTED - CPU), rebuild=refuse
        )[0]
        self.assertEqual(diagnosis.Level.PROBLEM, found.level)
        self.assertIn('reboot', found.remedy)

    def test_how_pinned_vcpus_are_held(self):
        for version, exclusive, words in (
            (1, False, 'admitted globally'),
            (2, False, 'needs Linux 6.7'),
            (2, True, 'partition_cpus'),
        ):
            tree = self.useFixture(fake_cgroups.FakeCgroups(version))
            if exclusive:
                tree.write(
                    'sys/fs/cgroup/machine.slice/cpuset.cpus.exclusive', ''
                )
            (found,) = self.find('pinning', cgroups=cgroup.Cgroups(tree.root))
            self.assertIn(words, found.text)
            self.assertEqual(
                version == 2 and exclusive, 'partition_cpus' in found.text
            )

    def test_cpus_in_partitions(self):
        tree = self.useFixture(fake_cgroups.FakeCgroups(2))
        tree.write('sys/fs/cgroup/cpuset.cpus.effective', '0')
        self.patch(cpu_list, 'online', lambda: frozenset((0, 1, 2)))
        (found,) = self.find('pinning', cgroups=cgroup.Cgroups(tree.root))
        self.assertIn('CPUs 1-2 are in partitions', found.text)

    def test_both_renderings_say_the_same(self):
        findings = doctor.examine(self.host)
        text = diagnosis.render(findings)
        for one in findings:
            self.assertIn(one.text, text)
            self.assertEqual(
                {'level', 'subject', 'text', 'remedy'}, set(one.to_dict())
            )
