# SPDX-License-Identifier: Apache-2.0

"""Executions of real threads and domains, and the wait before them."""

import contextlib
import os
import threading
import time

from oslotest import base as test_base

from vsched_agent.accounting import usage
from vsched_agent.host import schedstat
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.privileged import network
from vsched_agent.privileged import syscalls
from vsched_agent.profiling.error import hogs
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.profiling.overhead import peer
from vsched_agent.profiling.overhead import traffic
from vsched_agent.tests import fixtures
from vsched_agent.tests.functional import agent_guests
from vsched_agent.tests import hypervisor_suite
from vsched_lib.model import executions

#: Requests that the guest answers, per second, and the work of each.
RATE, WORK_US = 50, 200
SECONDS = 4
#: What is counted while the machine under this one takes CPU time, or others
#: of this one do, is counted again; so often at most.
_ATTEMPTS = 10

RUNTIME_US, PERIOD_US = 4_000, 20_000


class GuestTest(hypervisor_suite.Watching, test_base.BaseTestCase):
    """A guest that answers requests, alone and among CPU hogs."""

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.hypervisor = self.started()
        self.addCleanup(network.links_pctxt.stop)
        self.network = peer.Network()
        self.addCleanup(self.network.close)
        address = peer.guest_address(0)
        self.guest = self.useFixture(
            fixtures.Guest(
                'idle vsched.ip=%s/%d vsched.run=echo:%d:%d:0'
                % (address, peer.PREFIX, traffic.PORT, WORK_US),
                networks=(domain_xml.Network(self.network.bridge),),
            )
        )
        self.meter = usage.meter_of(self.hypervisor, False, blocking=True)
        self.addCleanup(self.meter.close)
        self.network.send(address, RATE, 1, 64)
        self.eventually(
            lambda: self.sample(0.5).net_tx_packets > 0, 'the first answer'
        )

    def make_hypervisor(self):
        return driver.LibvirtHypervisor(fixtures.URI)

    def sample(self, seconds):
        """Return what the guest used in the next seconds."""
        domains = [
            one
            for one in self.hypervisor.domains()
            if one.uuid == self.guest.uuid
        ]
        self.meter.sample(domains, {})
        threading.Event().wait(seconds)
        (found,) = self.meter.sample(domains, {})
        return found

    def undisturbed(self, seconds):
        """Return the sample during which the least was stolen, of some."""
        found = []
        for number in range(_ATTEMPTS):
            stolen_s = agent_guests.stolen_s()
            sample = self.sample(seconds)
            stolen_s = agent_guests.stolen_s() - stolen_s
            found.append((stolen_s, number, sample))
            if stolen_s < 0.02 * seconds:
                break
        return min(found)[-1]

    def figures(self, sample):
        return executions.figures(
            {**sample.to_dict(), **executions.by_name(sample.executions)},
            sample.interval_us,
        )

    def test_executions_of_a_guest_that_answers(self):
        for _ in range(_ATTEMPTS):
            calm = self.sample(SECONDS)
            figures = self.figures(calm)
            counts = executions.Counts(*calm.executions)
            # What has queued up is answered in one execution.
            if (
                0.5 * RATE * SECONDS
                < calm.net_tx_packets
                <= min(counts.executions, counts.emulator_wakeups)
                and figures['io_per_execution'] < 3
            ):
                break
        self.assertLess(0.5 * RATE * SECONDS, calm.net_tx_packets)
        # It sleeps between requests: each is an execution of its own, of
        # the vCPU and of QEMU's main thread, which moves the packets.
        self.assertLessEqual(calm.net_tx_packets, counts.executions)
        self.assertLessEqual(calm.net_tx_packets, counts.emulator_wakeups)
        self.assertLessEqual(counts.emulator_wakeups, calm.wakeups)
        self.assertEqual(0, counts.iothread_wakeups)
        self.assertLess(0, figures['io_per_execution'])
        # A request and its answer, and little else.
        self.assertLess(figures['io_per_execution'], 3)

    def test_the_wait_grows_among_hogs(self):
        self.network.quiet()
        self.guest.stop()
        self.guest = self.useFixture(fixtures.Guest('burn'))
        # On one CPU, so that it competes with the hogs and few others.
        (vcpu,) = self.one(self.hypervisor, self.guest.uuid).vcpus
        os.sched_setaffinity(vcpu.tid, {0})
        calm = self.undisturbed(2)
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                hog = stack.enter_context(hogs.Hog())
                os.sched_setaffinity(hog.pid, {0})
            loaded = self.undisturbed(SECONDS)
        self.assertLess(
            calm.wait_us / calm.interval_us,
            loaded.wait_us / loaded.interval_us,
        )
        # Its fair share is a quarter.
        self.assertLess(0.5, loaded.wait_us / loaded.interval_us)
        # It waits for slices of the others, of some milliseconds each.
        self.assertLess(1_000, self.figures(loaded)['wait_per_execution_us'])


class ThrottledTest(test_base.BaseTestCase):
    """A thread whose budget is used up in each period."""

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)

    def test_a_used_up_budget_is_a_wait(self):
        with hogs.Hog() as hog:
            syscalls.set_attr(
                hog.pid,
                syscalls.Attr(
                    syscalls.SCHED_DEADLINE,
                    syscalls.FLAG_RESET_ON_FORK,
                    0,
                    0,
                    RUNTIME_US * 1000,
                    PERIOD_US * 1000,
                    PERIOD_US * 1000,
                ),
            )
            threading.Event().wait(0.5)
            stolen_s, began_s = agent_guests.stolen_s(), time.monotonic()
            before = schedstat.read(hog.pid)
            threading.Event().wait(SECONDS)
            after = schedstat.read(hog.pid)
            took_s = time.monotonic() - began_s
            stolen_s = agent_guests.stolen_s() - stolen_s
        began = after.timeslices - before.timeslices
        wait_us = (after.wait_ns - before.wait_ns) / 1000
        # It is not kept waiting by what the machine under this one takes.
        self.assertAlmostEqual(
            1 - RUNTIME_US / PERIOD_US,
            wait_us / (took_s * 1_000_000),
            delta=0.1 + stolen_s / took_s,
        )
        # Once in each period, or more often when others preempt it.
        self.assertLess(0.5 * SECONDS * 1_000_000 / PERIOD_US, began)
        self.assertLess((wait_us - 1_000_000 * stolen_s) / began, PERIOD_US)
