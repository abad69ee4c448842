# SPDX-License-Identifier: Apache-2.0

import errno
import glob
import os
import pathlib
import typing as ty

import fixtures

from vsched_agent.enforcement import affinity
from vsched_agent.enforcement import capacity
from vsched_agent.enforcement import deadline
from vsched_agent.enforcement import leak_repair
from vsched_agent.enforcement import partitions
from vsched_agent.host import cgroup
from vsched_agent.privileged import syscalls
from vsched_agent.tests import assignments
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests.functional.node import node_case
from vsched_lib.contract import errors
from vsched_lib.model import reservation

_PERIOD_US = 20_000
#: Of one CPU, over ten seconds in emulation.
_TOLERANCE = 0.03


def _reserve(runtime_us):
    return reservation.Reservation(runtime_us, _PERIOD_US)


def _cpusets():
    """All that is not the default of what partitions change.

    Outside of virtual machines, which may end meanwhile.
    """
    texts = {
        path: cgroup.read_text(path)
        for pattern in ('*/cpuset.cpus.exclusive', '*/cpuset.cpus.partition')
        for path in glob.glob('/sys/fs/cgroup/' + pattern)
    }
    return {
        path: text
        for path, text in texts.items()
        if text not in ('', 'member')
    }


class PinnedCase(node_case.NodeCase):
    """A guest that burns its vCPU, pinned to the last CPU.

    To boot it takes most of a test: the tests of a class share one. A test
    that does not leave it as found ends it, and the next one starts another.
    """

    _shared: ty.ClassVar[agent_guests.Vm | None] = None
    _consoles: ty.ClassVar[fixtures.TempDir]

    def setUp(self):
        super().setUp()
        self.cpu = max(os.sched_getaffinity(0))
        self.cpusets = _cpusets()
        self.vm = self.shared_guest()
        self.found = self.vm.found()
        self.addCleanup(self.end_changed_guest)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls._consoles = fixtures.TempDir()
        cls._consoles.setUp()

    @classmethod
    def tearDownClass(cls):
        cls.end_guest()
        cls._consoles.cleanUp()
        super().tearDownClass()

    def shared_guest(self):
        """Return the guest of this class, and start it if none runs."""
        cls = type(self)
        if cls._shared is None:
            vm = self.make_guest(
                cls._consoles.path,
                load='burn',
                pins={0: frozenset((self.cpu,))},
            )
            vm.start()
            cls._shared = vm
        return cls._shared

    @classmethod
    def end_guest(cls):
        vm, cls._shared = cls._shared, None
        if vm is not None:
            vm.stop()

    def end_changed_guest(self):
        """End the guest unless it is as this test has found it."""
        unchanged = False
        try:
            unchanged = self._shared is None or (self.vm.found() == self.found)
        finally:
            if not unchanged:
                self.end_guest()

    def hold(self, backend, runtime_us):
        backend.apply_each(
            assignments.alike(self.targets(self.vm), _reserve(runtime_us))
        )
        self.assertEqual([(runtime_us, _PERIOD_US)], self.vm.held())
        self.assertEqual(
            {self.cpu}, os.sched_getaffinity(self.vm.vcpu_tids[0])
        )

    def assert_share(self, expected):
        got = agent_guests.measure(self.vm.vcpu_tids, 10.0)
        self.assertLess(abs(got.shares[0] - expected), _TOLERANCE, got)

    def restore(self, backend, prior):
        backend.restore(self.targets(self.vm), prior)
        self.assertEqual(self.found, self.vm.found())
        self.assertEqual(self.cpusets, _cpusets())


class TestConfined(PinnedCase):
    """By the cpuset of the vCPU's group, on any kernel."""

    def test_pinned_and_back(self):
        backend = deadline.DeadlineBackend(affinity.Affinity())
        prior = backend.prior(self.targets(self.vm))
        for runtime_us in (12_000, 6_000):
            self.hold(backend, runtime_us)
            self.assert_share(runtime_us / _PERIOD_US)
        self.restore(backend, prior)

    def test_a_leak_is_repaired_under_it(self):
        backend = deadline.DeadlineBackend(affinity.Affinity())
        targets = self.targets(self.vm)
        prior = backend.prior(targets)
        self.hold(backend, 6_000)
        before = node_case.sums()
        leak()
        leak_repair.rebuild_root_domains()
        self.assertEqual(before, node_case.sums())
        self.assertEqual(
            {self.cpu}, os.sched_getaffinity(self.vm.vcpu_tids[0])
        )
        self.assert_share(0.3)
        # Parameters can be changed as before.
        self.hold(backend, 12_000)
        self.restore(backend, prior)


