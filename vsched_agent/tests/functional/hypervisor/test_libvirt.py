# SPDX-License-Identifier: Apache-2.0

"""The driver with real domains."""

import contextlib
import os
import pathlib
import signal

import fixtures as fixture_base
import libvirt
from oslotest import base as test_base

from vsched_agent.hypervisor import base
from vsched_agent.hypervisor.libvirt import driver
from vsched_agent.hypervisor.libvirt import metadata
from vsched_agent.hypervisor import qemu_process
from vsched_agent.profiling.guest import domain_xml
from vsched_agent.tests import fixtures
from vsched_agent.tests import guest_calls
from vsched_agent.tests import hypervisor_suite

LIVE = libvirt.VIR_DOMAIN_AFFECT_LIVE


class LibvirtCase(test_base.BaseTestCase):
    """A case with guests, whose driver speaks through a wire of its own."""

    def setUp(self):
        super().setUp()
        fixtures.require_libvirt(self)
        self.proxy = self.useFixture(fixtures.SocketProxy())
        self.guests = {}

    def make_hypervisor(self, **options):
        options = {'reconnect_max_s': 1.0, **options}
        return driver.LibvirtHypervisor(self.proxy.uri, **options)

    def start_domain(
        self, vcpus=1, max_vcpus=None, extra_specs=None, pins=None, **options
    ):
        guest = self.useFixture(
            fixtures.Guest(
                vcpus=vcpus,
                max_vcpus=max_vcpus,
                extra_specs=extra_specs or {},
                pins=pins or {},
                **{'wait': False, **options},
            )
        )
        self.guests[guest.uuid] = guest
        return guest.uuid

    def comm(self, domain, tid):
        with open('/proc/%d/task/%d/comm' % (domain.pid, tid)) as file:
            return file.read().strip()

    def handle(self, uuid):
        return self.guests[uuid].handle


class SuiteTest(LibvirtCase, hypervisor_suite.HypervisorSuite):
    def start_domain(
        self, vcpus=1, max_vcpus=None, extra_specs=None, pins=None
    ):
        # A vCPU can only be plugged into a guest that is up.
        return super().start_domain(
            vcpus, max_vcpus, extra_specs, pins, wait=max_vcpus is not None
        )

    def start_domain_with_disk(self):
        image = pathlib.Path(
            self.useFixture(fixture_base.TempDir()).path, 'disk'
        )
        with open(image, 'wb') as file:
            file.truncate(1 << 20)
        # Its kernel looks for partitions before it is up, and the load
        # reads on.
        return LibvirtCase.start_domain(
            self,
            disks=(domain_xml.Disk(str(image), direct=False),),
            load='idle vsched.run=read:/dev/vda:50:1:4096:0',
            wait=True,
        )

    def read_blocks(self, uuid):
        """It does all the time."""

    def stop_domain(self, uuid):
        self.guests[uuid].stop()

    def set_extra_specs(self, uuid, extra_specs):
        self.handle(uuid).setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT,
            guest_calls.plain_metadata(extra_specs),
            guest_calls.PLAIN_KEY,
            metadata.PLAIN_NS,
            LIVE,
        )

    def set_server(self, uuid, server):
        self.handle(uuid).setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT,
            guest_calls.nova_metadata(server),
            'nova',
            metadata.NOVA_NS,
            LIVE,
        )

    def plug_vcpus(self, uuid, count):
        self.handle(uuid).setVcpusFlags(count, LIVE)

    def pin_vcpu(self, uuid, index, cpu):
        self.handle(uuid).pinVcpuFlags(
            index,
            tuple(number == cpu for number in range(os.cpu_count())),
            LIVE,
        )

    def reboot_domain(self, uuid):
        self.handle(uuid).reset()

    def lose_connection(self):
        self.proxy.cut()

    def regain_connection(self):
        self.proxy.mend()


