# SPDX-License-Identifier: Apache-2.0

"""Servers of a real Nova, from their flavor to what the kernel holds."""

from oslotest import base

from vsched_standalone.tests.region import agreement
from vsched_standalone.tests.region import glance
from vsched_standalone.tests.region import hypervisor
from vsched_standalone.tests.region import region
from vsched_standalone.tests.region import rounds
from vsched_standalone.tests.region import servers


class TestEndToEnd(base.BaseTestCase):
    """One region for all: it takes longer to start than to use."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        region.require(cls)
        hypervisor.require(cls)
        cls.region = region.Region(
            rounds.HOSTS,
            {'allocation_conflict_retry_count': 1},
            ('real1', 'real2'),
        )
        cls.region.setUp()
        cls.addClassCleanup(cls.region.cleanUp)
        cls.servers = servers.Servers(cls.region)
        cls.image = glance.upload(cls.region.images, 'empty', b'\0' * 512)

    def boot(self, flavor, image=None, zone=region.SIMULATED):
        uuid = self.servers.boot(
            flavor, image or self.image, availability_zone=zone
        )
        self.addCleanup(self.servers.delete, uuid)
        found = self.servers.settled(uuid)
        self.assertEqual('ACTIVE', found['status'], found.get('fault'))
        return found

    def host(self, uuid):
        return self.servers.get(uuid)['OS-EXT-SRV-ATTR:host']

    def agree(self, running, moving=()):
        """Placement, database, kernel and audit come to say this.

        :param running: what each vCPU has, in milli-CPU, by server: all
            there are.
        :param moving: host and milli-CPU that are kept for the way back.
        """
        where = {uuid: self.host(uuid) for uuid in running}
        wanted = {
            host: (
                sorted(
                    [
                        sum(vcpus)
                        for uuid, vcpus in running.items()
                        if where[uuid] == host
                    ]
                    + [mcpu for name, mcpu in moving if name == host]
                ),
                {
                    uuid: sum(vcpus)
                    for uuid, vcpus in running.items()
                    if where[uuid] == host
                },
                sorted(
                    mcpu
                    for uuid, vcpus in running.items()
                    for mcpu in vcpus
                    if where[uuid] == host
                ),
            )
            for host in self.region.hosts
        }
        seen = {}

        def there():
            for host in self.region.hosts:
                one = agreement.look(self.region, host)
                # The consumer of what is kept is the migration.
                if not moving and one.claimed != wanted[host][1]:
                    seen[host] = one
                    return False
                seen[host] = (
                    sorted(one.claimed.values()),
                    one.promised,
                    one.held,
                )
            return seen == wanted and not any(
                agreement.differences(self.region, host)
                for host in self.region.hosts
            )

        try:
            self.region.until(there)
        except RuntimeError:
            self.assertEqual(wanted, seen)
            raise

    def test_eight_at_once_get_no_more_than_there_is(self):
        # That as many become active as there is room for is Nova's to see
        # to; ``python -m benchmarks boots`` counts it.
        boots = rounds.Rounds(self.region)
        for _ in range(2):
            found = boots.run()
            self.assertIn(found.active, range(1, 5), boots.faults)
            self.assertLessEqual(found.claimed_mcpu, 800)
            self.assertEqual((0, 0), (found.overclaimed, found.overpromised))
            self.assertEqual(
                (200 * found.active, 200 * found.active, 0),
                (found.admitted_mcpu, found.held_mcpu, found.refused),
                boots.faults,
            )

    def test_the_promise_follows_the_server(self):
        self.agree({})
        uuid = self.boot(self.servers.flavor('cpu_runtime_us=2000'))['id']
        self.agree({uuid: [100]})
        for kind in ('SOFT', 'HARD'):
            self.servers.do(uuid, reboot={'type': kind})
            self.agree({uuid: [100]})

        before = self.host(uuid)
        larger = self.servers.flavor('cpu_runtime_us=3000', vcpus=2)
        self.assertEqual(
            'VERIFY_RESIZE',
            self.servers.do(uuid, resize={'flavorRef': larger})['status'],
        )
        self.agree({uuid: [150, 150]}, [(before, 100)])
        self.servers.do(uuid, confirmResize=None)
        self.agree({uuid: [150, 150]})

        before = self.host(uuid)
        self.assertEqual(
            'VERIFY_RESIZE', self.servers.do(uuid, migrate=None)['status']
        )
        self.assertNotEqual(before, self.host(uuid))
        self.agree({uuid: [150, 150]}, [(before, 300)])
        self.servers.do(uuid, revertResize=None)
        self.assertEqual(before, self.host(uuid))
        self.agree({uuid: [150, 150]})

        before = self.host(uuid)
        self.servers.do(uuid, migrate=None)
        # Nova gives up what the migration claims at the first conflict with
        # another change of the provider: the agent's inventory comes first.
        self.agree({uuid: [150, 150]}, [(before, 300)])
        self.servers.do(uuid, confirmResize=None)
        self.agree({uuid: [150, 150]})
        self.servers.delete(uuid)
        self.agree({})

    def test_what_no_host_has_shown_is_not_promised(self):
        flavor = self.servers.flavor(
            'cpu_runtime_us=2000', 'max_alloc_error_pct=2'
        )
        # With it placement itself would name no host.
        self.servers.take_certificates_off(flavor)

        def refused():
            uuid = self.servers.boot(
                flavor, self.image, availability_zone=region.SIMULATED
            )
            self.addCleanup(self.servers.delete, uuid)
            if self.servers.settled(uuid)['status'] == 'ERROR':
                return uuid
            # The first request of a scheduler's worker finds nothing known.
            self.servers.delete(uuid)
            return None

        self.region.until(refused)
        self.assertIn(
            'VschedAllocationErrorFilter refused 2 of 2 hosts',
            self.region.scheduler.all_said(),
        )
        self.agree({})

    def test_a_guest_gets_what_its_flavor_says(self):
        image = hypervisor.upload(self.region.images)
        uuid = self.boot(
            self.servers.flavor(
                'cpu_runtime_us=4000', 'backend=deadline', ram_mb=128
            ),
            image,
            region.REAL,
        )['id']
        self.agree({uuid: [200]})
        self.speaks(uuid)

        # All of its threads are new afterwards.
        before = self.region.processes(self.host(uuid))
        self.servers.do(uuid, reboot={'type': 'HARD'})
        self.agree({uuid: [200]})
        self.assertNotEqual(before, self.region.processes(self.host(uuid)))

        source = self.host(uuid)
        larger = self.servers.flavor(
            'cpu_runtime_us=6000', 'backend=deadline', vcpus=2, ram_mb=128
        )
        self.assertEqual(
            'VERIFY_RESIZE',
            self.servers.do(uuid, resize={'flavorRef': larger})['status'],
        )
        self.agree({uuid: [300, 300]}, [(source, 200)])
        self.servers.do(uuid, confirmResize=None)
        self.agree({uuid: [300, 300]})
        self.speaks(uuid)

        source = self.host(uuid)
        self.assertEqual(
            'VERIFY_RESIZE', self.servers.do(uuid, migrate=None)['status']
        )
        self.assertNotEqual(source, self.host(uuid))
        self.agree({uuid: [300, 300]}, [(source, 600)])
        self.servers.do(uuid, confirmResize=None)
        self.agree({uuid: [300, 300]})
        self.speaks(uuid)

        self.servers.delete(uuid)
        self.agree({})
        for libvirtd in self.region.libvirtds.values():
            self.assertEqual([], libvirtd.domains())

    def speaks(self, uuid):
        """The guest is up, for all that was done to it."""
        self.region.until(
            lambda: hypervisor.READY in self.servers.console(uuid)
        )