class TestPartition(PinnedCase):
    """With the CPU as a partition, since Linux 6.7."""

    def setUp(self):
        super().setUp()
        self.isolation = partitions.Partitions({self.cpu})
        self.backend = deadline.DeadlineBackend(isolation=self.isolation)
        if not node_case.remote_partitions():
            # The same configuration confines the thread.
            self.assertEqual([], self.isolation.wanted(self.targets(self.vm)))

    def test_a_partition_and_back(self):
        targets = self.targets(self.vm)
        prior = self.backend.prior(targets)
        for runtime_us in (12_000, 6_000):
            self.hold(self.backend, runtime_us)
            self.assertEqual(
                node_case.remote_partitions(),
                self.isolation.is_made(targets[0]),
            )
            self.assert_share(runtime_us / _PERIOD_US)
            found = capacity.KernelCapacity().measured()
            self.assertEqual(0, found.leaked_units)
        self.restore(self.backend, prior)

    def test_its_own_admission(self):
        """One CPU admits 0.9, whatever the others have."""
        if not node_case.remote_partitions():
            return
        prior = self.backend.prior(self.targets(self.vm))
        self.hold(self.backend, 18_000)
        refusal = self.assertRaises(
            errors.Refused, self.hold, self.backend, 19_500
        )
        self.assertEqual(errors.Code.KERNEL_REFUSED, refusal.code)
        self.assertEqual([(18_000, _PERIOD_US)], self.vm.held())
        self.restore(self.backend, prior)

    def test_the_end_of_the_instance(self):
        """Neither exclusive CPUs nor bandwidth are left."""
        before = node_case.sums()
        prior = self.backend.prior(self.targets(self.vm))
        self.hold(self.backend, 12_000)
        self.end_guest()
        self.backend.clean_up(prior)
        self.assertEqual(self.cpusets, _cpusets())
        self.assertEqual(before, node_case.sums())


class TestMachinePartition(PinnedCase):
    """In a partition of all instances, which an operator has made."""

    folder = pathlib.Path('/sys/fs/cgroup/machine.slice')

    def setUp(self):
        self.addCleanup(self.reset_cpus)
        super().setUp()
        self.addCleanup(self.end_guest)
        (self.folder / 'cpuset.cpus').write_text(str(self.cpu))
        partition = self.folder / 'cpuset.cpus.partition'
        self.addCleanup(partition.write_text, 'member')
        partition.write_text('root')
        self.assertEqual('root', partition.read_text().strip())
        self.cpusets = _cpusets()
        self.found = self.vm.found()

    def reset_cpus(self):
        """Write the default, which the kernel refuses while the guest runs.

        systemd takes the controller from a slice without units, and its
        settings go with it: the file may be gone, or go meanwhile.
        """
        try:
            # Unlike open(), without O_CREAT, which fails by EACCES there.
            file = os.open(self.folder / 'cpuset.cpus', os.O_WRONLY)
        except FileNotFoundError:
            return
        try:
            os.write(file, b'\n')
        except OSError as failure:
            if failure.errno != errno.ENODEV:
                raise
        finally:
            os.close(file)

    def test_pinned_and_back(self):
        backend = deadline.DeadlineBackend(affinity.Affinity())
        prior = backend.prior(self.targets(self.vm))
        for runtime_us in (12_000, 6_000):
            self.hold(backend, runtime_us)
        self.assert_share(0.3)
        found = capacity.KernelCapacity().measured()
        self.assertEqual({self.cpu}, found.partition_cpus)
        self.assertEqual(0, found.leaked_units)
        self.restore(backend, prior)


def leak():
    """Leave the class asleep, which some kernels lose bandwidth by."""
    with agent_guests.sleeper() as tid:
        syscalls.set_attr(
            tid,
            syscalls.Attr(
                syscalls.SCHED_DEADLINE,
                syscalls.FLAG_RESET_ON_FORK,
                0,
                0,
                3_000_000,
                10_000_000,
                10_000_000,
            ),
        )
        agent_guests.pause(0.1)
        syscalls.set_attr(tid, syscalls.Attr(syscalls.SCHED_OTHER))