class TroubleTest(LibvirtCase, hypervisor_suite.Watching):
    """Answers that don't come, and files that are not there."""

    def test_every_thread_has_one_role(self):
        uuid = self.start_domain(vcpus=2, iothreads=1)
        domain = self.one(self.started(), uuid)
        self.assertEqual(
            ['CPU 0/TCG', 'CPU 1/TCG', 'IO iothread1'],
            [
                self.comm(domain, tid)
                for tid in (
                    *(vcpu.tid for vcpu in domain.vcpus),
                    *domain.iothread_tids,
                )
            ],
        )
        self.assertIn(domain.pid, domain.emulator_tids)
        self.assertEqual(
            {vcpu.index: vcpu.tid for vcpu in domain.vcpus},
            qemu_process.vcpus_by_cgroup(domain.pid),
        )

    def test_names_tell_what_the_monitor_tells(self):
        uuid = self.start_domain(vcpus=2)
        asked = self.one(self.started(), uuid)
        unasked = self.one(self.started(monitor_timeout_s=0), uuid)
        self.assertEqual(asked, unasked)

    def test_without_pid_files(self):
        uuid = self.start_domain()
        expected = self.one(self.started(), uuid)
        self.assertEqual(
            expected, self.one(self.started(run_dir='/nowhere'), uuid)
        )

    def test_monitor_that_hangs(self):
        hanging = self.start_domain(vcpus=2)
        other = self.start_domain()
        pids = {one.uuid: one for one in self.started().domains()}
        hypervisor = self.started(monitor_timeout_s=0.5)
        pid = pids[hanging].pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        found = {one.uuid: one for one in hypervisor.domains()}
        self.assertEqual(pids[hanging].vcpus, found[hanging].vcpus)
        self.assertEqual(pids[other].vcpus, found[other].vcpus)
        self.assertTrue(hypervisor.connected)
        self.assertEqual(found[hanging], hypervisor.domain(hanging))

    def test_disks_beside_a_monitor_that_hangs(self):
        images = self.useFixture(fixture_base.TempDir()).path
        found = []
        for name in ('one', 'two'):
            image = pathlib.Path(images, name)
            image.write_bytes(bytes(4096))
            found.append(
                self.start_domain(
                    disks=(domain_xml.Disk(str(image), direct=False),),
                    wait=True,
                )
            )
        hanging, other = found
        hypervisor = self.started()
        self.eventually(
            lambda: hypervisor.disk_counters(found).keys() == set(found),
            'the counters of both',
        )
        pid = self.one(hypervisor, hanging).pid
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(os.kill, pid, signal.SIGCONT)
        self.assertRaises(
            base.HypervisorUnavailable, hypervisor.disk_counters, found
        )
        # That call holds the one that hangs; others pass it over, and none
        # is left unsent behind it for long (see SIGN_OF_LIFE_S).
        for _ in range(20):
            self.assertEqual({other}, hypervisor.disk_counters(found).keys())

    def found(self, hypervisor, uuid):
        """A domain; None as long as no answer comes in time."""
        with contextlib.suppress(base.HypervisorUnavailable):
            return hypervisor.domain(uuid)
        return None

    def test_daemon_that_hangs(self):
        uuid = self.start_domain()
        hypervisor = self.started(call_timeout_s=2, keepalive_s=1)
        self.eventually(lambda: self.found(hypervisor, uuid), 'the domain')
        self.proxy.flowing.clear()
        self.assertRaises(base.HypervisorUnavailable, hypervisor.domains)
        # Three signs of life stay away: the connection is given up.
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        self.eventually(lambda: not hypervisor.connected, 'its end')
        self.proxy.cut()
        self.proxy.flowing.set()
        self.proxy.mend()
        self.assertTrue(self.changes.wait_for(None, self.patience_s))
        self.eventually(lambda: self.found(hypervisor, uuid), 'the domain')

    def test_daemon_that_comes_late(self):
        self.proxy.cut()
        hypervisor = self.make_hypervisor()
        changes = hypervisor_suite.Changes()
        hypervisor.start(changes)
        self.addCleanup(hypervisor.stop)
        self.assertFalse(changes.wait_for(None, 0.5))
        self.assertFalse(hypervisor.connected)
        self.proxy.mend()
        self.assertTrue(changes.wait_for(None, self.patience_s))
        self.assertTrue(hypervisor.connected)

    def test_nova_speaks_louder(self):
        uuid = self.start_domain(extra_specs=hypervisor_suite.SPECS)
        self.handle(uuid).setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT,
            guest_calls.plain_metadata({'vsched:cpu_runtime_us': '1000'}),
            guest_calls.PLAIN_KEY,
            metadata.PLAIN_NS,
            LIVE,
        )
        domain = self.one(self.started(), uuid)
        self.assertEqual(hypervisor_suite.SPECS, dict(domain.extra_specs))

    def test_metadata_that_says_nothing(self):
        uuid = self.start_domain()
        self.handle(uuid).setMetadata(
            libvirt.VIR_DOMAIN_METADATA_ELEMENT,
            '<reservation><extra_spec>12000</extra_spec></reservation>',
            guest_calls.PLAIN_KEY,
            metadata.PLAIN_NS,
            LIVE,
        )
        domain = self.one(self.started(), uuid)
        self.assertEqual({}, dict(domain.extra_specs))
        self.assertIn('without a name', domain.metadata_problem)
