# SPDX-License-Identifier: Apache-2.0

"""Accounts of real guests, compared with the kernel's other books.

The control groups count the CPU time of all that runs, and of each guest,
by a way of their own.
"""

import os
import pathlib
import threading
import time

import fixtures as fixture_base
from oslotest import base as test_base

from vsched_agent.accounting import usage
from vsched_agent.host import kernel
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests import fixtures
from vsched_agent.tests import hypervisor_suite

#: Of the time of all CPUs, what the parts' sum may differ by.
SUM_TOLERANCE = 0.01
#: Of CPU time, what two books of it may differ by, and for each reading of
#: theirs: clocks of ticks of 10 ms, read one after the other.
BOOKS_TOLERANCE, BOOKS_US = 0.03, 60_000


_V1 = [
    pathlib.Path('/sys/fs/cgroup', name) for name in ('cpuacct', 'cpu,cpuacct')
]


def _usage_us(group):
    """CPU time of a control group."""
    try:
        return int((group / 'cpuacct.usage').read_text()) // 1000
    except FileNotFoundError:
        return int((group / 'cpu.stat').read_text().split()[1])


def _root():
    """The group of all that runs."""
    return next(
        (one for one in _V1 if (one / 'cpuacct.usage').exists()),
        pathlib.Path('/sys/fs/cgroup'),
    )


class ConservationTest(hypervisor_suite.Watching, test_base.BaseTestCase):
    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.hypervisor = self.started()
        self.found = []
        self.irq_time = kernel.KernelFacts.read().irq_time

    def make_hypervisor(self):
        return driver.LibvirtHypervisor(fixtures.URI)

    def agent(self):
        """Another agent begins to count; the one before has stopped."""
        self.meter = usage.meter_of(
            self.hypervisor, self.irq_time, blocking=True
        )
        self.addCleanup(self.meter.close)
        self.between_s = time.monotonic()
        self.meter.sample(self.hypervisor.domains(), {})
        self.root_us = _usage_us(_root())
        self.between_s = time.monotonic() - self.between_s

    def count(self, seconds):
        """Passes, two a second."""
        for _ in range(2 * seconds):
            threading.Event().wait(0.5)
            self.last_s = time.monotonic()
            samples = self.meter.sample(self.hypervisor.domains(), {})
            self.found.append((self.meter.host, samples))

    def balance(self):
        """What this agent said adds up, and agrees with other books."""
        told_us = {
            'guest_us': 0,
            'direct_us': 0,
            'shared_us': 0,
            'own_us': 0,
            'idle_us': 0,
            'steal_us': 0,
        }
        whole_us = 0
        for host, _ in self.found:
            whole_us += host.cpus * host.interval_us
            for name in told_us:
                told_us[name] += getattr(host, name)
        # The kernel's idle and steal time are counted in ticks, and overlap
        # in a virtual machine: the next samples are reduced by the surplus.
        surplus_us = self.meter.checkpoint()['host']['owed_us']
        self.assertAlmostEqual(
            1,
            (sum(told_us.values()) - surplus_us) / whole_us,
            delta=SUM_TOLERANCE,
        )
        busy_us = whole_us - told_us['idle_us'] - told_us['steal_us']
        root_us = _usage_us(_root()) - self.root_us
        # What the machine under this one takes counts as used in the groups
        # of some kernels, and what is used between two books' readings in one
        # of them.
        between_s = self.between_s + time.monotonic() - self.last_s
        self.other_us = (
            told_us['steal_us'] + 1_000_000 * os.cpu_count() * between_s
        )
        # The groups leave out interrupts of idle CPUs.
        self.assertAlmostEqual(
            root_us,
            busy_us,
            delta=BOOKS_TOLERANCE * whole_us + BOOKS_US + self.other_us,
        )

    def used_us(self, uuid):
        return sum(
            one.guest_us + one.direct_us
            for _, samples in self.found
            for one in samples
            if one.instance_uuid == uuid
        )

    def group(self, pid):
        """A group that counts one process, which runs already."""
        root = _root()
        if root not in _V1:
            line = pathlib.Path('/proc/%d/cgroup' % pid).read_text()
            path = pathlib.Path(line.rpartition('0::/')[2].strip())
            # libvirt makes one for each kind of thread below the guest's.
            while path.name in ('emulator', 'libvirt'):
                path = path.parent
            return root / path
        group = root / ('vsched-test-%d' % pid)
        group.mkdir()
        self.addCleanup(group.rmdir)
        self.addCleanup((root / 'cgroup.procs').write_text, str(pid))
        (group / 'cgroup.procs').write_text(str(pid))
        return group

    def disk(self):
        image = pathlib.Path(
            self.useFixture(fixture_base.TempDir()).path, 'disk'
        )
        with open(image, 'wb') as file:
            file.truncate(1 << 20)
        return domain_xml.Disk(str(image), direct=False, iothread=1)

    def test_every_second_is_somebodys(self):
        steady = self.useFixture(
            fixtures.Guest(
                'idle vsched.run=read:/dev/vda:200:1:4096:0',
                iothreads=1,
                disks=(self.disk(),),
            )
        )
        self.agent()
        pid = self.one(self.hypervisor, steady.uuid).pid
        group = self.group(pid)
        steady_us = _usage_us(group)
        self.count(2)
        coming = self.useFixture(fixtures.Guest('burn'))
        self.count(3)
        coming.stop()
        self.count(2)
        grown_us = _usage_us(group) - steady_us
        self.balance()
        self.assertAlmostEqual(
            grown_us,
            self.used_us(steady.uuid),
            delta=BOOKS_TOLERANCE * grown_us + BOOKS_US + self.other_us,
        )
        self.assertLess(0, self.used_us(coming.uuid))
        reads = sum(
            one.disk_read_requests
            for _, samples in self.found
            for one in samples
            if one.instance_uuid == steady.uuid
        )
        self.assertLess(100, reads)
        # Another agent starts in the middle of things: it counts from now
        # and nothing that the first one counted.
        self.meter.close()
        self.found = []
        self.agent()
        steady_us = _usage_us(group)
        self.count(2)
        grown_us = _usage_us(group) - steady_us
        self.balance()
        self.assertAlmostEqual(
            grown_us,
            self.used_us(steady.uuid),
            delta=BOOKS_TOLERANCE * grown_us + BOOKS_US + self.other_us,
        )
